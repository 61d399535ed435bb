"""Which stored rows are dropped when the state exceeds its byte limit: oldest, least productive first.

Ours. A join drops rows by time: everything of a side below a moment (`Skipping.forget_us`), so only the
oldest slots of a side can go, in order.

    side     slots, oldest first        dropped
    left     [ 5 ][ 6 ][ 7 ][ 8 ]       ████░░░░░░░░░░░░      up to the end of a slot
    right    [ 5 ][ 6 ][ 7 ][ 8 ]       ████████████░░░░

The worth of the rows of a slot is the number of matches they are expected to find before their window ends,
from the matches per row of the ages ahead of them. Each side is a curve, bytes against worth; the flattest
parts of all curves go first, several slots at once where a productive slot precedes unproductive ones.
Without measurements, rows are worth the time they have left.

Guarantee: bytes fit, or `short_bytes` says what is missing; nothing is dropped without need; the newest slot
of a side, which is still filled, is never dropped; only joins that may lose rows drop any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidegate.control.convex_hull import hull
from tidegate.model.pieces import Piece
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT

#: Per join and side (left, right): matches that a stored row finds at each age, in any unit.
Productivity = Mapping[str, tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True)
class Forgetting:
    """Per join: stored rows of the left and right side below these times are dropped."""

    forget_us: Mapping[str, tuple[int, int]]
    #: Bytes stored after that, and bytes still above the limit.
    bytes_left: int
    short_bytes: int = 0


@dataclass(frozen=True)
class _Part:
    """Slots that are dropped together: up to which time, their bytes, and their worth."""

    join: str
    side: int
    until_us: int
    bytes: int
    worth: float


def forget(
    pieces: Sequence[Piece], joins: Iterable[str], bytes_max: int, productivity: Productivity | None = None
) -> Forgetting:
    """What joins drop so that all pieces together fit into this many bytes."""
    stored = sum(piece_bytes(piece) for piece in pieces)
    parts: list[_Part] = []
    for join in sorted(joins):
        for side in (LEFT, RIGHT):
            mine = [piece for piece in pieces if piece.operator == join and piece.side == side]
            values = (productivity or {}).get(join, ((), ()))[side]
            parts += _parts(join, side, [piece for piece in mine if piece.slot is not None], values)
    forgotten: dict[str, tuple[int, int]] = {}
    for part in sorted(parts, key=lambda part: part.worth / part.bytes):
        if stored <= bytes_max:
            break
        left, right = forgotten.get(part.join, (BEGINNING_US, BEGINNING_US))
        forgotten[part.join] = (part.until_us, right) if part.side == LEFT else (left, part.until_us)
        stored -= part.bytes
    return Forgetting(forgotten, stored, max(0, stored - bytes_max))


def piece_bytes(piece: Piece) -> int:
    """Bytes of its rows and of its matched bits."""
    return piece.data.length + sum(one.length for one in piece.matched.values())


def _parts(join: str, side: int, pieces: Sequence[Piece], values: Sequence[float]) -> list[_Part]:
    """What a side can drop, oldest first; each part is worth more per byte than the one before."""
    slots = sorted({piece.slot for piece in pieces if piece.slot is not None})
    if len(slots) < 2:
        return []
    oldest, newest = slots[0], slots[-1]
    held = dict.fromkeys(slots, 0)
    rows = dict.fromkeys(slots, 0)
    until = dict.fromkeys(slots, BEGINNING_US)
    for piece in pieces:
        if piece.slot is not None:
            held[piece.slot] += piece_bytes(piece)
            rows[piece.slot] += piece.rows
            until[piece.slot] = max(until[piece.slot], piece.last_us + 1)
    worths = [rows[slot] * _to_come(newest - slot, newest - oldest + 1, values) for slot in slots[:-1]]
    size = np.concatenate(([0.0], np.cumsum([held[slot] for slot in slots[:-1]])))
    worth = np.concatenate(([0.0], np.cumsum(worths)))
    ends = np.maximum.accumulate([until[slot] for slot in slots[:-1]])
    corners = hull(size, worth)
    return [
        _Part(join, side, int(ends[b - 1]), int(size[b] - size[a]), float(worth[b] - worth[a]))
        for a, b in pairwise(corners)
    ]


def _to_come(age: int, ages: int, values: Sequence[float]) -> float:
    """Matches per row at the ages still ahead of a row of this age."""
    return float(sum(values[age:])) if len(values) else float(max(0, ages - age))
