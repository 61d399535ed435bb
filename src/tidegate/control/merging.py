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
from collections.abc import Mapping

from tidegate.model.piece_index import Group, GroupKey
from tidegate.model.pieces import Piece
from tidegate.model.times import BEGINNING_US

#: Pieces of one level that make one of the next. Fewer: more rewriting; more: more pieces to probe.
TIER = 8
#: A closed slot with fewer pieces than this is left alone: rewriting two pieces into one saves too little.
CLOSED_MIN = 3


def choose_merges(
    groups: Mapping[GroupKey, Group],
    slot_us: tuple[int, int],
    watermark_us: int,
    alive_from_us: tuple[int, int],
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Per instance of one operator: the groups of piece names to merge in the next batch.

    `groups`: its pieces by what may become one (`model/piece_index.PieceIndex.groups`).

    A slot that ends below the watermark gets no more rows. Pieces below `alive_from_us` of their side will
    soon be dropped whole and are not rewritten. Pieces that span several slots (a batch that caught up on
    hours) are not merged: that would only keep other rows longer.
    """
    chosen: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    # Slots below these are closed.
    open_from = tuple(watermark_us // one_us if one_us > 0 else BEGINNING_US for one_us in slot_us)
    enough = [
        key
        for key, group in groups.items()
        if len(group) >= TIER or (len(group) >= CLOSED_MIN and key[2] < open_from[key[1]])
    ]
    for key in sorted(enough):
        instance, side, slot, *_ = key
        living = [piece for piece in groups[key].values() if piece.last_us >= alive_from_us[side]]
        closed = slot < open_from[side]
        if len(living) >= (CLOSED_MIN if closed else TIER):
            chosen[str(instance)].extend([_names(living)] if closed else _tiers(living))
    return {instance: tuple(groups) for instance, groups in chosen.items() if groups}


def _tiers(group: list[Piece]) -> list[tuple[str, ...]]:
    levels: dict[int, list[Piece]] = defaultdict(list)
    for piece in group:
        levels[piece.level].append(piece)
    return [_names(levels[level]) for level in sorted(levels) if len(levels[level]) >= TIER]


def _names(group: list[Piece]) -> tuple[str, ...]:
    return tuple(sorted(piece.name for piece in group))
