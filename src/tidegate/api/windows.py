"""Window aggregates as the user describes them: windows, grouping columns, aggregates.

    busy = near.window("1 minute", slide="10 seconds", by=["cell"]).agg(n=F.count("*"), top=F.max("fare"))
    last = near.window(tg.rows(100, slide=10), by=["cell"]).agg(mean=F.avg("fare"))
    about = near.window("1 minute", by=["cell"], approximate=True).agg(n=F.count("*"))   n, n_low, n_high

Aggregates are Spark expressions and passed on unread, so this module needs no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.api.nodes import Node, Window
from tidegate.api.user_aggregates import UserAggregate
from tidegate.errors import FlowError
from tidegate.quantities import duration_us
from tidegate.window.spec import END, HIGH, LOW, START, RowsSpec, WindowSpec

if TYPE_CHECKING:
    from tidegate.api.streams import Stream


class Windowed:
    """The windows of a stream, before their aggregates are given."""

    def __init__(
        self,
        node: Node,
        spec: WindowSpec | RowsSpec,
        by: tuple[str, ...],
        made: Callable[[Window], Stream],
        approximate: bool = False,
    ):
        _check_by(by)
        if not isinstance(approximate, bool):
            raise FlowError(
                "approximate is True or False",
                got=repr(approximate),
                why="Any text is true, 'no' as well, and estimates where exact windows are meant mislead",
            )
        if approximate and isinstance(spec, RowsSpec):
            raise FlowError(
                "Windows of rows cannot be approximate",
                got=f"approximate=True beside tg.rows({spec.size})",
                why="They hold a number of rows: without some of them each would hold others, not fewer",
                do="Leave out approximate=True, or use windows of time: '1 minute' instead of tg.rows(…)",
            )
        self._node, self._spec, self.by, self._made = node, spec, by, made
        self._approximate = approximate

    def agg(self, **aggregates: Any) -> Stream:
        """A stream of one row per window and group: `window_start`, `window_end`, the `by` columns, these.

        A window is emitted once, when the watermark passes its end. Its time is its start. A window of rows
        starts and ends with the times of its first and its last row.

        Each aggregate is one Spark aggregate function (`F.…`, or SQL text) over any expressions:

            count, count_if, sum, avg, min, max             as in Spark; an overflow of a sum fails the batch
            var_*, stddev*, skewness, kurtosis              of numbers; also corr, covar_samp, covar_pop
            bit_and, bit_or, bit_xor, bool_and, bool_or
            first, last, any_value, min_by, max_by          by event time, or by the second argument
            collect_list (array_agg), collect_set           of any type; a list is ordered by event time,
                                                            equal times by a hash of the value
            approx_count_distinct(x, rsd)                   HyperLogLog; rsd 0.05 by default
            approx_percentile(x, percentage, accuracy)      KLL, also as percentile_approx; an error in rank
                                                            of 1 / accuracy (10000 by default)

        or `tg.udaf(…)`. `window/aggregate/aggregates.py` documents the partials of each, and differences from
        Spark. Everything else (DISTINCT, FILTER, expressions over aggregates) is refused with a hint; so are
        the last two over windows of rows.

        In approximate windows each aggregate is followed by `<name>_low` and `<name>_high`. Both equal the
        value if all rows of the window were processed. Otherwise count, count_if, sum and avg are estimates
        with a 95 % interval, which is null if too few rows were kept (10 for counts, 50 for others). All
        other aggregates are computed from the kept rows (variances and correlations weighted) and have no
        interval; lists, sets and `tg.udaf` are refused. A group without a kept row is not emitted.
        `window/estimate/estimates.py` has the table.
        """
        if not aggregates:
            raise FlowError("A window needs an aggregate", do='Write for example .agg(n=F.count("*"))')
        ends = [name + end for name in aggregates for end in (LOW, HIGH)] if self._approximate else []
        clashing = _repeated((START, END, *self.by, *aggregates, *ends))
        if clashing:
            raise FlowError(
                "An aggregate has the name of another column of the result",
                got=", ".join(clashing),
                do="Give it another name",
            )
        if self._approximate:
            _check_estimated(aggregates)
        named = tuple(aggregates.items())
        return self._made(Window(self._node, self._spec, self.by, named, self._approximate))


def _check_estimated(aggregates: Mapping[str, Any]) -> None:
    users = [name for name, given in aggregates.items() if isinstance(given, UserAggregate)]
    if users:
        raise FlowError(
            "A user-defined aggregate cannot be estimated",
            got=", ".join(users),
            why="Of rows that were left out nobody but its author knows what they would have changed",
            do="Put it into a window of its own, without approximate=True",
        )


def rows(size: int, slide: int | None = None) -> RowsSpec:
    """For `window`: windows of `size` rows of a group, a new one every `slide` rows (default: `size`).

    Rows are ordered by time, equal times by a hash of the row, so windows do not depend on the order of
    arrival; lists have the same order. A window is emitted when the watermark has passed its last row. An
    incomplete window is never emitted, not even at the end of the input: its rows stay in the state and hold
    back the watermark of everything computed from these windows.
    """
    given = (size,) if slide is None else (size, slide)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        raise FlowError(
            "tg.rows takes whole numbers of rows",
            got=", ".join(map(repr, given)),
            do='Write tg.rows(100, slide=10); for windows of time give a duration such as "1 minute"',
        )
    return RowsSpec(size, size if slide is None else slide)


def _check_by(by: tuple[str, ...]) -> None:
    if not all(isinstance(name, str) and name for name in by):
        raise FlowError(
            "by takes names of columns",
            got=", ".join(map(repr, by)),
            do="Add an expression with with_column, and name it here",
        )
    twice = _repeated(by)
    if twice:
        raise FlowError("A window groups by a column twice", got=", ".join(twice), do="Name it once")
    clashing = _repeated((START, END, *by))
    if clashing:
        raise FlowError(
            "A window groups by names that its own result gives to start and end",
            got=", ".join(clashing),
            do="Copy the column to another name with with_column, and group by that",
        )


def _repeated(names: Sequence[str]) -> list[str]:
    """Names that repeat an earlier one; Spark ignores case."""
    lower = [name.lower() for name in names]
    return [name for i, name in enumerate(names) if lower[i] in lower[:i]]


def _spec(size: str | RowsSpec, slide: str | None) -> WindowSpec | RowsSpec:
    if not isinstance(size, RowsSpec):
        size_us = duration_us(size, "size of a window")
        return WindowSpec(size_us, size_us if slide is None else duration_us(slide, "slide of a window"))
    if slide is not None:
        raise FlowError(
            "Windows of rows have their slide in tg.rows",
            got=f"slide={slide!r} beside tg.rows({size.size})",
            why="They slide by rows, not by time",
            do=f"Write window(tg.rows({size.size}, slide=…), by=…)",
        )
    return size
