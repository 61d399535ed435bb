"""What a batch does to the list of stored pieces: pure, so that a commit can be tested without files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import TaskReport
from tidegate.model.routing import Routing


def after_batch(
    pieces: Iterable[Piece],
    reports: Iterable[TaskReport],
    routing: Mapping[str, Routing],
    is_dead: Callable[[Piece], bool],
) -> tuple[Piece, ...]:
    """The pieces that a batch leaves behind.

    1. Rows that were cut out are in other partitions. 2. Merged rows leave the pieces they came from. 3. New
    and merged pieces join the list. 4. Matched bits replace what the same instance wrote before. 5. Pieces
    without a row that can still match are dropped.
    """
    reports = list(reports)
    alive: dict[str, Piece] = {piece.name: piece for piece in pieces}
    for report in reports:
        # Several instances may tell of one piece, and all tell the same.
        alive.update({name: alive[name].with_ranges(ranges) for name, ranges in report.recut.items()})
    for report in reports:
        owned = [placement.owned_by(report.instance) for placement in routing[report.operator].sides]
        for name in report.merged:
            piece = alive.pop(name)
            rest = piece.without(owned[piece.side])
            if rest is not None:
                alive[name] = rest
        alive.update({piece.name: piece for piece in report.added})
    for report in reports:
        for name, blob in report.matched.items():
            if name in alive:
                alive[name] = _with_bits(alive[name], report.instance, blob)
    return tuple(piece for piece in alive.values() if not is_dead(piece))


def _with_bits(piece: Piece, instance: int, blob: ByteRange) -> Piece:
    return replace(piece, matched={**piece.matched, str(instance): blob})
