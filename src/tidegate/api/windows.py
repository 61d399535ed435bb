"""Window aggregates as the user describes them: windows, grouping columns, aggregates.

    busy = near.window("1 minute", slide="10 seconds", by=["cell"]).agg(n=F.count("*"), top=F.max("fare"))
    last = near.window(tg.row_window(100, slide=10), by=["cell"]).agg(F.avg("fare").alias("mean"))
    about = near.window("1 minute", by=["cell"], approximate=True).agg(n=F.count("*"))   n, n_low, n_high

Aggregates are Spark expressions. Only their aliases are read, without importing Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from tidegate.api.joins.join_node import case_sensitive
from tidegate.api.nodes import Node, Window
from tidegate.api.user_aggregates import Aggregator, check_aggregator
from tidegate.errors import FlowError
from tidegate.quantities import Duration, duration_us, is_number
from tidegate.window.spec import END, HIGH, LOW, START, RowsSpec, WindowSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

    from tidegate.api.streams import Stream


#: Which windows go together under overload: those of all groups, or of each group by itself.
WindowDropName = Literal["windows", "groups"]
#: The alias at the end of an aggregate that is given as SQL: count(*) AS n.
_SQL_ALIAS = re.compile(r"\s+as\s+(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*$", re.IGNORECASE)


class Windowed:
    """The windows of a stream, before their aggregates are given.

    >>> orders.window("1 minute", by="cell").agg(n=F.count("*")).name
    'orders_window_cell'
    """

    def __init__(
        self,
        node: Node,
        spec: WindowSpec | RowsSpec,
        by: tuple[str, ...],
        made: Callable[[Window], Stream],
        approximate: bool = False,
        name: str | None = None,
        drop: WindowDropName = "windows",
    ):
        #: Columns whose names are equal here are one column to Spark.
        self._same = str if case_sensitive(node) else str.lower
        _check_by(by, self._same)
        if not isinstance(approximate, bool):
            raise FlowError(
                "approximate must be True or False",
                code="WINDOW_APPROXIMATE_INVALID",
                got=repr(approximate),
                why="Python takes any text for true, even 'no'",
                do="Write approximate=True, or leave it out for exact windows",
            )
        if approximate and isinstance(spec, RowsSpec):
            raise FlowError(
                "Windows of rows cannot be approximate",
                code="ROW_WINDOW_APPROXIMATE",
                got=f"approximate=True with tg.row_window({spec.size})",
                why="If rows were left out, each window would hold other rows, not fewer",
                do="Leave out approximate=True, or use a duration such as '1 minute' as size",
            )
        _check_drop(drop, spec, by, approximate)
        self._node, self._spec, self._made, self._drops_groups = node, spec, made, drop == "groups"
        self.by: tuple[str, ...] = by
        self._approximate, self._name = approximate, name

    def agg(self, *columns: str | Column, **aggregates: str | Column | Aggregator) -> Stream:
        """A stream of one row per window and group: `window_start`, `window_end`, the `by` columns, these.

        A window is emitted once, when the watermark passes its end. Its time is its start. A window of rows
        starts and ends with the times of its first and its last row.

        Aggregates are keywords, `n=F.count("*")`, or aliased columns, `F.count("*").alias("n")`. Each is one
        Spark aggregate function (`F.…`, or SQL text) over any expressions:

            count, count_if, sum, avg, min, max             as in Spark; an overflow of a sum fails the batch
            var_*, stddev*, skewness, kurtosis              of numbers; also corr, covar_samp, covar_pop
            bit_and, bit_or, bit_xor, bool_and, bool_or
            first, last, any_value, min_by, max_by          by event time, or by the second argument
            collect_list (array_agg), collect_set           of any type; a list is ordered by event time,
                                                            equal times by a hash of the value
            approx_count_distinct(x, rsd)                   HyperLogLog; rsd 0.05 by default
            approx_percentile(x, percentage, accuracy)      KLL, also as percentile_approx; an error in rank
                                                            of 1 / accuracy (10000 by default)

        or a `tg.Aggregator`. `window/aggregate/aggregates.py` documents the partials of each, and differences
        from Spark. Everything else (DISTINCT, FILTER, expressions over aggregates) is refused with a hint; so
        are the last two over windows of rows.

        In approximate windows each aggregate is followed by `<name>_low` and `<name>_high`. Both equal the
        value if all rows of the window were processed. Otherwise count, count_if, sum and avg are estimates
        with a 95 % interval, which is null if too few rows were kept (10 for counts, 50 for others). All
        other aggregates are computed from the kept rows (variances and correlations weighted) and have no
        interval; lists, sets and `tg.Aggregator` are refused. A group without a kept row is not emitted.
        `window/estimate/estimates.py` has the table.

        >>> busy = orders.window("1 minute", by="cell").agg(F.count("*").alias("n"), top=F.max("fare"))
        >>> busy.to_dataframe().select("cell", "n", "top").orderBy("cell", "top").collect()
        [Row(cell=1, n=1, top=10.0), Row(cell=1, n=1, top=20.0), Row(cell=2, n=1, top=7.5)]
        """
        named = (*((_alias(given), given) for given in columns), *aggregates.items())
        if not named:
            raise FlowError(
                "A window needs an aggregate",
                code="WINDOW_AGGREGATES_MISSING",
                do='Write for example .agg(n=F.count("*"))',
            )
        names = [name for name, _ in named]
        ends = [name + end for name in names for end in (LOW, HIGH)] if self._approximate else []
        clashing = _repeated((START, END, *self.by, *names, *ends), self._same)
        if clashing:
            raise FlowError(
                "An aggregate has the name of another column of the result",
                code="AGGREGATE_NAME_CLASH",
                got=", ".join(clashing),
                do="Give it another name",
            )
        _check_users(named, self._approximate)
        given = self._node, self._spec, self.by, named, self._approximate, self._name, self._drops_groups
        return self._made(Window(*given))


def _alias(given: Any) -> str:
    """The alias of an aggregate that is given without a keyword."""
    if isinstance(given, str):
        alias = _sql_alias(given)
    else:
        # A classic Spark column, read through its Java object; others have none.
        column = getattr(given, "_jc", None)
        alias = None if column is None else _node_alias(column.node())
    if alias is None:
        name = type(given).__name__ if isinstance(given, Aggregator) else str(given)
        raise FlowError(
            "An aggregate needs a name",
            code="AGGREGATE_NAME_MISSING",
            got=name,
            why="It becomes a column of the result",
            do='Write .agg(F.count("*").alias("n")) or .agg(n=F.count("*"))',
        )
    return alias


def _node_alias(node: Any) -> str | None:
    kind = node.getClass().getSimpleName()
    if kind == "Alias":
        # More than one name is for functions that return several columns.
        return str(node.name().head()) if node.name().size() == 1 else None
    return _sql_alias(node.expression()) if kind == "SqlExpression" else None


def _sql_alias(text: str) -> str | None:
    found = _SQL_ALIAS.search(text)
    if found is None:
        return None
    return found["plain"] or str(found["quoted"]).replace("``", "`")


def _check_users(named: Sequence[tuple[str, Any]], approximate: bool) -> None:
    """Checks of user-defined aggregates that need no Spark."""
    for name, given in named:
        if isinstance(given, type) and issubclass(given, Aggregator):
            raise FlowError(
                f"Aggregate {name!r} is a class, not an instance",
                code="AGGREGATOR_NOT_AN_INSTANCE",
                got=given.__name__,
                do=f'Write {name}={given.__name__}("fare"), with the columns that it reads',
            )
        if isinstance(given, Aggregator):
            check_aggregator(name, given)
    users = [name for name, given in named if isinstance(given, Aggregator)]
    if users and approximate:
        raise FlowError(
            "A user-defined aggregate cannot be estimated",
            code="AGGREGATOR_APPROXIMATE",
            got=", ".join(users),
            why="Tidegate does not know how the rows that were left out would have changed it",
            do="Put it into a window of its own, without approximate=True",
        )


def row_window(size: int, *, slide: int | None = None) -> RowsSpec:
    """For `window`: windows of `size` rows of a group, a new one every `slide` rows (default: `size`).

    Rows are ordered by time, equal times by a hash of the row, so windows do not depend on the order of
    arrival; lists have the same order. A window is emitted when the watermark has passed its last row. An
    incomplete window is never emitted, not even at the end of the input: its rows stay in the state and hold
    back the watermark of everything computed from these windows.

    >>> row_window(100, slide=10)
    RowsSpec(size=100, slide=10)
    """
    given = (size,) if slide is None else (size, slide)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        raise FlowError(
            "tg.row_window takes whole numbers of rows",
            code="ROW_WINDOW_SIZE_INVALID",
            got=", ".join(map(repr, given)),
            do='Write tg.row_window(100, slide=10); for windows of time give a duration such as "1 minute"',
        )
    return RowsSpec(size, size if slide is None else slide)


def _check_by(by: tuple[str, ...], same: Callable[[str], str]) -> None:
    if not all(isinstance(name, str) and name for name in by):
        raise FlowError(
            "by takes names of columns",
            code="WINDOW_BY_INVALID",
            got=", ".join(map(repr, by)),
            do="Add an expression as a column with with_column, and give its name here",
        )
    twice = _repeated(by, same)
    if twice:
        raise FlowError(
            "A window groups by a column twice",
            code="WINDOW_BY_REPEATED",
            got=", ".join(twice),
            do="Name it once; Spark ignores case unless spark.sql.caseSensitive is set",
        )
    clashing = _repeated((START, END, *by), same)
    if clashing:
        raise FlowError(
            "A window groups by a column with the name of its own start or end",
            code="WINDOW_BY_CLASH",
            got=", ".join(clashing),
            do="Copy the column to another name with with_column, and group by that",
        )


def _check_drop(
    drop: WindowDropName, spec: WindowSpec | RowsSpec, by: tuple[str, ...], approximate: bool
) -> None:
    if drop not in get_args(WindowDropName):
        raise FlowError(
            "drop says which windows go together under overload",
            code="WINDOW_DROP_UNKNOWN",
            got=f"drop={drop!r}",
            do='Write drop="windows" (all groups lose the same windows) or drop="groups" (each loses others)',
        )
    if drop == "groups" and not by:
        raise FlowError(
            'drop="groups" needs the columns that make the groups',
            code="WINDOW_DROP_BY_MISSING",
            got="a window without by",
            why="There is one group, so no window of another one could be kept in its place",
            do='Write window("1 minute", by="cell", drop="groups"), or leave out drop',
        )
    if drop == "groups" and (approximate or isinstance(spec, RowsSpec)):
        raise FlowError(
            'drop="groups" is for exact windows of time',
            code="WINDOW_DROP_UNSUPPORTED",
            got="approximate=True" if approximate else "windows of rows",
            why="Approximate windows are estimated and never dropped, and a dropped window of rows would "
            "change all later ones",
            do="Leave out drop, or use a duration such as '1 minute' as size without approximate=True",
        )


def _repeated(names: Sequence[str], same: Callable[[str], str]) -> list[str]:
    """Names that repeat an earlier one, as Spark compares them."""
    found = [same(name) for name in names]
    return [name for i, name in enumerate(names) if found[i] in found[:i]]


def _spec(
    size: Duration | RowsSpec, slide: Duration | None, offset: Duration | None
) -> WindowSpec | RowsSpec:
    if is_number(size):
        raise FlowError(
            "The size of a window is a number without a unit",
            code="WINDOW_SIZE_INVALID",
            got=repr(size),
            do=f'Write window("1 minute"), or window(tg.row_window({size:g})) for windows of rows',
        )
    if not isinstance(size, RowsSpec):
        size_us = duration_us(size, "size of a window")
        slide_us = size_us if slide is None else duration_us(slide, "slide of a window")
        offset_us = 0 if offset is None else duration_us(offset, "offset of a window", signed=True)
        return WindowSpec(size_us, slide_us, offset_us)
    if slide is not None:
        raise FlowError(
            "The slide of windows of rows belongs into tg.row_window",
            code="ROW_WINDOW_SLIDE",
            got=f"slide={slide!r} with tg.row_window({size.size})",
            why="They slide by rows, not by time",
            do=f"Write window(tg.row_window({size.size}, slide=…), by=…)",
        )
    if offset is not None:
        raise FlowError(
            "Windows of rows have no offset",
            code="ROW_WINDOW_OFFSET",
            got=f"offset={offset!r} with tg.row_window({size.size})",
            why="They begin with the first row of a group, not at a time",
            do="Leave out offset, or use a duration such as '1 minute' as size",
        )
    return size
