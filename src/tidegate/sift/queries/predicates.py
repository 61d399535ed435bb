"""Predicates: the few forms that the `where` of a query can take, as a tree.

A leaf compares one column with literals; `and`, `or` and `not` put leaves together. All else that SQL
offers for the same is brought into this form when it is read (`sql.py`): `between` is two comparisons, `!=`
a negated `=`, `in` an `=` with several literals, and `is null` is `<=> null`.

Literals are what Spark takes them for: a number with an exponent is a double, any other number an exact
decimal.
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
    """`column operator literal`; for `=` any of several literals, for all other operators there is one.

    Operators are < <= > >= = and <=>, which is = that takes null for a value.
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
    """True, false, or null, which is neither."""

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
