"""A match that goes on under other queries and goals: every hit is right, and every receipt is true.

The task, the controller of sifters, plans and receipts are those of the engine; a sifter is applied by the
task, from hashes, as if it were too large for Spark. A run may begin with a batch that the run before had
planned, with its sifter if the columns of the queries are the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.api.goal import Shed
from tidegate.api.range_queries import RangeQuery
from tidegate.control import planning
from tidegate.control.actuators import sifting
from tidegate.control.actuators.sifting import Offered, SiftSettings
from tidegate.control.receipts.ledger import SIFTER, Counted
from tidegate.control.receipts.receipts import EXACT, BatchOutcome, receipt_of
from tidegate.model.graph import Lineage, Outlet, Reader
from tidegate.model.manifest import SparkBatch
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.model.reports import MatchReport, reports_in
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.query_set import QuerySet
from tidegate.worker.match.task import MatchTask, MatchWork, Queries
from tidegate.worker.runtime.layout import HASH, QUERY_NAME, REPORT, SAMPLE, TIME, MatchLayout

MATCH = "hits"
LINES = Lineage(("rows",), (Reader(MATCH, 0, "rows", SIFTER, True),), (Outlet("out", MATCH),), {})
#: Rows of a batch: enough to build regions from the samples of a few.
ROWS = 1_500


@dataclass(frozen=True)
class Here:
    """A value that a worker has."""

    value: Queries


@dataclass(frozen=True)
class Squares:
    """Queries of rows with x from a corner on, to 0.1 further, and y, if at all, from the corner on."""

    corners: NDArray[np.float64]
    both: bool

    @property
    def queries(self) -> QuerySet:
        wheres = [
            f"x >= {x!r} and x < {x + 0.1!r}" + (f" and y >= {y!r}" if self.both else "")
            for x, y in self.corners.tolist()
        ]
        asked = [RangeQuery(f"q{number}", where) for number, where in enumerate(wheres)]
        return QuerySet.of(asked, {"x": "number", "y": "number"})

    def hits(self, rows: NDArray[np.float64]) -> set[tuple[int, str]]:
        """By definition: rows and the queries that they satisfy."""
        x, y = rows[:, :1], rows[:, 1:]
        low = self.corners[:, 0]
        inside = (x >= low) & (x < low + 0.1) & ((y >= self.corners[:, 1]) | (not self.both))
        return {(int(row), f"q{query}") for row, query in zip(*np.nonzero(inside), strict=True)}


class Story:
    """A random checkpoint of one match, run after run; every batch is judged."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.manifest = planning.first_manifest({}, ["rows"], {}, 0)
        #: Hits that came, that did not, and batches that were said to be exact.
        self.came = self.missing = self.exact = 0

    def tell(self) -> None:
        begun: Plan | None = None
        for _ in range(int(self.rng.integers(2, 5))):
            squares, sheds = self._squares(), self.rng.random() < 0.7
            shed = Shed(regions=int(self.rng.choice([1, 4, 16])))
            run = SiftSettings(shed, {MATCH: squares.queries}, 1.0, 1.0)
            for _ in range(int(self.rng.integers(1, 5))):
                plan = begun or self._plan(run if sheds else None)
                begun = None
                self._batch(run if sheds else None, squares, plan)
            begun = self._plan(run if sheds else None) if self.rng.random() < 0.4 else None

    def _squares(self) -> Squares:
        """Over x, or over x and y: a sifter of the other kind does not fit."""
        corners = self.rng.uniform(0, 0.9, (int(self.rng.integers(2, 20)), 2))
        return Squares(corners, bool(self.rng.random() < 0.7))

    def _plan(self, run: SiftSettings | None) -> Plan:
        """The plan of the next batch, as a file has it."""
        sifters = {} if run is None else json.loads(json.dumps(sifting.decide(run, self.manifest)))
        batch = self.manifest.batch + 1
        decided = PlanDecisions(shed=ShedPlan(sifters=sifters), spark_batch=SparkBatch(batch))
        return planning.next_plan(batch, self.manifest, {}, batch * 1_000_000, decided)

    def _batch(self, run: SiftSettings | None, squares: Squares, plan: Plan) -> None:
        coordinates = self.rng.beta(2, 5, (ROWS, 2))
        hits, report = self._ran(squares.queries, plan, coordinates)
        true = squares.hits(coordinates)
        assert hits <= true
        after = replace(self.manifest, batch=plan.batch)
        counted = Counted(arrived={"rows": ROWS}, entered={MATCH: ROWS})
        receipt, _ = receipt_of(LINES, BatchOutcome(plan, self.manifest, after, [], [report], counted))
        stream, output = receipt["rows"]
        assert stream["rows_offered"] == stream["rows_processed"] + stream["rows_shed"] == ROWS
        assert output["rows_written"] == len(hits)
        if output["mode"] == EXACT:
            assert hits == true, "a receipt says EXACT, and a hit is missing"
        else:
            assert stream["rows_shed"] > 0
        self.came, self.missing = self.came + len(hits), self.missing + len(true - hits)
        self.exact += output["mode"] == EXACT
        control = dict(after.control)
        if run is not None:
            level = {MATCH: float(self.rng.choice([0.1, 0.4, 0.8, 1.0]))}
            learnt = sifting.learn(run, self.manifest, plan, [report], Offered({MATCH: ROWS}, 1.0), level)
            control[sifting.CONTROL] = json.loads(json.dumps(learnt))
        self.manifest = replace(after, control=control)

    def _ran(
        self, queries: QuerySet, plan: Plan, coordinates: Any
    ) -> tuple[set[tuple[int, str]], MatchReport]:
        planned = plan.shed.sifters.get(MATCH)
        sifter = None if planned is None else Sifter.from_json(planned)
        if sifter is not None and sifter.axes != queries.boxes.axes:
            sifter = None
        schema = pa.schema([("n", pa.int64()), (QUERY_NAME, pa.string()), (REPORT, pa.string())])
        layout = MatchLayout(MATCH, "rows", queries.boxes.axes, schema.serialize().to_pybytes())
        sent = Here(Queries(QueryIndex.of(queries.boxes), pa.array(queries.names)))
        work = MatchWork(layout, sent, plan.batch, sifter=sifter)
        columns: dict[str, Any] = {"n": np.arange(ROWS), TIME: np.arange(ROWS)}
        columns |= {"x": coordinates[:, 0], "y": coordinates[:, 1]}
        if sifter is not None:
            lots = self.rng.integers(-(2**63), 2**63, ROWS)
            sampled = self.rng.random(ROWS) < sifter.sample_share
            # A sample passes whatever the thresholds are: it has the highest lot.
            columns |= {HASH: np.where(sampled, -1, lots), SAMPLE: sampled}
        *results, last = MatchTask(work, "nowhere").run(iter([pa.RecordBatch.from_pydict(columns)]))
        _, (report,) = reports_in(last.column(REPORT).to_pylist())
        assert isinstance(report, MatchReport)
        return {hit for one in results for hit in _hits(one)}, report


def _hits(result: pa.RecordBatch) -> Sequence[tuple[int, str]]:
    return list(zip(result.column("n").to_pylist(), result.column(QUERY_NAME).to_pylist(), strict=True))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=settings().max_examples // 3)
def test_hits_are_right_and_receipts_true_through_restarts_with_other_queries(seed: int) -> None:
    Story(seed).tell()


def test_stories_of_matches_sift_some_rows_and_keep_all_of_others() -> None:
    stories = [Story(seed) for seed in range(10)]
    for one in stories:
        one.tell()
    assert sum(one.came for one in stories) > 1_000
    assert sum(one.missing for one in stories) > 1_000
    assert sum(one.exact for one in stories) > 5
