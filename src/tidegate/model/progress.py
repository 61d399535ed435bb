"""The progress of a batch, as people and programs read it: typed, frozen, the same names everywhere.

    progress = query.lastProgress
    progress.latency.p95_seconds          attributes
    progress.to_dict()["latency"]         plain values
    progress.json                         one line of JSON

The same names are used in receipts and metrics. Times are ISO 8601 in UTC, durations are seconds, and a name
that ends in `_ratio` is a share of one. None means that a value is not known or does not apply.

`rows_offered = rows_processed + rows_shed + rows_late + rows_rejected` holds for every input in every batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tidegate.model.codec import from_plain, to_json_values
from tidegate.model.json_values import Json

#: Changes when a field is renamed or removed, or when its meaning changes; not when one is added.
SCHEMA_VERSION = 1

Health = Literal["overdue", "shedding", "repairing", "warming_up", "on_time"]
#: What a latency starts from: the row's `available_at`, the file's modification time, the trigger's start.
LatencyBasis = Literal["record", "file", "trigger"]
#: EXACT: the rows of an engine with unlimited time; SUBSET: some of them; ESTIMATED: estimates of them.
ResultMode = Literal["EXACT", "SUBSET", "ESTIMATED"]

GOAL_BELOW_OVERHEAD, GOAL_UNREACHABLE = "GOAL_BELOW_OVERHEAD", "GOAL_UNREACHABLE"
MAX_LOSS_REACHED, STATE_LIMIT_EXCEEDED = "MAX_LOSS_REACHED", "STATE_LIMIT_EXCEEDED"
STALE_ROWS_DROPPED, OUTPUT_SHUT_OFF = "STALE_ROWS_DROPPED", "OUTPUT_SHUT_OFF"
WINDOWS_DROPPED_EARLIER = "WINDOWS_DROPPED_EARLIER"
DEBTS_WRITTEN_OFF = "DEBTS_WRITTEN_OFF"
ROWS_OVERDUE, ROWS_UNEXPLAINED = "ROWS_OVERDUE", "ROWS_UNEXPLAINED"
#: Every code that a warning may have, and what it means.
WARNING_CODES: Mapping[str, str] = {
    GOAL_BELOW_OVERHEAD: "A batch without any work takes longer than the goal allows.",
    GOAL_UNREACHABLE: "The next batch will take too long, whatever may be shed.",
    MAX_LOSS_REACHED: "An output has reached its max_loss, and the goal asks for more shedding.",
    STATE_LIMIT_EXCEEDED: "The state is larger than max_state, and no more of it may be dropped.",
    STALE_ROWS_DROPPED: "The oldest rows of a stream were dropped, because other shedding was not enough.",
    WINDOWS_DROPPED_EARLIER: "An output lacks windows whose rows an earlier run dropped.",
    OUTPUT_SHUT_OFF: "An output is not computed, because no drop ratio within max_gap frees enough time.",
    DEBTS_WRITTEN_OFF: "Skipped pairs that waited for repair will never come.",
    ROWS_OVERDUE: "More than one row in twenty took longer than the goal, by the measured latency.",
    ROWS_UNEXPLAINED: "The ledger of a stream does not balance: a defect, please report it.",
}


@dataclass(frozen=True)
class LatencyProgress:
    """Time from the availability of a row to the publishing of the batch that processes it."""

    #: The goal; None without one.
    goal_seconds: float | None
    #: Half of the rows took at most this long; None in a batch without rows.
    p50_seconds: float | None
    #: 95 % of the rows took at most this long.
    p95_seconds: float | None
    #: The slowest row.
    max_seconds: float | None
    #: The share of rows that took longer than the goal; None without a goal or without rows.
    overdue_ratio: float | None
    #: Where the measurement starts; with "trigger", the time that rows waited before the batch is unknown.
    basis: LatencyBasis

    @property
    def is_measured(self) -> bool:
        """Whether it starts at the availability of rows, not at the trigger."""
        return self.basis != "trigger"


@dataclass(frozen=True)
class DurationProgress:
    """What a batch took; plan, execute, sink and commit add up to the total."""

    #: From the start of the batch until everything is committed.
    total_seconds: float
    #: What it may take under the goal or the trigger; None if neither sets it.
    budget_seconds: float | None
    #: Deciding what to shed and where rows go.
    plan_seconds: float
    #: Spark jobs: reading, joining, aggregating, storing state, repair.
    execute_seconds: float
    #: Writing the outputs.
    sink_seconds: float
    #: Learning from the batch and writing its manifest.
    commit_seconds: float


@dataclass(frozen=True)
class InputProgress:
    """One stream. If several operators read it, the rows of the one that shed most count."""

    #: Rows that the source gave: the sum of the next four.
    rows_offered: int
    #: Joined, matched or aggregated; rows that a filter in front of the operator removed are among them.
    rows_processed: int
    #: Left out to keep the goal.
    rows_shed: int
    #: Behind the watermark.
    rows_late: int
    #: Their time is null or too far ahead.
    rows_rejected: int
    #: Rows that wait at the source, estimated from files if it counts these; None if it does not report them.
    backlog_rows: int | None
    #: What they take at the speed of this batch; None if one of the two is not known.
    backlog_seconds: float | None
    #: Rows below it are late from the next batch on; None before the first row.
    watermark: str | None
    #: How far the watermark is behind the clock.
    watermark_lag_seconds: float | None


@dataclass(frozen=True)
class OperatorProgress:
    """One join, window aggregate or match. Fields that do not apply to its kind are None."""

    #: "join", "window", "match", or what an operator of the user's own says.
    kind: str
    #: Rows that left it.
    rows_emitted: int
    #: Joins: pairs that agree in key and time; an estimate where rows are found by key.
    pairs_candidate: int | None
    #: Those of them that were probed.
    pairs_probed: int | None
    #: pairs_probed / pairs_candidate, at most 1; None without candidates.
    probe_ratio: float | None
    #: The share of rows that a sifter, a random drop or stale-row shedding let in; None without rows.
    admit_ratio: float | None
    #: The share of windows that are dropped from now on; None where none may be.
    drop_ratio: float | None
    #: The share of rows that approximate windows keep.
    sample_ratio: float | None
    #: Rows, or partial aggregates, that are stored after the batch.
    state_rows: int
    #: Their size on disk.
    state_bytes: int
    #: Parallel tasks.
    instances: int
    #: Processor time of the heaviest instance over the mean; None without work.
    imbalance_ratio: float | None
    #: State rows that changed their instance in this batch.
    rows_moved: int
    #: Keys that are stored on several instances.
    keys_split: int


@dataclass(frozen=True)
class RecallProgress:
    """The share of the true result that was found, with a 95 % interval."""

    #: Between 0 and 1.
    estimate: float
    #: The lower end of the interval.
    low: float
    #: The upper end of the interval.
    high: float


@dataclass(frozen=True)
class OutputProgress:
    """One output."""

    #: None if only the sink knows, because a step behind the operator changes the number of rows.
    rows_written: int | None
    #: How the rows of this batch compare with those of an engine with unlimited time.
    mode: ResultMode
    #: Exact, and no row of its inputs was late or rejected in this batch.
    complete: bool
    #: The share of the true results of this batch that were found in it; None without a sound estimate.
    recall: RecallProgress | None
    #: The share of results that was shed, as measured; 0 where exact, None where it is not known.
    loss_ratio: float | None
    #: Windows that would have been written in this batch and were dropped; by groups, each counts for every
    #: cohort of groups that lacks it.
    windows_missing: int
    #: Pairs skipped and not repaired yet, after this batch; None without repair.
    debt_pairs: int | None
    #: Skipped pairs of earlier batches that this batch repaired.
    repaired_pairs: int | None
    #: Skipped pairs that this batch gave up.
    written_off_pairs: int | None


@dataclass(frozen=True)
class WarningProgress:
    """A condition that a person should know of."""

    #: One of `WARNING_CODES`.
    code: str
    #: What holds, with numbers, and what to do about it.
    message: str
    #: The batch in which it began; it survives restarts.
    since_batch_id: int


@dataclass(frozen=True)
class WouldShedInput:
    """What one stream would have lost; rows in front of windows that would be dropped do not count."""

    #: Rows that sifters, random drop, sampling and stale-row shedding would have left out.
    rows_shed: int = 0
    #: Stored rows that joins would have given up for `max_state` or a shorter window.
    rows_evicted: int = 0


@dataclass(frozen=True)
class WouldShedOperator:
    """What one operator would have done; None where it has no such level."""

    #: Joins: the share of candidate pairs that would have been probed.
    probe_ratio: float | None = None
    #: The share of rows that a sifter, a random drop or stale-row shedding would have let in.
    admit_ratio: float | None = None
    #: The share of windows that would be dropped from now on.
    drop_ratio: float | None = None
    #: The share of rows that approximate windows would have kept.
    sample_ratio: float | None = None
    #: Joins: candidate pairs that would not have been probed.
    pairs_skipped: int | None = None


@dataclass(frozen=True)
class WouldShedOutput:
    """What one output would have lost, as estimated from a batch that lost nothing."""

    #: The share of results that would be missing; of approximate windows: of their input rows.
    loss_ratio: float = 0.0
    #: Joins and matches: the share of the results that would have been found.
    recall: float | None = None
    #: Windows that closed with this batch and would have been dropped.
    windows_missing: int = 0


@dataclass(frozen=True)
class WouldShed:
    """What a batch would have left out under a goal that does not only observe; nothing of it was."""

    #: By stream.
    inputs: Mapping[str, WouldShedInput] = field(default_factory=dict)
    #: By operator that may shed.
    operators: Mapping[str, WouldShedOperator] = field(default_factory=dict)
    #: By output.
    outputs: Mapping[str, WouldShedOutput] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BatchIdentity:
    """Which batch of which query."""

    #: The version of these names.
    schema_version: int = SCHEMA_VERSION
    #: As given to `tg.start(name=…)`; None without a name.
    query_name: str | None
    #: Stays the same over restarts; None in runs over batch inputs.
    query_id: str | None
    #: New with every start; None in runs over batch inputs.
    run_id: str | None
    #: Counts up from 0 for the life of the checkpoint.
    batch_id: int
    #: When the batch was planned; a batch that runs again after a crash keeps it.
    started_at: str


@dataclass(frozen=True, kw_only=True)
class Progress(BatchIdentity):
    """What one batch did: see the module docstring.

    `health` is the first of these that holds:

    overdue      the p95 latency is beyond the goal. Where latency is not measured (basis "trigger") or there
                 is no latency goal: the batch took longer than its budget
    shedding     something was left out in this batch: rows, pairs, windows or state
    repairing    skipped pairs of earlier batches were repaired
    warming_up   one of the first batches of a run, while Java and Python still load and compile
    on_time      none of these

    >>> latency = LatencyProgress(2.0, 0.4, 0.9, 1.2, 0.0, "record")
    >>> duration = DurationProgress(0.5, 1.0, 0.1, 0.3, 0.05, 0.05)
    >>> progress = Progress(
    ...     query_name="dispatch", query_id=None, run_id=None, batch_id=7, started_at="2026-03-01T12:00:00Z",
    ...     health="on_time", summary="Batch 7: on time.", latency=latency, duration=duration)
    >>> progress.latency.p95_seconds
    0.9
    >>> progress.to_dict()["health"]
    'on_time'
    """

    #: See above.
    health: Health
    #: One sentence for people.
    summary: str
    #: From the availability of rows to the publishing of their results.
    latency: LatencyProgress
    #: What the batch took.
    duration: DurationProgress
    #: By stream.
    inputs: Mapping[str, InputProgress] = field(default_factory=dict)
    #: By operator.
    operators: Mapping[str, OperatorProgress] = field(default_factory=dict)
    #: By output.
    outputs: Mapping[str, OutputProgress] = field(default_factory=dict)
    #: What holds after this batch, and since when.
    warnings: tuple[WarningProgress, ...] = ()
    #: Under a goal that only observes: what would have been left out. None: the goal sheds, or there is none.
    would_shed: WouldShed | None = None

    def to_dict(self) -> Json:
        """The same as plain dictionaries, lists, numbers and texts."""
        plain: Json = to_json_values(self)
        return plain

    @property
    def json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Progress:
        """The value that `to_dict` or `json` was made of; ValueError for anything else."""
        return from_plain(cls, plain)
