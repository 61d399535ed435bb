"""Streams: handles on the nodes of a flow.

Every method of a `Stream` adds a node to a directed graph and returns a new handle, so a stream may feed any
number of others. Data frames and column expressions are passed on unread, so this module needs no Spark.
`tidegate.start` compiles and runs the graph.

    tg.stream ─▶ filter / select / with_column / transform ─▶ join / match / window ─▶ … ─▶ write_to
        │
        └─▶ late, rejected: rows that the stream did not accept, as separate streams
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.api.join_conditions import Condition, _on, _within
from tidegate.api.nodes import Join, Match, Node, Output, Refused, Source, StatelessStep, Window
from tidegate.api.range_queries import Query
from tidegate.api.windows import Windowed, _spec
from tidegate.errors import FlowError
from tidegate.join.within import Unbounded
from tidegate.quantities import duration_us, is_whole
from tidegate.window.spec import RowsSpec

HOWS = ("inner", "left", "right", "full", "left_semi", "left_anti")
_SPARK_HOWS = {
    "leftouter": "left",
    "left_outer": "left",
    "rightouter": "right",
    "right_outer": "right",
    "outer": "full",
    "fullouter": "full",
    "full_outer": "full",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
}
#: Spark formats that need a path.
FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "avro", "xml")
#: Default of `max_ahead`: a timestamp further ahead of the clock is taken for an error.
MAX_AHEAD_DEFAULT = "366 days"


class Stream:
    """A stream of rows with an event time; see the module docstring."""

    def __init__(self, node: Node):
        self._node = node

    def filter(self, condition: Any) -> Stream:
        """Keep the rows for which the SQL text or column expression is true."""
        return self._step("filter", lambda frame: frame.filter(condition))

    where = filter

    def select(self, *columns: Any) -> Stream:
        """Project, as `DataFrame.select` does. The stream's time is kept in a hidden column."""
        wanted = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns

        def project(frame: Any) -> Any:
            chosen = frame.select(*wanted)
            # "*" includes the hidden columns.
            missing = [name for name in _hidden(frame) if name not in chosen.columns]
            return frame.select(*wanted, *missing) if missing else chosen

        names = tuple(name for name in wanted if isinstance(name, str) and name.isidentifier())
        by_name = len(set(names)) == len(wanted)
        return self._step("select", project, names if by_name else None)

    def with_column(self, name: str, expression: Any) -> Stream:
        """Add or replace a column."""
        return self._step("with_column", lambda frame: frame.withColumn(name, expression))

    def transform(self, function: Callable[[Any], Any]) -> Stream:
        """Apply any stateless function from data frame to data frame (for example a join with a table)."""
        if not callable(function):
            raise FlowError("transform needs a function", got=repr(function), do="transform(lambda frame: …)")
        return self._step("transform", function)

    @property
    def late(self) -> Stream:
        """The rows of this source that arrived with a time below its watermark."""
        return self._refused("late")

    @property
    def rejected(self) -> Stream:
        """The rows of this source whose time is null or too far in the future."""
        return self._refused("rejected")

    def join(
        self,
        other: Stream,
        on: str | Mapping[str, str] | Condition | Sequence[str | Condition],
        within: Any,
        how: str = "inner",
        where: Any = None,
    ) -> Stream:
        """Join with another stream on equal keys or a condition such as `tidegate.overlap`, and time.

        `on`: a column, a list of columns, a dict from left to right names; a list may hold one condition.
        `within=(w_left, w_right)`: a pair matches when `-w_left <= left.time - right.time <= w_right`.
        One duration means both; `tidegate.tumbling(size)` means the same tumbling window; None means the
        full history (inner and semi joins only, because an unmatched row could never be emitted).
        """
        if not isinstance(other, Stream):
            raise FlowError(
                "A stream joins with a stream", got=type(other).__name__, do="Wrap it: tg.stream(…)"
            )
        kind = _SPARK_HOWS.get(how, how) if isinstance(how, str) else how
        if kind not in HOWS:
            raise FlowError("Unknown kind of join", got=repr(how), do="Use one of " + ", ".join(HOWS))
        condition = _within(within)
        if isinstance(condition, Unbounded) and kind not in ("inner", "left_semi"):
            raise FlowError(
                "A join over the full history cannot emit lonely rows",
                got=f"how={kind!r} with within=None",
                why="Without a window a partner may always still come",
                do="Give a window, or use inner or left_semi",
            )
        for side in (self, other):
            side._refuse_as_input_of(
                "joined", "Their partners may be forgotten already, so pairs would be lost at random"
            )
        keys, matching = _on(on)
        return Stream(Join(self._node, other._node, keys, condition, kind, where, matching))

    def match(
        self,
        queries: Sequence[Query],
        *,
        sources: str | os.PathLike[str] | None = None,
        mark: str | None = None,
    ) -> Stream:
        """Each row once for every query that it satisfies, with the name of the query in `query_id`.

        `queries`: any number of `tidegate.Query` range predicates over the columns of this stream. With a
        goal, the rows that are worth least to the queries are dropped in front of the match under overload.
        With `sources` they are dropped at the source: `tidegate sift --follow` reads its filters from that
        folder, counts offered rows there, and marks samples in the column `mark`.
        """
        if (sources is None) != (mark is None):
            raise FlowError(
                "Sifting at the sources needs a folder and the column that marks samples",
                got=f"sources={sources!r}, mark={mark!r}",
                why="Without marked samples nobody knows what the sources dropped",
                do="Give both, and run `tidegate sift --follow FOLDER --mark COLUMN` at the sources",
            )
        self._refuse_as_input_of("matched", "They go straight to an output, past all operators")
        folder = None if sources is None else path_text(sources, "The folder of a match's sources")
        return Stream(Match(self._node, _queries(queries), folder, mark))

    def window(
        self,
        size: str | RowsSpec,
        slide: str | None = None,
        by: str | Sequence[str] = (),
        approximate: bool = False,
    ) -> Windowed:
        """Windows of event time, aligned to the epoch, to be aggregated: `.agg(n=F.count("*"))`.

        A new window begins every `slide` (default: `size`, which gives tumbling windows). `by`: the grouping
        columns; each group has its own windows. `tidegate.rows(100, slide=10)` in place of a size gives
        windows of 100 rows. `approximate`: under a goal, rows may be sampled under overload; results are
        then estimates with intervals (see `agg`).
        """
        self._refuse_as_input_of("aggregated", "Their windows may be closed already, and cannot come twice")
        names = tuple(by) if isinstance(by, Sequence) and not isinstance(by, str) else (by,)
        windowed = Windowed(self._node, _spec(size, slide), names, _aggregated, approximate)
        _refuse_hidden(windowed.by)
        return windowed

    def write_to(
        self,
        target: str | Callable[[Any, int], None],
        path: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        max_gap: int | str | None = None,
        **options: Any,
    ) -> Output:
        """Send the rows to a function of (data frame, batch id), or to a Spark batch format.

        With a path each batch fills the directory `batch=N` under it and overwrites it on a replay, so the
        files hold every row exactly once. Without one (`noop`, `jdbc`, …) rows are appended.
        `max_gap`, for windows under a goal: the longest run of windows that may be missing under overload,
        as a number or a duration; the windows that are written are exact. None: all are written.
        """
        _check_gap(max_gap)
        if name is not None and (not isinstance(name, str) or not name):
            raise FlowError(
                "The name of an output is a text", got=repr(name), why="Goals and receipts use it"
            )
        if callable(target):
            _refuse_beside_a_function(path, options)
            label = name or str(getattr(target, "__name__", "function"))
            return Output(self._node, label, function=target, max_gap=max_gap)
        if not isinstance(target, str) or not target:
            raise FlowError(
                "An output is a Spark format or a function",
                got=repr(target),
                do='Write for example write_to("parquet", "out/pairs") or write_to(my_function)',
            )
        texts = {key: str(value) for key, value in options.items()}
        if path is None and target in FILE_FORMATS:
            raise FlowError(
                f"A {target} output needs a path", do=f'Say where files go: write_to({target!r}, "out/pairs")'
            )
        folder = None if path is None else path_text(path, f"The path of a {target} output")
        label = name or (folder.rstrip("/").rsplit("/", 1)[-1] if folder else target)
        return Output(self._node, label, format=target, path=folder, options=texts, max_gap=max_gap)

    def _step(self, kind: str, apply: Callable[[Any], Any], columns: tuple[str, ...] | None = None) -> Stream:
        return Stream(StatelessStep(self._node, kind, apply, columns))

    def _refused(self, kind: str) -> Stream:
        if not isinstance(self._node, Source):
            raise FlowError(
                f"Only a source stream has {kind} rows",
                why="Time is judged once, where rows enter, before any box",
                do=f"Take `.{kind}` of the stream that tg.stream(…) returned",
            )
        return Stream(Refused(self._node, kind))

    def _refuse_as_input_of(self, done: str, why: str) -> None:
        node = self._node
        while isinstance(node, (StatelessStep, Match, Window)):
            node = node.parent
        if isinstance(node, Refused):
            raise FlowError(
                f"The {node.kind} rows of a stream cannot be {done}",
                why=why,
                do="Write them out, or give the stream a larger lateness",
            )


