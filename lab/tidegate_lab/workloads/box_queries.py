"""Queries that workloads generate directly as boxes, without SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.queries.query_set import QuerySet, normalised

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def queries_of_boxes(
    axes: Sequence[Axis],
    low: ArrayLike,
    high: ArrayLike,
    *,
    owner: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    alphas: ArrayLike | None = None,
) -> QuerySet:
    """Queries that are boxes already, from `low` to below `high` in coordinates: arrays (boxes, axes).

    Without `owner` every box is a query of its own. Nobody checks that boxes of a query do not overlap.
    """
    lower, upper = np.array(low, np.float64), np.array(high, np.float64)
    _check_boxes(lower, upper, len(axes))
    owners = np.arange(len(lower), dtype=np.int32) if owner is None else np.array(owner, np.int32)
    queries = int(owners.max()) + 1
    if owners.shape != (len(lower),) or len(np.unique(owners)) != queries or owners.min() < 0:
        raise FlowError(
            "Every box has an owner, and every query from 0 on has a box",
            code="LAB_BOX_OWNERS_INVALID",
            got=f"owner={owners}",
        )
    boxes = Boxes(tuple(axes), places(lower), places(upper), owners, queries)
    called = tuple(map(str, range(queries))) if names is None else tuple(names)
    alpha = _per_query("alphas", alphas, queries)
    weight = _per_query("weights", weights, queries)
    if len(called) != queries or len(set(called)) != queries:
        raise FlowError(
            "Every query has a name of its own",
            code="LAB_QUERY_NAMES_EQUAL",
            got=f"{len(set(called))} names, {queries} queries",
        )
    if not (np.isfinite(alpha) & (alpha >= 0)).all():
        raise FlowError(
            "The alpha of a query is a finite number from 0 up",
            code="LAB_QUERY_ALPHA_INVALID",
            got=alpha.min(),
        )
    return QuerySet(boxes, called, normalised(weight), alpha)


def _check_boxes(low: NDArray[np.float64], high: NDArray[np.float64], axes: int) -> None:
    if low.ndim != 2 or low.shape != high.shape or low.shape[1] != axes or not low.size:
        raise FlowError(
            "Boxes are two arrays with a line per box and a column per axis",
            code="LAB_BOX_SHAPES_INVALID",
            got=f"shapes {low.shape} and {high.shape}, {axes} axes",
        )
    # Also where a bound is NaN, which is neither below nor above anything.
    empty = np.flatnonzero(~(low < high).all(axis=1))
    if empty.size:
        i = int(empty[0])
        raise FlowError(
            f"Box {i} is empty",
            code="LAB_BOX_EMPTY",
            got=f"from {low[i].tolist()} to {high[i].tolist()}",
            why="A query without room can never be true",
            do="Give low < high on every axis",
        )


def _per_query(name: str, given: ArrayLike | None, queries: int) -> NDArray[np.float64]:
    values = np.ones(queries) if given is None else np.array(given, np.float64)
    if values.shape != (queries,):
        raise FlowError(
            f"There is one of {name} per query",
            code="LAB_QUERY_VALUES_INVALID",
            got=f"{values.shape}, {queries} queries",
        )
    return values
