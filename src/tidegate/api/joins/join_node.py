"""From the arguments of `Stream.join` to a node: kind of join, keys, time condition, rest.

Mistakes are reported at once wherever possible. SQL text needs the columns of both streams. Those of sources,
joins and simple steps follow from their names; for others the driver asks Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from tidegate.api.joins.conditions import join_parts
from tidegate.api.joins.joined_columns import joined_columns
from tidegate.api.joins.time_bounds import time_condition
from tidegate.api.names import operator_name
from tidegate.api.nodes import Join, Match, Node, Source, StatelessStep, Union, name_of
from tidegate.errors import FlowError
from tidegate.join.within import Unbounded, Within
from tidegate.quantities import duration_text

if TYPE_CHECKING:
    from tidegate.api.joins.sql_conditions import SqlParts, SqlSide

#: The kinds of join, and the other words that Spark has for them.
How = Literal[
    "inner",
    "left",
    "leftouter",
    "left_outer",
    "right",
    "rightouter",
    "right_outer",
    "full",
    "outer",
    "fullouter",
    "full_outer",
    "left_semi",
    "leftsemi",
    "semi",
    "left_anti",
    "leftanti",
    "anti",
]
HOWS = ("inner", "left", "right", "full", "left_semi", "left_anti")
#: Characters of a column expression that a message shows; its Java form can be long.
_SHOWN_MAX = 60
#: As Spark reads them: in any case, and without underscores.
_KINDS = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "full": "full",
    "outer": "full",
    "fullouter": "full",
    "leftsemi": "left_semi",
    "semi": "left_semi",
    "leftanti": "left_anti",
    "anti": "left_anti",
}


def join_node(
    left: Node, right: Node, on: Any, how: str, within: Any, where: Any, name: str | None, suffix: str
) -> Join:
    """Check the arguments of a join and describe it."""
    kind = _KINDS.get(how.lower().replace("_", "")) if isinstance(how, str) else None
    if kind is None:
        raise FlowError(
            "Unknown kind of join",
            code="JOIN_HOW_UNKNOWN",
            got=f"how={how!r}",
            do="Use one of " + ", ".join(HOWS),
        )
    _check_suffix(suffix)
    node = Join(left, right, (), Unbounded(), kind, where, None, operator_name(name, "join"), suffix)
    text = _sql_text(on, left, right)
    if text is not None:
        return _checked(_by_sql(node, text, within))
    keys, condition = join_parts(on)
    return _checked(replace(node, keys=keys, condition=condition, within=time_condition(within)))


def _checked(node: Join) -> Join:
    if isinstance(node.within, Unbounded) and node.how not in ("inner", "left_semi"):
        raise FlowError(
            "A join over the full history cannot emit unmatched rows",
            code="JOIN_UNBOUNDED_OUTER",
            got=f"how={node.how!r} without a bound on time",
            why="A match may always still arrive",
            do="Give within=tg.between(…), or use inner or left_semi",
        )
    return node


def _check_suffix(suffix: object) -> None:
    if not isinstance(suffix, str) or not suffix:
        raise FlowError(
            "The suffix of a join is empty or not a text",
            code="JOIN_SUFFIX_INVALID",
            got=f"suffix={suffix!r}",
            why="Right columns whose names are taken get it",
            do='Give for example suffix="_right"',
        )


# -- SQL -------------------------------------------------------------------------------------------------


def _sql_text(on: Any, left: Node, right: Node) -> str | None:
    """The SQL text of `on`, if it is one."""

    def is_condition(text: str) -> bool:
        return _is_sql(text) and text not in {*(columns_of(left) or ()), *(columns_of(right) or ())}

    if isinstance(on, str):
        return on if is_condition(on) else None
    if _is_column(on):
        return _column_text(on)
    parts = list(on) if isinstance(on, Sequence) else []
    if parts and all(map(_is_column, parts)):
        return " AND ".join(f"({_column_text(part)})" for part in parts)
    wrong = next((p for p in parts if _is_column(p) or (isinstance(p, str) and is_condition(p))), None)
    if wrong is not None:
        raise FlowError(
            "An SQL condition of a join stands alone, not in a list",
            code="JOIN_SQL_IN_LIST",
            got=str(wrong),
            do="Write everything as one SQL text, or everything as names and conditions, with where=…",
        )
    return None


def _is_sql(text: str) -> bool:
    if text.isidentifier():
        return False
    # sqlglot loads slowly, and most joins do not need it.
    from tidegate.api.joins.sql_conditions import is_sql

    return is_sql(text)


def _is_column(given: object) -> bool:
    return type(given).__name__ == "Column"


def _column_text(column: Any) -> str:
    from tidegate.driver.column_text import sql_of

    text = sql_of(column)
    if text is None:
        raise FlowError(
            "The condition of a join cannot be read back from a column expression",
            code="JOIN_COLUMN_UNREADABLE",
            got=str(column)[:_SHOWN_MAX],
            why="It must be split into keys, time bounds and the rest",
            do="Write it as SQL text, or as on=…, within=… and where=…",
        )
    return text


def _by_sql(node: Join, text: str, within: Any) -> Join:
    from tidegate.api.joins.sql_conditions import split_condition

    left, right = _sql_side(node.left), _sql_side(node.right)
    parts = split_condition(text, left, right, case_sensitive(node))
    bounded = (parts.bounds.lower_us, parts.bounds.upper_us) != (None, None)
    if within is not None and bounded:
        raise FlowError(
            "The time of a join is bounded twice",
            code="JOIN_WITHIN_TWICE",
            got=f"within={within!r} and {text}",
            do="Leave one of them out",
        )
    time = time_condition(within) if within is not None else _bounded(parts, left, right, text)
    return replace(node, keys=parts.keys, rest=parts.rest, within=time, timed_by_sql=bounded)


def _bounded(parts: SqlParts, left: SqlSide, right: SqlSide, text: str) -> Within:
    lower_us, upper_us = parts.bounds.lower_us, parts.bounds.upper_us
    if left.time is None or right.time is None:
        remedy = "Give within=tg.between(…): no column of a stream in this join shows its event time"
    else:
        mine, other = f"{left.name}.{left.time}", f"{right.name}.{right.time}"
        remedy = f"Write {other} BETWEEN {mine} - INTERVAL 5 MINUTES AND {mine} + INTERVAL 1 MINUTE"
    if lower_us is None and upper_us is None:
        raise FlowError(
            "The SQL condition of a join does not bound the time between its rows",
            code="JOIN_SQL_TIME_MISSING",
            got=text,
            why="Rows would have to be kept forever",
            do=f"{remedy}, or give within=…",
        )
    if lower_us is None or upper_us is None:
        which = "before" if lower_us is None else "after"
        raise FlowError(
            f"The SQL condition of a join does not say how long {which} the left row a right row may be",
            code="JOIN_SQL_TIME_ONE_SIDED",
            got=text,
            why="Rows of one stream would have to be kept forever",
            do=remedy,
        )
    if lower_us > upper_us:
        raise FlowError(
            "The time bounds of a join contradict each other",
            code="JOIN_SQL_TIME_EMPTY",
            got=text,
            why=f"right.time - left.time would be at least {duration_text(lower_us)} "
            f"and at most {duration_text(upper_us)}",
            do="Exchange or widen them",
        )
    return Within(lower_us, upper_us)


# -- what is known about a node before the query starts --------------------------------------------------


def _sql_side(node: Node) -> SqlSide:
    from tidegate.api.joins.sql_conditions import SqlSide

    columns, time = columns_of(node), time_of(node)
    return SqlSide(name_of(node), time if time in columns else None, columns)


def columns_of(node: Node) -> tuple[str, ...]:
    """The columns of a node."""
    if isinstance(node, Source):
        return tuple(node.frame.columns)
    if isinstance(node, StatelessStep):
        if node.columns is not None:
            return node.columns
        if node.kind == "filter":
            return columns_of(node.parent)
    if isinstance(node, Join):
        left = columns_of(node.left)
        if node.how in ("left_semi", "left_anti"):
            return left
        same = str if case_sensitive(node) else str.lower
        made = joined_columns(left, columns_of(node.right), node.keys, node.suffix, same)
        return tuple(one.name for one in made)
    from tidegate.driver.describe import schema_of

    return tuple(schema_of(node).names)


def time_of(node: Node) -> str | None:
    """The column that shows the event time; None if no column is sure to."""
    if isinstance(node, Source):
        return node.time
    if isinstance(node, StatelessStep):
        base: Node = node
        while isinstance(base, StatelessStep):
            base = base.parent
        # For sources the start checks that no step has replaced the column.
        return time_of(node.parent) if isinstance(base, Source) or node.kind == "filter" else None
    if isinstance(node, Match):
        return time_of(node.parent)
    if isinstance(node, Union):
        names = {time_of(one) if _keeps_values(one) else None for one in node.parents}
        return names.pop() if len(names) == 1 else None
    return time_of(node.left) if isinstance(node, Join) and node.how in ("left_semi", "left_anti") else None


def _keeps_values(node: Node) -> bool:
    """Whether stateless steps in front of a node change no column."""
    while isinstance(node, StatelessStep):
        if node.kind not in ("filter", "drop") and node.columns is None:
            return False
        node = node.parent
    return True


def case_sensitive(node: Node) -> bool:
    """Whether names that differ in case are different, as the session of the sources says."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        session = getattr(one.frame, "sparkSession", None) if isinstance(one, Source) else None
        if session is not None:
            return str(session.conf.get("spark.sql.caseSensitive")) == "true"
        waiting += one.inputs
    return False
