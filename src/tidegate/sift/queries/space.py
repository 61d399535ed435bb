"""The space of a set of queries: its axes and their cells.

Columns that a query names become axes, in the order of first use; other columns are not used. Names are
case-insensitive, as in Spark. The strings that queries name on a category, sorted, are its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import KINDS, Axis
from tidegate.sift.queries.predicates import Literal


class AxisCells(NamedTuple):
    """An axis, and the number of the cell of each of its categories."""

    axis: Axis
    cells: Mapping[str, int]


class Space(NamedTuple):
    """The cells of its axes, and the number of an axis by column name as queries write it."""

    lines: tuple[AxisCells, ...]
    numbers: Mapping[str, int]


class SpaceMaker:
    """Collects the columns and values that queries name; cells are numbered once all are collected."""

    def __init__(self, schema: Mapping[str, str]) -> None:
        self.schema = schema
        self._by_folded_name: dict[str, list[str]] = {}
        for column in schema:
            # Columns that differ in case alone are usable only where Spark compares names by case.
            self._by_folded_name.setdefault(column.lower(), []).append(column)
        self._written: dict[str, str] = {}
        #: The values that queries name, by column in the order of first use.
        self._categories: dict[str, set[str]] = {}

    def take_in(self, written: str) -> str:
        """Add a column as a query writes it; return its kind."""
        column = self._written.get(written)
        if column is None:
            column = self._written[written] = self._column(written)
            self._categories.setdefault(column, set())
        return self.schema[column]

    def name(self, written: str, literals: Iterable[Literal]) -> None:
        """Add values of a category column that was added before."""
        column = self._written[written]
        named = (category(column, literal) for literal in literals if literal is not None)
        self._categories[column].update(named)

    def made(self) -> Space:
        if not self._categories:
            raise FlowError(
                "No query compares a column",
                code="QUERY_WITHOUT_COLUMN",
                why="Rows are distinguished by the columns that queries compare",
                do="Compare a column with a literal in at least one query",
            )
        lines: list[AxisCells] = []
        positions: dict[str, int] = {}
        for column, named in self._categories.items():
            positions[column] = len(lines)
            categories = tuple(sorted(named))
            cells = {value: cell for cell, value in enumerate(categories)}
            lines.append(AxisCells(Axis(column, self.schema[column], categories), cells))
        numbers = {written: positions[column] for written, column in self._written.items()}
        return Space(tuple(lines), numbers)

    def _column(self, written: str) -> str:
        matching = self._by_folded_name.get(written.lower(), [])
        if not matching:
            raise FlowError(
                f"There is no column {written!r}",
                code="QUERY_COLUMN_MISSING",
                do=f"Use one of the columns {', '.join(self.schema)}",
            )
        if len(matching) > 1 and written in matching:
            matching = [written]
        if len(matching) > 1:
            raise FlowError(
                f"Column {written!r} is ambiguous",
                code="QUERY_COLUMN_AMBIGUOUS",
                got=", ".join(matching),
                why="They differ in upper and lower case alone, and none is spelled as in the query",
                do="Spell it as the column, or rename one of them with with_column_renamed before match",
            )
        kind = self.schema[matching[0]]
        if kind not in KINDS:
            raise FlowError(
                f"Column {matching[0]!r} has a type that queries cannot compare",
                code="QUERY_COLUMN_TYPE_UNSUPPORTED",
                got=kind,
                why="Queries are ranges of numbers, or lists of strings and booleans",
                do="Add a column with the value as a number, using with_column, and compare that one",
            )
        return matching[0]


def category(column: str, literal: Literal) -> str:
    """The category that a literal names: strings as they are, booleans as Spark prints them."""
    if isinstance(literal, bool):
        return "true" if literal else "false"
    if isinstance(literal, str):
        return literal
    raise FlowError(
        f"Column {column!r} holds strings or booleans but is compared with a number",
        code="QUERY_LITERAL_TYPE_MISMATCH",
        got=literal,
        why="Spark would cast one of the two, which is rarely what is meant",
        do=f"Write '{literal}' to compare it with a string",
    )
