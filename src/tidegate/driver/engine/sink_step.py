"""Step 6 of a batch: its rows go to the outputs, of which files become drafts (`io/publishing.py`).

staged Parquet ──▶ linked    an output needs exactly these rows as Parquet on this disk: no Spark job
              └──▶ written   a Spark job writes files, or calls a function, or appends to a table
the action of step 4 ──▶     the one output of a flow that is not linked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidegate.api.nodes import Output
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.engine.job_names import JobNames
from tidegate.driver.failures import writing
from tidegate.driver.frames.drop_frames import Passing
from tidegate.driver.frames.passes import Pass
from tidegate.driver.io import sinks
from tidegate.driver.io.publishing import Publisher
from tidegate.driver.io.staging import Staging
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.state.checkpoint import Checkpoint
from tidegate.window.drop.gap_table import GapTable

Report = TaskReport | MatchReport


class SinkStep:
    """Writes the outputs of a query, batch by batch."""

    def __init__(
        self,
        compiled: Compiled,
        staging: Staging,
        publisher: Publisher,
        checkpoint: Checkpoint,
        jobs: JobNames,
        on_step: Callable[[str, int], None],
    ):
        self._compiled, self._staging, self._publisher = compiled, staging, publisher
        self._checkpoint, self._jobs, self._on_step = checkpoint, jobs, on_step

    def run(self, passes: Sequence[Pass], plan: Plan, passing: Passing, reports: Sequence[Report]) -> None:
        """Write all outputs but the one that the action of the batch has written."""
        written = any(one.write is not None for one in passes)
        for output in self._compiled.outputs:
            if sinks.may_skip(output, plan.batch) and self._is_empty(output, reports):
                if written and self._publisher.takes(output):
                    self._publisher.drop(output, plan.batch)
                continue
            self._on_step(f"sink {output.name}", plan.batch)
            if written:
                continue
            self._jobs.next(f"output {output.name}")
            with writing(output.name, plan.batch):
                gaps = passing.before(self._compiled.feeding(output.node), output)
                self._write(output, passes, plan, gaps)

    def write_directly(self, one: Pass, plan: Plan, gaps: GapTable | None) -> None:
        """Write the one output of the flow; this runs its operators."""
        (output,) = self._compiled.outputs
        with writing(output.name, plan.batch, runs_flow=True):
            self._write_rows(output, [one], plan, gaps)

    def _write(self, output: Output, passes: Sequence[Pass], plan: Plan, gaps: GapTable | None) -> None:
        files: list[str] = []
        if gaps is None and output.name in self._staging.linked:
            operator = self._compiled.feeding(output.node)
            files = [file for one in passes for file in one.staged.get(operator, ())]
        if not files or not self._publisher.link(output, files, plan.batch):
            self._write_rows(output, passes, plan, gaps)

    def _write_rows(self, output: Output, passes: Sequence[Pass], plan: Plan, gaps: GapTable | None) -> None:
        frames = [f for one in passes if (f := one.rows(output, plan, gaps)) is not None]
        if not frames:  # A commit without rows, and an output that no operator with state feeds.
            return
        rows = frames[0]
        for more in frames[1:]:
            rows = rows.unionAll(more)
        # A function or a table cannot take back what a run has written that another one has replaced.
        self._checkpoint.check()
        if self._publisher.takes(output):
            self._publisher.write(output, rows, plan.batch)
        else:
            held = self._checkpoint
            sinks.write(output, rows, plan.batch, held.spark_log.query_id, held.run)

    def _is_empty(self, output: Output, reports: Sequence[Report]) -> bool:
        operator = self._compiled.shown_by(output)
        return operator is not None and operator.reports and not emitted(operator.name, reports)


def emitted(operator: str, reports: Sequence[Report]) -> int:
    """The rows that the tasks of an operator gave."""
    return sum(report.emitted for report in reports if report.operator == operator)
