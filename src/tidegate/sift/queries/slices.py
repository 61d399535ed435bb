"""Slices: sets of places in n dimensions, for combining comparisons.

A set is cut along one axis after the other, as an interval decision diagram: along its first axis it
consists of slices, and within a slice it is everything (True), nothing (False), or a set that is cut along
later axes.

    x < 4 or y < 5         along x:   [ … 4) True      [4 … END) ┐
                           along y:                              └ [ … 5) True    [5 … END) False

Neighbouring slices always differ, and an axis along which nothing changes does not occur. So a set has
exactly one form, whatever predicate it comes from. Its boxes (the paths to True) are disjoint by
construction, and few: `merged` joins what two slices of the first axis have in common.

Guarantee: and, or are exact. Work is proportional to the boxes of the result, at worst to the product of
those of the operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.sift.queries.axes import END, FIRST

#: From one place up to, but not including, another.
Range = tuple[int, int]
#: The ranges of a box by axis; on all other axes every value belongs to it, null included.
Box = dict[int, Range]
EVERYTHING: Range = (FIRST, END)


class Sliced(NamedTuple):
    """A set that is neither everything nor nothing."""

    axis: int
    #: (end, content) of each slice, from FIRST up to END without a gap.
    slices: tuple[tuple[int, Set], ...]


Set = bool | Sliced


def from_edges(axis: int, edges: list[int]) -> Set:
    """The set of the places of one axis that have an odd number of these edges at or below them."""
    starts_inside = bool(edges) and edges[0] == FIRST
    ends = edges[starts_inside:]
    if not ends or ends[-1] != END:
        ends = [*ends, END]
    if len(ends) == 1:
        return starts_inside
    return Sliced(axis, tuple([(end, starts_inside ^ (i % 2 == 1)) for i, end in enumerate(ends)]))


def combined(first: Set, second: Set, union: bool) -> Set:
    """The intersection of two sets, or (`union`) their union."""
    if isinstance(first, bool):
        return first if first is union else second
    if isinstance(second, bool):
        return second if second is union else first
    axis = min(first.axis, second.axis)
    ours = first.slices if first.axis == axis else ((END, first),)
    theirs = second.slices if second.axis == axis else ((END, second),)
    slices: list[tuple[int, Set]] = []
    i = j = 0
    while i < len(ours):
        (our_end, our_part), (their_end, their_part) = ours[i], theirs[j]
        end, part = min(our_end, their_end), combined(our_part, their_part, union)
        if slices and slices[-1][1] == part:
            slices[-1] = (end, part)
        else:
            slices.append((end, part))
        i += our_end == end
        j += their_end == end
    return slices[0][1] if len(slices) == 1 else Sliced(axis, tuple(slices))


def count(found: Set) -> int:
    """The number of boxes of the set before they are merged."""
    if isinstance(found, bool):
        return int(found)
    return sum([count(part) for _, part in found.slices])


def boxes_in(found: Set) -> list[Box]:
    """The set as disjoint boxes, neighbours merged."""
    return merged(list(_paths(found)))


def _paths(found: Set) -> Iterator[Box]:
    if isinstance(found, bool):
        if found:
            yield {}
        return
    low = FIRST
    for end, part in found.slices:
        for box in _paths(part) if part else ():
            yield {found.axis: (low, end), **box}
        low = end


def merged(boxes: list[Box]) -> list[Box]:
    """Fewer boxes: merge neighbours along an axis where all other axes agree, until there are none."""
    before = len(boxes) + 1
    while 1 < len(boxes) < before:
        before = len(boxes)
        for axis in sorted({axis for box in boxes for axis in box}):
            boxes = _merged_along(axis, boxes)
    return boxes


def _merged_along(axis: int, boxes: list[Box]) -> list[Box]:
    rows: dict[tuple[tuple[int, Range], ...], list[Range]] = {}
    for box in boxes:
        others = tuple(sorted([(other, span) for other, span in box.items() if other != axis]))
        rows.setdefault(others, []).append(box.get(axis, EVERYTHING))
    found: list[Box] = []
    for others, ranges in rows.items():
        for span in _joined(sorted(ranges)):
            found.append(dict(others) if span == EVERYTHING else {**dict(others), axis: span})
    return found


def _joined(ranges: list[Range]) -> list[Range]:
    joined = ranges[:1]
    for low, high in ranges[1:]:
        if low == joined[-1][1]:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined
