"""The catalogue of estimated aggregates: the parts of each aggregate when rows are sampled.

A row that is kept with probability π counts for w = 1/π rows. All rows of a group in a batch have the same
w, so panes can be summed first and weighted afterwards; texts name it {weight}.

    aggregate                                    value                           interval
    count, count_if, sum, avg                    Horvitz–Thompson                95 %: `horvitz_thompson.py`
    var_*, stddev_*, skewness, kurtosis,         of the rows, weighted by w      none
    covar_*, corr
    min, max, first, last, any_value, min_by,    that of the kept rows           none: the others are unknown
    max_by, bool_*, bit_*, sketches
    lists, sets, user-defined                    refused: no row can replace the missing ones

Exact partials are unchanged, and the contributions of w are stored beside them. With nothing left out every
contribution is zero, and the result is the exact one to the last bit. Contributions are doubles: estimates
of integers and decimals have 15 digits.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.errors import FlowError
from tidegate.window.aggregate.aggregates import Aggregate, AggregatePart, Merge, aggregate

COUNT, SUM, AVERAGE = "estimated count", "estimated sum", "estimated average"

#: A row's part of the variance of an estimated total is w (w − 1) x² (Poisson sampling).
_SPREAD = "({weight} * ({weight} - 1D))"
#: Lines of moments that are means, which weights do not change.
_MEANS = {Merge.MOMENTS: (1,), Merge.COMOMENTS: (1, 2)}


def estimated(of: Aggregate) -> Aggregate:
    """The aggregate for sampled rows: the same results, from more parts."""
    match of.name:
        case "count" | "count_if":
            return replace(of, parts=(*of.parts, _weights(of.parts[0])), final=COUNT)
        case "sum" | "avg":
            counted, moments = aggregate("count").parts[0], aggregate("skewness").parts[0]
            parts = (*of.parts, _weights(counted), _ADDED, weighted(moments, _SPREAD))
            return replace(of, parts=parts, final=SUM if of.name == "sum" else AVERAGE)
        case _ if of.parts[0].merge in (Merge.CONCAT, Merge.UNION):
            raise FlowError(
                f"{of.name} cannot be estimated",
                code="AGGREGATE_NOT_ESTIMABLE",
                why="A list of the sampled rows would look like a list of all rows",
                do="Put it into a window of its own, without approximate=True",
            )
        case _:
            return replace(of, parts=tuple(weighted(part, "{weight}") for part in of.parts))


def weighted(part: AggregatePart, weight: str) -> AggregatePart:
    """Moments in which a row counts `weight` times; other parts are unchanged."""
    if part.merge not in _MEANS:
        return part
    means = _MEANS[part.merge]

    def weigh(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text if i in means else f"{weight} * ({text})" for i, text in enumerate(texts))

    return AggregatePart(part.merge, weigh(part.pane), weigh(part.row))


def _weights(counted: AggregatePart) -> AggregatePart:
    """Σ (w − 1), Σ w (w − 1) and Σ (w (w − 1))² over the rows that a count counts."""
    factors = "({weight} - 1D)", _SPREAD, f"({_SPREAD} * {_SPREAD})"
    pane, row = (tuple(f"{factor} * {text}" for factor in factors) for (text,) in (counted.pane, counted.row))
    return AggregatePart(Merge.SUM, pane, row)


#: Σ (w − 1) x: the estimated contribution of the rows that were left out.
_ADDED = AggregatePart(
    Merge.SUM,
    ("({weight} - 1D) * sum(CAST({0} AS DOUBLE))",),
    ("({weight} - 1D) * CAST({0} AS DOUBLE)",),
)
