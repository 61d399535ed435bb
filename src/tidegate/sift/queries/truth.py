"""The places where a predicate is true, exactly, in SQL's three-valued logic.

A row belongs to a query where its predicate is true. With null, a predicate may be neither true nor false,
so the places where it is true and those where it is false are two sets that together are not everything.
`not` swaps them; `and` is true where all parts are and false where any part is; `or` is the reverse. Only
the requested set is computed.
"""

from __future__ import annotations

from tidegate.errors import FlowError
from tidegate.sift.queries.predicates import And, Compare, ConstantTruth, Not, Predicate
from tidegate.sift.queries.ranges import edges
from tidegate.sift.queries.slices import Box, Set, boxes_in, combined, count, from_edges
from tidegate.sift.queries.space import Space

#: A query of more boxes than this is refused: it would slow down every sifter, and is most likely a mistake.
BOXES_MAX = 1000


def true_boxes(predicate: Predicate, space: Space) -> list[Box]:
    """Disjoint boxes of all places where the predicate is true; FlowError where there is none."""
    found = boxes_in(_where(predicate, True, space))
    if not found:
        raise FlowError(
            "The predicate can never be true",
            code="QUERY_NEVER_TRUE",
            why="It contradicts itself, or compares with null",
            do="Correct the query or remove it; test for null with `column is null`",
        )
    return found


def _where(predicate: Predicate, wanted: bool, space: Space) -> Set:
    """The places where the predicate is true, or (`wanted` is False) false."""
    if isinstance(predicate, Compare):
        number = space.numbers[predicate.column]
        found = from_edges(number, edges(space.lines[number], predicate, wanted))
        return _limited(found)
    if isinstance(predicate, ConstantTruth):
        return predicate.value is wanted
    if isinstance(predicate, Not):
        return _where(predicate.part, not wanted, space)
    sets = [_where(part, wanted, space) for part in predicate.parts]
    return _together(sets, union=isinstance(predicate, And) is not wanted)


def _together(sets: list[Set], union: bool) -> Set:
    """All sets combined pairwise in rounds, so that a long list is not combined with a growing result."""
    while len(sets) > 1:
        pairs = zip(sets[::2], sets[1::2], strict=False)
        left_over = sets[len(sets) & ~1 :]
        sets = [_limited(combined(first, second, union)) for first, second in pairs] + left_over
    return sets[0]


def _limited(found: Set) -> Set:
    if count(found) > BOXES_MAX:
        raise FlowError(
            "The predicate consists of too many ranges",
            code="QUERY_TOO_COMPLEX",
            got=f"more than {BOXES_MAX}",
            why="Each range costs time for every row",
            do="Split it into several queries, or use ranges in place of many single values",
        )
    return found
