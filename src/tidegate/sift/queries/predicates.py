"""Predicates: the few forms that the `where` of a query can take, as a tree.

A leaf compares one column with literals; `and`, `or` and `not` combine leaves. The parser (`sql.py`) brings
other SQL forms into this one: `between` is two comparisons, `!=` a negated `=`, `in` an `=` with several
literals, and `is null` is `<=> null`.

Literals have Spark's types: a number with an exponent is a double, any other number an exact decimal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

Number = Decimal | float


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a literal in a template (`templates.py`)."""

    number: int
    negative: bool = False


Literal = Number | str | bool | None | Slot


@dataclass(frozen=True, slots=True)
class Compare:
    """`column operator literal`; `=` matches any of several literals, all other operators have one.

    Operators are < <= > >= = and <=>, which is = that treats null as a value.
    """

    column: str
    operator: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Predicate


@dataclass(frozen=True, slots=True)
class ConstantTruth:
    """A constant truth value: true, false, or null, which is neither."""

    value: bool | None


Predicate = Compare | And | Or | Not | ConstantTruth


def comparisons(predicate: Predicate) -> Iterator[Compare]:
    """The leaves, in the order in which they were written."""
    waiting = [predicate]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Compare):
            yield node
        elif isinstance(node, Not):
            waiting.append(node.part)
        elif not isinstance(node, ConstantTruth):
            waiting.extend(reversed(node.parts))
