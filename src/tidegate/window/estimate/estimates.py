"""The catalogue of estimated aggregates: what each takes apart into when rows are sampled.

A row that is kept with probability π stands for w = 1/π rows. All rows of a group in a batch have one w, so
panes can be added up first and weighed afterwards; texts name it {weight}.

    aggregate                                    value                           interval
    count, count_if, sum, avg                    Horvitz–Thompson                95 %: `horvitz_thompson.py`
    var_*, stddev_*, skewness, kurtosis,         of the rows, w of each          none
    covar_*, corr
    min, max, first, last, any_value, min_by,    that of the rows kept           none: nothing says what the
    max_by, bool_*, bit_*, sketches                                              others would have been
    lists, sets, user-defined                    refused: what is missing of them no other row stands for

Exact partials stay as they are, and what w adds lies beside them: with nothing left out every addition is
zero, and the result is the exact one to the last bit. What is added is double: estimates of whole numbers and
decimals have its 15 digits.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.errors import FlowError
from tidegate.window.aggregate.aggregates import Aggregate, AggregatePart, Merge, aggregate

COUNT, SUM, AVERAGE = "estimated count", "estimated sum", "estimated average"

#: Of the variance of an estimated total: w (w − 1) x² a row (Poisson sampling).
_SPREAD = "({weight} * ({weight} - 1D))"
#: Lines of moments that are means, which no weight changes.
_MEANS = {Merge.MOMENTS: (1,), Merge.COMOMENTS: (1, 2)}


def estimated(of: Aggregate) -> Aggregate:
    """The aggregate when rows may be sampled: the same results, from more parts."""
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
                why="A list of the rows that were kept would pass for one of all rows",
                do="Put it into a window of its own, without approximate=True",
            )
        case _:
            return replace(of, parts=tuple(weighted(part, "{weight}") for part in of.parts))


def weighted(part: AggregatePart, weight: str) -> AggregatePart:
    """Moments in which a row counts so many times; other parts as they are."""
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


#: Σ (w − 1) x: what the rows that were left out are estimated to add.
_ADDED = AggregatePart(
    Merge.SUM,
    ("({weight} - 1D) * sum(CAST({0} AS DOUBLE))",),
    ("({weight} - 1D) * CAST({0} AS DOUBLE)",),
)