def _refuse_beside_a_function(path: object, options: Mapping[str, Any]) -> None:
    if path is not None or options:
        raise FlowError(
            "A function takes no path and no options",
            got=", ".join(map(str, filter(None, [path, *options]))),
            why="They would be ignored",
            do="Let the function know them itself, or name a Spark format",
        )


#: Columns with this prefix belong to the engine.
HIDDEN = "_tidegate_"


def _refuse_hidden(columns: Sequence[str]) -> None:
    reserved = [column for column in columns if column.lower().startswith(HIDDEN)]
    if reserved:
        raise FlowError(
            f"Columns that start with {HIDDEN!r} are reserved", got=", ".join(reserved), do="Rename them"
        )


def _aggregated(window: Window) -> Stream:
    _refuse_hidden([name for name, _ in window.aggregates])
    return Stream(window)


def _hidden(frame: Any) -> list[str]:
    return [column for column in frame.columns if column.startswith(HIDDEN)]


def stream(
    frame: Any,
    *,
    time: str,
    name: str,
    lateness: str = "0 seconds",
    idle_timeout: str | None = None,
    max_ahead: str | None = MAX_AHEAD_DEFAULT,
) -> Stream:
    """A stream made from a streaming (or batch) data frame.

    `lateness`: how far behind the newest row of this stream a row may be without being late.
    `idle_timeout`: after this long without rows a stream no longer holds others back (None: it always does).
    `max_ahead`: a row with a time further ahead of the clock than this is rejected (None: never).
    """
    if not isinstance(name, str) or not name:
        raise FlowError("A stream needs a name", got=repr(name), why="Progress and errors use it")
    if not hasattr(frame, "columns"):
        raise FlowError(
            f"Stream {name!r} is not made of a data frame",
            got=type(frame).__name__,
            do="Give a streaming data frame, as spark.readStream makes them, or a batch one",
        )
    columns = list(frame.columns)
    if time not in columns:
        raise FlowError(
            f"Stream {name!r} has no column {time!r}",
            got="columns " + ", ".join(columns),
            do="Name the event-time column in time=…",
        )
    _refuse_hidden(columns)
    idle_us = None if idle_timeout is None else duration_us(idle_timeout, f"idle_timeout of {name!r}")
    if idle_us == 0:
        raise FlowError(
            f"idle_timeout of {name!r} is zero",
            got=repr(idle_timeout),
            why="The stream would count as silent in the very batch in which it speaks",
            do="Give a positive duration, or None: then a silent stream always holds the others back",
        )
    return Stream(
        Source(
            frame,
            time,
            name,
            duration_us(lateness, f"lateness of {name!r}"),
            idle_us,
            None if max_ahead is None else duration_us(max_ahead, f"max_ahead of {name!r}"),
        )
    )


def path_text(given: str | os.PathLike[str], what: str) -> str:
    """The path as text; `what` names the setting in the error."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise FlowError(f"{what} is not a path", got=repr(given), do='Write it as text: "some/folder"')
    return path


def _queries(given: Sequence[Query]) -> tuple[Query, ...]:
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    wrong = next((one for one in given if not isinstance(one, Query)), None) if listed else given
    if wrong is not None or not listed:
        raise FlowError(
            "A match takes a list of queries",
            got=repr(wrong),
            do='Write match([tg.Query("airport", where="lat > 40.6"), …])',
        )
    return tuple(given)


def _check_gap(given: Any) -> None:
    gap = duration_us(given, "max_gap") if isinstance(given, str) else given
    if gap is not None and not is_whole(gap):
        raise FlowError(
            "max_gap is a number of windows, at least one, or a duration",
            got=repr(given),
            why="With a gap of none, no window could ever be dropped",
            do="Write max_gap=10 or max_gap='5 minutes'; leave it out if no window may be missing",
        )
