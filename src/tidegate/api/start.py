"""`tidegate.start`: runs a flow. Importing this module starts nothing; Spark is imported by the call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, get_args

from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.names import checked_name, path_text
from tidegate.api.nodes import Output
from tidegate.errors import FlowError
from tidegate.quantities import Duration, duration_us, is_whole

if TYPE_CHECKING:
    from tidegate.driver.streaming_query import StreamingQuery

#: Against which watermark rows are late.
WatermarkRule = Literal["slowest", "own"]


@dataclass(frozen=True)
class StartOptions:
    """The settings of a query as the user gave them, checked."""

    name: str | None = None
    checkpoint: str | None = None
    trigger: Duration | None = None
    available_now: bool = False
    goal: Goal | None = None
    shed: Shed | None = None
    balance: Balance | None = None
    instances: int | None = None
    partitions: int | None = None
    watermark: WatermarkRule = "slowest"
    renames: Mapping[str, str] = field(default_factory=dict)
    retention: Duration | None = None
    seed: int = 0

    @property
    def trigger_us(self) -> int | None:
        """The time between the starts of two batches; None: back to back."""
        return None if self.trigger is None else duration_us(self.trigger, "trigger")

    @property
    def retention_us(self) -> int | None:
        """How long receipts are kept; None: as `state/receipt_log.Retention` says."""
        return None if self.retention is None else duration_us(self.retention, "retention")

    @property
    def changed(self) -> list[str]:
        """The settings that differ from their defaults."""
        return [one.name for one in fields(self) if getattr(self, one.name) != getattr(_DEFAULTS, one.name)]


_DEFAULTS = StartOptions()


def start(
    *outputs: Output,
    name: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    trigger: Duration | None = None,
    available_now: bool = False,
    goal: Goal | None = None,
    shed: Shed | None = None,
    balance: Balance | None = None,
    instances: int | None = None,
    partitions: int | None = None,
    watermark: WatermarkRule = "slowest",
    renames: Mapping[str, str] | None = None,
    retention: Duration | None = None,
    seed: int = 0,
) -> StreamingQuery:
    """Run a flow and return a handle on the query.

    `outputs`: what `Stream.write_to` and `Stream.write_to_table` returned.
    `name`: the name of the query in logs, progress and Spark's user interface.
    `checkpoint`: the folder that holds the state; a query continues from it. Required for streams.
    `trigger`: the time between the starts of two batches ("1 second"); None: batches follow each other.
    `available_now`: process what is available now, then stop. Excludes `trigger` and `goal`.
    `goal`: the latency that results must keep; without a goal nothing is shed.
    `shed`: what is left out under overload to keep the goal.
    `balance`: how work is distributed over instances; it loses nothing and needs no goal.
    `instances`: parallel tasks of each operator; the session's parallelism by default. May change between
    runs.
    `partitions`: parts of the state that can move between instances; eight per instance by default, fixed for
    the life of a checkpoint.
    `watermark`: rows are late as Spark judges them, by the slowest watermark of the streams that meet
    (`slowest`), or each stream is judged by itself (`own`): less state, and rows that lag their stream go.
    `renames`: old names of streams, operators and outputs and their new ones, for a checkpoint that has the
    old ones: `{"near": "close"}`. Default names made of them follow. Harmless once it is done.
    `retention`: how long receipts are kept at all, 400 days by default. Those of single batches are kept for
    a day of it, sums by minute for a week, sums by hour to its end.
    `seed`: decides which rows are sampled; the same seed gives the same choices.

    Batch inputs run at once, emit everything, and refuse settings that cannot matter to them.

    >>> near = orders.join(tracks, on="cell", within="1 minute", name="near")
    >>> query = tg.start(near.write_to("parquet", "out/near"))
    >>> query.receipts(by="total")[["name", "mode", "rows_offered"]].values.tolist()
    [['orders', 'EXACT', 3], ['tracks', 'EXACT', 3], ['near', 'EXACT', 6]]
    """
    options = StartOptions(
        None if name is None else checked_name(name, "query"),
        None if checkpoint is None else path_text(checkpoint, "The checkpoint"),
        trigger,
        available_now,
        goal,
        shed,
        balance,
        instances,
        partitions,
        watermark,
        _renames(renames),
        retention,
        seed,
    )
    check_options(options)
    # Spark is imported only here, so that describing a flow needs no Java.
    from tidegate.driver.start import run_flow

    return run_flow(outputs, options)


def _renames(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """The renames, if each can be told from every other whatever was done by earlier runs."""
    if given is None:
        return {}
    texts = isinstance(given, Mapping) and all(isinstance(one, str) for pair in given.items() for one in pair)
    names = [name for pair in given.items() for name in pair] if texts else []
    if not texts or len(set(names)) < len(names):
        raise FlowError(
            "renames must give every old name a new one, and no name may occur twice",
            code="RENAMES_INVALID",
            got=f"renames={given!r}",
            why="At the next start with the same renames it must be clear which of them are done",
            do='Write renames={"old": "new"}. To exchange two names, or to use a name again that becomes '
            "free, start once in between with a third name",
        )
    return {old: checked_name(new, "part of the flow") for old, new in given.items()}


def check_options(options: StartOptions) -> None:
    """Refuse settings that are wrong whatever the flow is."""
    for name, kind in (("goal", Goal), ("shed", Shed), ("balance", Balance)):
        value = getattr(options, name)
        if value is not None and not isinstance(value, kind):
            raise FlowError(
                f"{name} is not a tg.{kind.__name__}",
                code="START_SETTING_TYPE",
                got=repr(value),
                do=f"Write {name}=tg.{kind.__name__}(…), or leave it out",
            )
    if options.watermark not in get_args(WatermarkRule):
        raise FlowError(
            "Unknown watermark rule",
            code="WATERMARK_RULE_UNKNOWN",
            got=repr(options.watermark),
            do="Use 'slowest' or 'own'",
        )
    if not is_whole(options.seed, 0) or options.seed >= 2**63:
        raise FlowError(
            "The seed is out of range",
            code="SEED_RANGE",
            got=repr(options.seed),
            do="Give a whole number from 0 to 2**63 - 1",
        )
    _check_times(options)


def _check_times(options: StartOptions) -> None:
    if isinstance(options.trigger, str) and options.trigger.replace("_", " ").lower() == "available now":
        raise FlowError(
            "trigger takes a duration",
            code="TRIGGER_AVAILABLE_NOW",
            got=repr(options.trigger),
            do="Write available_now=True",
        )
    _ = options.trigger_us, options.retention_us
    if not isinstance(options.available_now, bool):
        raise FlowError(
            "available_now is True or False",
            code="AVAILABLE_NOW_TYPE",
            got=repr(options.available_now),
            do="Write available_now=True",
        )
    if options.available_now and options.trigger is not None:
        raise FlowError(
            "available_now and trigger exclude each other",
            code="AVAILABLE_NOW_WITH_TRIGGER",
            got=f"trigger={options.trigger!r}, available_now=True",
            why="A query that stops when everything is processed has no rhythm to keep",
            do="Leave one of them out",
        )
    if options.available_now and options.goal is not None:
        raise FlowError(
            "available_now and a latency goal exclude each other",
            code="AVAILABLE_NOW_WITH_GOAL",
            got=f"goal={options.goal!r}, available_now=True",
            why="Rows that wait for the next run have no latency to keep, and shedding would lose results",
            do="Leave out the goal, or run with trigger='1 second'",
        )
