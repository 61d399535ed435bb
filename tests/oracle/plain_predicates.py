"""Random predicates, each in three forms: Spark's SQL, DuckDB's SQL, and a function with three truths.

Rows are fixed: literals, the floats next to them, both infinities, NaN, both zeros and null meet on every
column.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

SCHEMA = {"x": "number", "Y": "number", "i": "integer", "s": "category", "b": "category"}
NUMBERS = (-2.5, -1.0, -0.0, 0.0, 0.1, 1.0, 3.25, 4000.0)
WHOLE = (-2, -1, 0, 1, 2, 3)
STRINGS = ("a", "b", "it's", "", "7")

Row = dict[str, Any]
Truth = bool | None


@dataclass(frozen=True)
class Written:
    """One predicate; `tight` says whether it can stand next to `and` and `not` without parentheses."""

    spark: str
    duck: str
    truth: Callable[[Row], Truth]
    tight: bool = True

    def inside(self) -> Written:
        return self if self.tight else Written(f"({self.spark})", f"({self.duck})", self.truth)


def rows(count: int = 300) -> list[Row]:
    """Rows of which each column has all interesting values, put together by lot."""
    lot = random.Random(5)
    near = [near for v in NUMBERS for near in (v, math.nextafter(v, math.inf), math.nextafter(v, -math.inf))]
    floats = [*near, -0.0, 1e300, math.inf, -math.inf, math.nan, math.nan, None, None]
    choices: dict[str, list[Any]] = {
        "x": floats,
        "Y": floats,
        "i": [*WHOLE, -1000, 1000, 2**62, None],
        "s": [*STRINGS, "other", "c", None],
        "b": [True, False, None],
    }
    return [{column: lot.choice(values) for column, values in choices.items()} for _ in range(count)]


def key(value: Any) -> tuple[int, Any]:
    """Spark's order: NaN is above every number and equal to itself."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: key(a) < key(b),
    "<=": lambda a, b: key(a) <= key(b),
    ">": lambda a, b: key(a) > key(b),
    ">=": lambda a, b: key(a) >= key(b),
    "=": lambda a, b: key(a) == key(b),
    "==": lambda a, b: key(a) == key(b),
    "!=": lambda a, b: key(a) != key(b),
    "<>": lambda a, b: key(a) != key(b),
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared(left: Any, operator: str, right: Any) -> Truth:
    return None if left is None or right is None else COMPARE[operator](left, right)


def both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    return negated(both(negated(left), negated(right)))


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


FORMS = ("compare", "compare", "compare", "between", "in", "null", "same", "constant", "bare")
Text = tuple[str, str, Any]  # a literal: as Spark writes it, as DuckDB does, its value


@st.composite
def literals(draw: st.DrawFn, column: str) -> Text:
    if draw(st.integers(0, 19)) == 0:
        return "null", "null", None
    if column == "b":
        truth = draw(st.booleans())
        return str(truth).lower(), str(truth).lower(), truth
    if column == "s":
        string = draw(st.sampled_from(STRINGS))
        return "'" + string.replace("'", "\\'") + "'", "'" + string.replace("'", "''") + "'", string
    value = draw(st.sampled_from(NUMBERS if column in "xY" else (*NUMBERS, *WHOLE)))
    text = draw(st.sampled_from([f"{value:g}", f"{value:e}", f"{value:.2f}"]))
    text = text if float(text) == value else repr(value)
    return text, text, value


@st.composite
def columns(draw: st.DrawFn, name: str) -> str:
    return draw(st.sampled_from([name, name, name.lower(), name.upper(), f"`{name}`"]))


@st.composite
def leaves(draw: st.DrawFn, forms: tuple[str, ...] = FORMS) -> Written:
    column = draw(st.sampled_from(list(SCHEMA)))
    named = draw(columns(column))
    form = draw(st.sampled_from(forms))
    spark, duck, value = draw(literals(column))
    if form == "null":
        return Written(f"{named} is null", f"{column} is null", lambda row: row[column] is None)
    if form == "same":
        return Written(
            f"{named} <=> {spark}",
            f"{column} is not distinct from {duck}",
            lambda row: row[column] is None if value is None else bool(compared(row[column], "=", value)),
        )
    if form == "constant":
        truth = draw(st.sampled_from([True, False, None]))
        text = "null" if truth is None else str(truth).lower()
        return Written(text, text, lambda row: truth)
    if form == "bare":
        return Written(draw(columns("b")), "b", lambda row: row["b"])
    if form == "in":
        several = [(spark, duck, value), *draw(st.lists(literals(column), max_size=3))]
        word = draw(st.sampled_from(["in", "not in"]))
        return Written(
            f"{named} {word} ({', '.join(text for text, _, _ in several)})",
            f"{column} {word} ({', '.join(text for _, text, _ in several)})",
            lambda row: is_in(row[column], [value for _, _, value in several], word == "in"),
        )
    if form == "between" and column not in "sb":
        spark_to, duck_to, upto = draw(literals(column))
        return Written(
            f"{named} between {spark} and {spark_to}",
            f"{column} between {duck} and {duck_to}",
            lambda row: both(compared(row[column], ">=", value), compared(row[column], "<=", upto)),
        )
    operator = draw(st.sampled_from(["=", "!="] if column in "sb" else list(COMPARE)))
    if draw(st.booleans()):
        mirrored = MIRRORED.get(operator, operator)
        return Written(
            f"{spark} {mirrored} {named}",
            f"{duck} {mirrored} {column}",
            lambda row: compared(row[column], operator, value),
        )
    return Written(
        f"{named} {operator} {spark}",
        f"{column} {operator} {duck}",
        lambda row: compared(row[column], operator, value),
    )


def is_in(value: Any, choices: list[Any], wanted: bool) -> Truth:
    found: Truth = False
    for choice in choices:
        found = either(found, compared(value, "=", choice))
    return found if wanted else negated(found)


def joined(parts: list[Written], word: str) -> Written:
    combine = both if word == "and" else either

    def truth(row: Row) -> Truth:
        found = parts[0].truth(row)
        for part in parts[1:]:
            found = combine(found, part.truth(row))
        return found

    inside = [part.inside() for part in parts] if word == "and" else parts
    spark = f" {word} ".join(part.spark for part in inside)
    # `and` binds more tightly than `or`, so only `or` needs parentheses to be a part of `and`.
    return Written(spark, f" {word} ".join(part.duck for part in inside), truth, tight=False)


def predicates() -> st.SearchStrategy[Written]:
    def larger(smaller: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
        return st.one_of(
            st.tuples(st.lists(smaller, min_size=2, max_size=4), st.sampled_from(["and", "or"])).map(
                lambda given: joined(*given)
            ),
            smaller.map(lambda part: part.inside()).map(
                lambda part: Written(
                    f"not {part.spark}", f"not {part.duck}", lambda row: negated(part.truth(row))
                )
            ),
            smaller.map(lambda part: Written(f"({part.spark})", f"({part.duck})", part.truth)),
        )

    return st.recursive(leaves(), larger, max_leaves=8)


def conjunctions() -> st.SearchStrategy[Written]:
    """Nothing but comparisons that must all hold."""
    parts = st.lists(leaves(("compare", "between")), min_size=1, max_size=4)
    return parts.map(lambda drawn: joined(drawn, "and"))
