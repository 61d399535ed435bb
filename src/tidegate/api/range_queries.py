"""Continuous range queries over a stream, each with a weight.

    tg.Query("airport", where="lat between 40.6 and 40.7 and lon > -73.9", weight=2.0, alpha=1.5)

Paper: sifters, sections II-B and II-C. `where` is SQL that compares columns with literals; a row belongs to
the query if it is true. `weight` is relative to the weights of the other queries.

`alpha` says how much quality a query loses when rows are missing from its answer. With completeness C, the
share of the answer that arrives, its quality of service is V = α·C + 1 − α: with α = 0 missing rows cost
nothing, with α = 1 quality equals completeness, and above 1 it falls faster, below zero when little of the
answer is left. The paper states that V is within [0, 1] but draws α from [1, 2]; we follow its numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from tidegate.errors import FlowError


@dataclass(frozen=True)
class Query:
    """One continuous query over a stream: a name, a predicate, a weight."""

    name: str
    where: str
    weight: float = 1.0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise FlowError(
                "A query needs a name", got=repr(self.name), why="Its answers are distinguished by it"
            )
        if not isinstance(self.where, str) or not self.where.strip():
            raise FlowError(
                f"Query {self.name!r}: it asks for nothing",
                got=f"where={self.where!r}",
                do="Give a predicate such as 'lat > 40.6', or 'true' for all rows",
            )
        if not (_is_finite(self.weight) and self.weight > 0):
            raise FlowError(
                f"Query {self.name!r}: its weight is not above zero",
                got=f"weight={self.weight!r}",
                why="What counts for nothing, or less, cannot be weighed against other queries",
                do="Give a finite number above 0, or leave the query out",
            )
        if not (_is_finite(self.alpha) and self.alpha >= 0):
            raise FlowError(
                f"Query {self.name!r}: its alpha is no slope of quality",
                got=f"alpha={self.alpha!r}",
                why="Quality is α·C + 1 − α of completeness C: it must not rise when rows are lost",
                do="Give a finite number from 0 up; 1 loses as much quality as rows",
            )


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def refused(query: Query, error: FlowError) -> FlowError:
    """The same error with the name of the query."""
    return FlowError(f"Query {query.name!r}: {error}")
