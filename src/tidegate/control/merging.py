"""Decides which stored pieces are merged: few pieces to probe, few rewrites.

Every batch adds a piece per instance, side and slot. Probing has a cost per piece, rewriting a cost per row,
so pieces are merged in tiers: eight of one level make one of the next (a row is rewritten at most
log8(batches per slot) times), and the rest of a slot is merged once more when the slot is closed.

    slot 7   ▪▪▪▪▪▪▪▪ ▪▪▪        eight of level 0 become one of level 1 …
             ■        ▪▪▪        … and when the watermark passes the end of slot 7 …
             █                   … all of it becomes one piece

Guarantee: after a slot has closed and been merged it holds at most one piece per instance and kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidegate.model.pieces import Piece
from tidegate.model.routing import Routing

#: Pieces of one level that make one of the next. Fewer: more rewriting; more: more pieces to probe.
TIER = 8
#: A closed slot with fewer pieces than this is left alone: rewriting two pieces into one saves too little.
CLOSED_MIN = 3


def choose_merges(
    pieces: Iterable[Piece],
    routing: Routing,
    slot_us: tuple[int, int],
    watermark_us: int,
    alive_from_us: tuple[int, int],
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Per instance of one operator: the groups of piece names to merge in the next batch.

    A slot that ends below the watermark gets no more rows. Pieces below `alive_from_us` of their side will
    soon be dropped whole and are not rewritten. Pieces that span several slots (a batch that caught up on
    hours) are not merged: that would only keep other rows longer.
    """
    groups: dict[tuple[int, int, int, bool, bool], list[Piece]] = defaultdict(list)
    for piece in pieces:
        if piece.slot is not None and piece.last_us >= alive_from_us[piece.side]:
            table = routing.sides[piece.side].table
            for instance in {table[p] for p in piece.partitions}:
                groups[instance, piece.side, piece.slot, piece.keyless, piece.marks].append(piece)
    chosen: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for (instance, side, slot, *_), group in groups.items():
        closed = 0 < slot_us[side] and (slot + 1) * slot_us[side] <= watermark_us
        chosen[str(instance)].extend(_closed(group) if closed else _tiers(group))
    return {instance: tuple(groups) for instance, groups in chosen.items() if groups}


def _closed(group: list[Piece]) -> list[tuple[str, ...]]:
    return [_names(group)] if len(group) >= CLOSED_MIN else []


def _tiers(group: list[Piece]) -> list[tuple[str, ...]]:
    levels: dict[int, list[Piece]] = defaultdict(list)
    for piece in group:
        levels[piece.level].append(piece)
    return [_names(same) for same in levels.values() if len(same) >= TIER]


def _names(group: list[Piece]) -> tuple[str, ...]:
    return tuple(sorted(piece.name for piece in group))
