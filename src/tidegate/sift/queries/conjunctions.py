"""Conjunctions: all queries of a template at once, where each of them is a single box.

Most queries are comparisons that must all hold. Then the box has on each axis the highest lower bound and
the lowest upper bound. Queries of one template compare the same columns in the same way, so bounds are
arrays, one number per query.

Guarantee: the same boxes as `truth.py`. Special cases (a literal that is too large or of the wrong kind, a
decimal for an integer, a contradiction) are left to `truth.py`, and so are all errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.queries.axes import END, FIRST, NULL, places
from tidegate.sift.queries.predicates import And, Compare, Predicate, Slot
from tidegate.sift.queries.ranges import WHOLE_MAX
from tidegate.sift.queries.space import AxisCells, Space
from tidegate.sift.queries.templates import TemplateGroup


class Single(NamedTuple):
    """One box per query of a group; none where `made` is false."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    made: NDArray[np.bool_]


def single_boxes(group: TemplateGroup, space: Space) -> Single:
    shape = len(group.members), len(space.lines)
    low, high = np.full(shape, FIRST, np.int64), np.full(shape, END, np.int64)
    made = np.ones(len(group.members), bool)
    leaves = _leaves(group.tree)
    if leaves is None:
        return Single(low, high, ~made)
    for leaf, slot in leaves:
        k = space.numbers[leaf.column]
        before, after, exact = _filled(space.lines[k], group, leaf, slot)
        made &= exact
        if leaf.operator in ("<", "<="):
            high[:, k] = np.minimum(high[:, k], before if leaf.operator == "<" else after)
            continue
        low[:, k] = np.maximum(low[:, k], after if leaf.operator == ">" else before)
        high[:, k] = np.minimum(high[:, k], after if leaf.operator == "=" else NULL)
    return Single(low, high, made & (low < high).all(axis=1))


def _leaves(tree: Predicate) -> list[tuple[Compare, Slot]] | None:
    """The comparisons of a pure conjunction, each with its one literal; None for any other tree."""
    if isinstance(tree, Compare):
        literal = tree.literals[0]
        if tree.operator != "<=>" and len(tree.literals) == 1 and isinstance(literal, Slot):
            return [(tree, literal)]
    elif isinstance(tree, And):
        parts = [_leaves(part) for part in tree.parts]
        if None not in parts:
            return [leaf for part in parts if part for leaf in part]
    return None


def _filled(
    line: AxisCells, group: TemplateGroup, leaf: Compare, slot: Slot
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """The places [before, after) that the literals of a slot fill, and which of them are exact."""
    kind = line.axis.kind
    texts = [literals[slot.number] for literals in group.literals]
    is_string = texts[0][0] == "'"
    if is_string != (kind == "category") or (is_string and leaf.operator != "="):
        nowhere = np.zeros(len(texts), np.int64)
        return nowhere, nowhere, np.zeros(len(texts), np.bool_)
    if is_string:
        cell = np.array([line.cells[text[1:-1]] for text in texts], np.float64)
        return np.where(cell == 0, FIRST, places(cell)), places(cell + 1), np.ones(len(texts), np.bool_)
    value = np.array([float(text) for text in texts]) * (-1.0 if slot.negative else 1.0)
    exact = np.abs(value) < WHOLE_MAX
    if kind == "number":
        place = places(value)
        return place, place + 1, exact
    exact &= np.array(["." not in text for text in texts])
    return places(np.ceil(value)), places(np.floor(value) + 1), exact
