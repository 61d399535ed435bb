"""From queries to boxes: exactly the rows of a query, in the space that sifters use.

Paper: sifters, section II-B: "such queries can be converted into a set of n-dimensional range queries". The
report that describes how is not part of the paper; this is our way.

    where ─▶ sql.py ─▶ predicates.py ─▶ ranges.py  ─▶  slices.py  ─▶ boxes
          templates.py                 one comparison  and, or, not
                  └───────▶ conjunctions.py ─────────────────────────▲    a whole template at once

Guarantee: a row is in a box of a query, and then in exactly one, if and only if Spark evaluates the
predicate as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.api.range_queries import RangeQuery, refused
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import END, FIRST
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.queries.conjunctions import single_boxes
from tidegate.sift.queries.predicates import comparisons
from tidegate.sift.queries.slices import Box
from tidegate.sift.queries.space import Space, SpaceMaker
from tidegate.sift.queries.templates import TemplateGroup, grouped
from tidegate.sift.queries.truth import true_boxes

Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def boxes_of(queries: Sequence[RangeQuery], schema: Mapping[str, str]) -> Boxes:
    """The boxes of all queries over a stream whose columns have these kinds (see `axes.py`).

    Boxes of a query are adjacent, in the order of the queries.
    """
    _check_names(queries)
    groups = grouped(queries)
    space = _space_of(groups, queries, schema)
    found = [arrays for group in groups for arrays in _boxes_of(group, queries, space)]
    low, high, owner = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(owner, kind="stable")
    axes = tuple(line.axis for line in space.lines)
    return Boxes(axes, low[order], high[order], owner[order], len(queries))


def _space_of(
    groups: Iterable[TemplateGroup], queries: Sequence[RangeQuery], schema: Mapping[str, str]
) -> Space:
    maker = SpaceMaker(schema)
    for group in groups:
        for comparison in comparisons(group.tree):
            try:
                if maker.take_in(comparison.column) == "category":
                    maker.name(comparison.column, group.values(comparison))
            except FlowError as error:
                raise refused(queries[group.members[0]], error) from None
    try:
        return maker.made()
    except FlowError as error:
        raise refused(queries[0], error) from None


def _boxes_of(group: TemplateGroup, queries: Sequence[RangeQuery], space: Space) -> Iterable[Arrays]:
    members = np.array(group.members, np.int32)
    single = single_boxes(group, space)
    yield single.low[single.made], single.high[single.made], members[single.made]
    several: list[tuple[int, Box]] = []
    for member in np.flatnonzero(~single.made).tolist():
        number = group.members[member]
        try:
            boxes = true_boxes(group.predicate(member), space)
        except FlowError as error:
            raise refused(queries[number], error) from None
        several += [(number, box) for box in boxes]
    yield _as_arrays(several, len(space.lines))


def _as_arrays(boxes: Sequence[tuple[int, Box]], axes: int) -> Arrays:
    sides = [(i, axis, low, high) for i, (_, box) in enumerate(boxes) for axis, (low, high) in box.items()]
    row, axis, lows, highs = np.array(sides, np.int64).reshape(-1, 4).T
    low, high = np.full((len(boxes), axes), FIRST, np.int64), np.full((len(boxes), axes), END, np.int64)
    low[row, axis], high[row, axis] = lows, highs
    return low, high, np.array([owner for owner, _ in boxes], np.int32)


def _check_names(queries: Iterable[RangeQuery]) -> None:
    seen: set[str] = set()
    for query in queries:
        if query.name in seen:
            raise FlowError(
                f"Two queries have the name {query.name!r}",
                code="QUERY_NAMES_EQUAL",
                why="Results carry the name of their query",
                do="Give each tg.RangeQuery its own name",
            )
        seen.add(query.name)
    if not seen:
        raise FlowError(
            "There are no queries to match",
            code="QUERY_MISSING",
            do='Give at least one, for example tg.RangeQuery("airport", "lat between 40.6 and 40.7")',
        )
