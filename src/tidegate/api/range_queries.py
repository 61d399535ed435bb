"""Continuous range queries over a stream, each with a weight.

    tg.RangeQuery("airport", "lat between 40.6 and 40.7 and lon > -73.9", weight=2.0, loss_sensitivity=1.5)

Paper: sifters, sections II-B and II-C. `where` is SQL that compares columns with literals; a row belongs to
the query if it is true. `weight` is relative to the weights of the other queries.

`loss_sensitivity` (the paper's α) says how much quality a query loses when rows are missing from its answer.
With completeness C, the share of the answer that arrives, its quality of service is V = α·C + 1 − α: with
α = 0 missing rows cost nothing, with α = 1 quality equals completeness, and above 1 it falls faster, below
zero when little of the answer is left. The paper states that V is within [0, 1] but draws α from [1, 2]; we
follow its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real

from tidegate.errors import FlowError


@dataclass(frozen=True)
class RangeQuery:
    """One continuous query over a stream, for `Stream.match`.

    `name`: shown in the column `query_name` of the rows that satisfy the query. `where`: SQL that compares
    columns with literals. `weight`: the importance of the query against others. `loss_sensitivity`: how fast
    its quality falls when rows are missing: 1 loses as much quality as rows.

    >>> RangeQuery("airport", "lat between 40.6 and 40.7", weight=2.0).loss_sensitivity
    1.0
    """

    name: str
    where: str
    _: KW_ONLY
    weight: float = 1.0
    loss_sensitivity: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise FlowError(
                "A range query needs a name",
                code="QUERY_NAME_MISSING",
                got=repr(self.name),
                why="The column query_name shows it",
                do='Write tg.RangeQuery("airport", "lat > 40.6")',
            )
        if not isinstance(self.where, str) or not self.where.strip():
            raise FlowError(
                f"Range query {self.name!r} has no predicate",
                code="QUERY_PREDICATE_MISSING",
                got=f"where={self.where!r}",
                do="Give SQL such as 'lat > 40.6', or 'true' for all rows",
            )
        if not (_is_finite(self.weight) and self.weight > 0):
            raise FlowError(
                f"The weight of range query {self.name!r} is not above zero",
                code="QUERY_WEIGHT_RANGE",
                got=repr(self.weight),
                why="A query without weight would always lose its rows first",
                do="Give a finite number above 0, or leave the query out",
            )
        if not (_is_finite(self.loss_sensitivity) and self.loss_sensitivity >= 0):
            raise FlowError(
                f"The loss_sensitivity of range query {self.name!r} is out of range",
                code="QUERY_SENSITIVITY_RANGE",
                got=repr(self.loss_sensitivity),
                why="Below zero, quality would rise when rows are lost",
                do="Give a finite number of at least 0; 1 loses as much quality as rows",
            )


#: Characters of a predicate that a message shows.
_WHERE_MAX = 80


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def refused(query: RangeQuery, error: FlowError) -> FlowError:
    """The same error with the name and the predicate of the query."""
    where = query.where if len(query.where) <= _WHERE_MAX else f"{query.where[:_WHERE_MAX]} …"
    return error.prefixed(f"Range query {query.name!r} ({where})")


def listed_queries(given: Sequence[RangeQuery]) -> tuple[RangeQuery, ...]:
    """The queries of a match, checked to be a list of such."""
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    wrong = next((one for one in given if not isinstance(one, RangeQuery)), None) if listed else given
    if wrong is not None or not listed:
        raise FlowError(
            "match takes a list of range queries",
            code="MATCH_QUERIES_TYPE",
            got=repr(wrong),
            do='Write match([tg.RangeQuery("airport", "lat > 40.6"), …])',
        )
    return tuple(given)
