"""The rows of one batch, by what reads them.

    plan of a stream ─▶ time ─▶ counts ─┬─▶ rows that a reader drops ─▶ its steps ─▶ reader
                                        │
                                        └ kept, if several read it and computing it twice would cost more

Every reader of streams is an `Entry` (`operators/tap.py`): a plan that was compiled once and is put on top of
the rows of the batch here. Times too far ahead are judged by the clock of the plan, so that a replay rejects
the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.control.latency import QUANTILE_STEPS
from tidegate.driver.compile import ports
from tidegate.driver.frames.grafts import analyzed, at_time, bounded, frame_of, standing_in
from tidegate.driver.frames.query_input import StreamPlans
from tidegate.driver.sql_text import data, lot, lot_limit
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US
from tidegate.worker.runtime.layout import TIME

if TYPE_CHECKING:
    from tidegate.driver.compile.compiled import Compiled
    from tidegate.driver.compile.nested_columns import NestedColumns
    from tidegate.driver.operators.tap import Entry

Step = Callable[[DataFrame], DataFrame]
#: The numbers of an observation: of a stream in front of its steps; of rows counted elsewhere.
OFFERED, REJECTED, SEEN, AVAILABLE, ROWS = "offered", "rejected", "seen_us", "available", "rows"


def stream_count(stream: str) -> str:
    """The name under which Spark counts the rows of a stream."""
    return f"stream {stream}"


def late_count(stream: str) -> str:
    """The name under which Spark counts the late rows of a stream that are written as they are read."""
    return f"late {stream}"


def available_count(stream: str) -> str:
    """The name under which Spark observes when the rows of a stream became available."""
    return f"available {stream}"


@dataclass(frozen=True)
class Draw:
    """Keeps a share of rows, by a hash of the row: see `sql_text.lot`."""

    share: float
    seed: int
    batch: int

    def loses(self, frame: DataFrame, read: Collection[str] | None) -> str:
        """SQL: whether a row is not kept. `read`: the columns that are read of it; None: all."""
        names = Counter(name.lower() for name in frame.columns)
        columns = [
            field
            for field in frame.schema.fields
            if field.name != TIME and names[field.name.lower()] == 1 and (read is None or field.name in read)
        ]
        return f"{lot(self.seed, self.batch, columns)} >= {data(lot_limit(self.share), 'bigint')}"


@dataclass(frozen=True)
class FrontDrop:
    """Rows that a reader drops in front of its steps; Spark counts them there."""

    #: The name of the count.
    counted_as: str
    #: SQL over the time of a row: whether it may be dropped, and whether its time is usable.
    dropped: str
    usable: str
    #: Which of these rows are dropped; None: all.
    draw: Draw | None = None
    #: They are dropped behind the steps, because one reader serves two inputs.
    behind: bool = False

    def of(self, frame: DataFrame, read: Collection[str] | None = None) -> DataFrame:
        """The rows that are left. `read`: the columns of the frame that the reader needs; None: all."""
        lost = self.dropped if self.draw is None else f"({self.dropped} AND {self.draw.loses(frame, read)})"
        rows = F.expr(f"count_if({lost}) AS {ROWS}")
        seen = F.expr(f"max(CASE WHEN {self.usable} THEN {TIME} END) AS {SEEN}")
        return frame.observe(self.counted_as, rows, seen).where(f"NOT coalesce({lost}, false)")


class StreamRows:
    """The rows of one batch; `release` frees what was kept of them."""

    def __init__(self, compiled: Compiled, frame: DataFrame | None = None, query: Any = None) -> None:
        """`frame`: as Spark passes it; None in a batch run. `query`: the Java streaming query."""
        self._compiled = compiled
        self.session: Any = compiled.spark if frame is None else frame.sparkSession
        self._given = (
            StreamPlans({name: analyzed(source.frame) for name, source in compiled.sources.items()})
            if frame is None
            else compiled.query_input.plans(frame, query)
        )
        self._plan: Plan | None = None
        #: By stream that is kept: its rows.
        self._kept: dict[str, DataFrame] = {}
        #: By name of an observation: the execution that publishes it.
        self._observing: dict[str, Any] = {}
        self._entered: dict[int, DataFrame] = {}

    def begin(self, plan: Plan) -> None:
        """From here on rows are read under this plan."""
        self._plan = plan

    def new(self, entry: Entry, fronts: Sequence[FrontDrop] = ()) -> DataFrame | None:
        """The rows of a reader; None if its streams have none. `fronts`: what it drops, and counts."""
        return None if self.is_empty(entry) else self.entry(entry, fronts)

    def entry(
        self,
        entry: Entry,
        fronts: Sequence[FrontDrop] = (),
        behind: Step | None = None,
        bound: Step = bounded,
    ) -> DataFrame:
        """The same; a frame without rows if its streams have none.

        `behind`: a filter or projection behind the steps. Spark moves a filter in front of those that leave
        its columns alone. `bound`: makes the rows a source of their own.
        """
        if id(entry) not in self._entered:
            self._entered[id(entry)] = bound(self._made(entry, fronts, behind))
        return self._entered[id(entry)]

    @property
    def reads_anything(self) -> bool:
        """Whether a source has given the batch anything new, whatever the user's frames leave of it."""
        return any(self._given.reading)

    @property
    def size_bytes(self) -> int | None:
        """How much the sources give to the batch, as far as Spark knows; None: it does not."""
        return self._given.size_bytes

    def has_rows(self, stream: str) -> bool:
        """Whether the sources of a stream have new rows."""
        return stream not in self._given.empty

    def scanned(self, entry: Entry) -> DataFrame | None:
        """The rows of a reader, uncounted, before there is a plan."""
        if self.is_empty(entry):
            return None
        plans = {place: analyzed(self._read(place, entry)) for place in entry.timed}
        return bounded(frame_of(self._on_top(entry, plans), self.session))

    def kept(self, stream: str) -> DataFrame | None:
        """The rows of a shared stream, with their times; None if there are none."""
        if stream in self._given.empty:
            return None
        if stream not in self._kept:
            frame, names = self._counted(stream, self._timed(stream))
            self._kept[stream] = bounded(frame).persist(StorageLevel.MEMORY_AND_DISK)
            self._publishes(frame, names)
        return self._kept[stream]

    def observed(self, name: str) -> Callable[[str], Any] | None:
        """The numbers of an observation, by name; None if Spark has none, although it ran."""
        row = self._observing[name].observedMetrics().get(name)
        return row.get().getAs if row.isDefined() else None

    def observes(self, name: str) -> bool:
        """Whether rows are counted under this name: not if there are none."""
        return name in self._observing

    def report(self, query: Any, rows: Mapping[str, int]) -> None:
        """Tell Spark how many rows each stream had, for its own progress."""
        self._compiled.query_input.count_rows(query, self._given, rows)

    def release(self) -> None:
        """Free what was kept."""
        for frame in self._kept.values():
            frame.unpersist()

    def usable(self, stream: str) -> str:
        """SQL: whether the time of a row of a stream is usable, as far as Spark decides it."""
        source = self._compiled.sources[stream]
        usable = f"{TIME} != {BEGINNING_US}L"
        if stream not in self._compiled.judged_by_spark or source.max_ahead_us is None or self._plan is None:
            return usable
        return f"{usable} AND {TIME} <= {data(self._plan.now_us + source.max_ahead_us, 'bigint')}"

    def is_empty(self, entry: Entry) -> bool:
        """Whether the streams of a reader have no new rows."""
        return not any(map(self.has_rows, entry.streams))

    def _made(self, entry: Entry, fronts: Sequence[FrontDrop], behind: Step | None) -> DataFrame:
        names = [front.counted_as for front in fronts]
        bases: dict[str, DataFrame] = {}
        for stream in entry.streams:
            frame, counted = self._base(stream, entry)
            names += counted
            if entry.usable_only and stream in self._compiled.observed:
                frame = frame.where(self.usable(stream))
            for front in fronts:
                frame = frame if front.behind else front.of(frame, self._reads(entry, front))
            bases[stream] = frame
        plans = {place: _plan_at(place, entry, bases) for place in entry.timed}
        rows = frame_of(self._on_top(entry, plans), self.session)
        if entry.counted_as is not None:
            rows = rows.observe(entry.counted_as, F.expr(f"count(1) AS {ROWS}"))
            names.append(entry.counted_as)
        for front in fronts:
            rows = front.of(rows) if front.behind else rows
        rows = rows if behind is None else behind(rows)
        direct = self._compiled.direct_tap
        if direct is not None and direct.entry is entry and self._plan is not None:
            before_us = data(self._plan.late.streams[direct.stream], "bigint")
            late = f"{self.usable(direct.stream)} AND {TIME} < {before_us}"
            rows = rows.observe(late_count(direct.stream), F.expr(f"count_if({late}) AS {ROWS}"))
            names.append(late_count(direct.stream))
        self._publishes(rows, names)
        return rows

    def _on_top(self, entry: Entry, plans: Mapping[str, Any]) -> Any:
        nested, now_ms = self._nested(entry), self._given.now_ms
        if nested is not None:
            return nested.above.on(plans)
        plan = entry.graft.on(plans)
        return plan if now_ms is None or not entry.graft.reads_clock else at_time(plan, self.session, now_ms)

    def _nested(self, entry: Entry) -> NestedColumns | None:
        """The two parts of a reader, unless its stream is kept for several, or counted by another column."""
        whole = any(
            stream in self._compiled.shared or self._compiled.sources[stream].available_at is not None
            for stream in entry.streams
        )
        return None if whole else entry.nested

    def _reads(self, entry: Entry, front: FrontDrop) -> Collection[str] | None:
        """The columns that a reader reads of its stream, by which rows are drawn; None: all there are."""
        return None if front.draw is None or self._nested(entry) is not None else entry.reads

    def _publishes(self, frame: DataFrame, names: list[str]) -> None:
        self._observing.update(dict.fromkeys(names, frame._jdf.queryExecution()))

    def _base(self, stream: str, entry: Entry) -> tuple[DataFrame, list[str]]:
        """The rows of a stream with their times, and the names of the counts that run with them."""
        if stream in self._compiled.shared:
            kept = self.kept(stream)
            return (self._timed(stream) if kept is None else kept), []
        return self._counted(stream, self._read(stream, entry))

    def _counted(self, stream: str, frame: DataFrame) -> tuple[DataFrame, list[str]]:
        """The same; a stream is counted where it is read first, because it counts each time it is read."""
        names = []
        name, available = stream_count(stream), available_count(stream)
        if stream in self._compiled.observed and not self.observes(name):
            usable = self.usable(stream)
            # Text is one call into Java; of columns each function is several.
            frame = frame.observe(
                name,
                F.expr(f"count(1) AS {OFFERED}"),
                F.expr(f"count_if(NOT ({usable})) AS {REJECTED}"),
                F.expr(f"max(CASE WHEN {usable} THEN {TIME} END) AS {SEEN}"),
            )
            names.append(name)
        if self._compiled.sources[stream].available_at is not None and not self.observes(available):
            frame = frame.observe(available, self._available(stream, frame))
            names.append(available)
        return frame, names

    def _available(self, stream: str, frame: DataFrame) -> Column:
        """Quantiles of `available_at` in microseconds as one text, null if all of it is.

        The sketch has ten times the resolution of these quantiles, so they are exact to a tenth of a step.
        """
        micros = ports.micros(frame, str(self._compiled.sources[stream].available_at))
        assert micros is not None
        shares = [step / QUANTILE_STEPS for step in range(QUANTILE_STEPS + 1)]
        quantiles = F.percentile_approx(micros, shares, 10 * QUANTILE_STEPS)
        return F.array_join(quantiles.cast("array<string>"), ",").alias(AVAILABLE)

    def _read(self, stream: str, entry: Entry) -> DataFrame:
        """What a reader reads of a stream: its rows with their times, all columns or those that it needs."""
        nested = self._nested(entry)
        if nested is None:
            return self._timed(stream)
        return frame_of(nested.below.on({stream: analyzed(self._timed(stream))}), self.session)

    def _timed(self, stream: str) -> DataFrame:
        plans = {stream: self._given.plans[stream]}
        return frame_of(self._compiled.timed(stream).on(plans), self.session)


def _plan_at(place: str, entry: Entry, bases: Mapping[str, DataFrame]) -> Any:
    """The rows for one place of a reader's plan; in a union they get the column identities of that place."""
    if place in bases:
        return analyzed(bases[place])
    return standing_in(analyzed(entry.timed[place]), bases[entry.stream_of[place]])
