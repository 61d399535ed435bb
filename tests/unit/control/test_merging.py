"""Which pieces are merged, case by case; what follows over many batches is under tests/property."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.state.samples import a_piece

from tidegate.control.merging import CLOSED_MIN, TIER, choose_merges
from tidegate.model.piece_index import PieceIndex
from tidegate.model.pieces import Piece
from tidegate.model.routing import together
from tidegate.model.times import BEGINNING_US, END_US

SLOT_US = 100
#: Partitions 0 and 1 belong to instance 0, 2 and 3 to instance 1.
ROUTING = together(0, 2, (0, 0, 1, 1))


def pieces(count: int, file: str = "s", **fields: Any) -> list[Piece]:
    """Pieces of slot 7, left side, partition 0, unless told otherwise."""
    given = {"slot": 7, "side": 0, "last_us": 750, "partitions": (0,), "bounds": (0, 2), **fields}
    return [replace(a_piece(file, number), **given) for number in range(count)]


def chosen(
    *groups: list[Piece],
    watermark_us: int = 0,
    slot_us: tuple[int, int] = (SLOT_US, SLOT_US),
    alive_from_us: tuple[int, int] = (BEGINNING_US, BEGINNING_US),
) -> dict[str, tuple[tuple[str, ...], ...]]:
    everything = [piece for group in groups for piece in group]
    return choose_merges(PieceIndex(everything).groups("near", ROUTING), slot_us, watermark_us, alive_from_us)


def names(group: list[Piece]) -> tuple[str, ...]:
    return tuple(sorted(piece.name for piece in group))


# -- slots that still grow -----------------------------------------------------------------------------------


def test_nothing_stored_is_nothing_to_merge() -> None:
    assert chosen() == {}


def test_an_open_slot_waits_for_a_full_tier() -> None:
    assert chosen(pieces(TIER - 1)) == {}
    full = pieces(TIER)
    assert chosen(full) == {"0": (names(full),)}


def test_levels_are_merged_apart() -> None:
    young, old = pieces(TIER, "young"), pieces(TIER, "old", level=1)
    assert chosen(young, old) == {"0": (names(young), names(old))}
    assert chosen(pieces(TIER - 1, "young"), pieces(TIER - 1, "old", level=1)) == {}


def test_more_than_a_tier_of_one_level_becomes_one_group() -> None:
    many = pieces(3 * TIER)
    assert chosen(many) == {"0": (names(many),)}


# -- slots that are over -------------------------------------------------------------------------------------


def test_a_slot_closes_when_the_watermark_reaches_its_end() -> None:
    few = pieces(CLOSED_MIN)
    assert chosen(few, watermark_us=799) == {}
    assert chosen(few, watermark_us=800) == {"0": (names(few),)}


def test_a_slot_before_the_epoch_closes_at_its_end_too() -> None:
    few = pieces(CLOSED_MIN, slot=-2, last_us=-150)
    assert chosen(few, watermark_us=-101) == {}
    assert chosen(few, watermark_us=-100) == {"0": (names(few),)}


def test_a_closed_slot_becomes_one_whatever_the_levels() -> None:
    young, old = pieces(CLOSED_MIN - 1, "young"), pieces(1, "old", level=3)
    assert chosen(young, old, watermark_us=END_US) == {"0": (names(young + old),)}


def test_a_closed_slot_of_too_few_pieces_is_left_alone() -> None:
    assert chosen(pieces(CLOSED_MIN - 1), watermark_us=END_US) == {}


def test_the_one_slot_of_an_unbounded_join_never_closes() -> None:
    few = pieces(CLOSED_MIN, slot=0)
    assert chosen(few, watermark_us=END_US, slot_us=(0, 0)) == {}
    full = pieces(TIER, slot=0)
    assert chosen(full, watermark_us=END_US, slot_us=(0, 0)) == {"0": (names(full),)}


def test_each_side_closes_by_its_own_slot_length() -> None:
    left, right = pieces(CLOSED_MIN, "left"), pieces(CLOSED_MIN, "right", side=1)
    assert chosen(left, right, watermark_us=800, slot_us=(100, 200)) == {"0": (names(left),)}
    assert chosen(left, right, watermark_us=800, slot_us=(200, 100)) == {"0": (names(right),)}


# -- what must not meet --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"side": 1}, {"slot": 8}, {"keyless": True}, {"partitions": (3,)}])
def test_sides_slots_keyless_rows_and_instances_do_not_add_up_to_a_tier(fields: dict[str, Any]) -> None:
    one, other = pieces(TIER - 1, "one"), pieces(TIER - 1, "other", **fields)
    assert chosen(one, other) == {}
    assert chosen(one, other, watermark_us=END_US) != {}


@pytest.mark.parametrize("fields", [{"side": 1}, {"slot": 8}, {"keyless": True}])
def test_sides_slots_and_keyless_rows_make_groups_of_their_own(fields: dict[str, Any]) -> None:
    one, other = pieces(TIER, "one"), pieces(TIER, "other", **fields)
    assert chosen(one, other) == {"0": (names(one), names(other))}


def test_instances_make_groups_of_their_own() -> None:
    one, other = pieces(TIER, "one"), pieces(TIER, "other", partitions=(3,))
    assert chosen(one, other) == {"0": (names(one),), "1": (names(other),)}


def test_a_piece_that_two_instances_share_counts_for_both() -> None:
    shared = pieces(1, "shared", partitions=(1, 2), bounds=(0, 1, 1, 2))
    mine, theirs = pieces(TIER - 1, "mine"), pieces(TIER - 2, "theirs", partitions=(3,))
    assert chosen(shared, mine, theirs) == {"0": (names(shared + mine),)}
    assert chosen(shared, mine, theirs, watermark_us=END_US) == {
        "0": (names(shared + mine),),
        "1": (names(shared + theirs),),
    }


def test_a_piece_with_several_partitions_of_one_instance_counts_once() -> None:
    wide = pieces(TIER - 1, partitions=(0, 1), bounds=(0, 1, 1, 2))
    assert chosen(wide) == {}
    assert chosen(wide, watermark_us=END_US) == {"0": (names(wide),)}


# -- what is not worth it ------------------------------------------------------------------------------------


def test_pieces_that_are_about_to_be_dropped_are_not_rewritten() -> None:
    dying = pieces(TIER, last_us=750)
    assert chosen(dying, alive_from_us=(751, BEGINNING_US)) == {}
    assert chosen(dying, alive_from_us=(750, END_US)) == {"0": (names(dying),)}


def test_dying_pieces_do_not_help_to_fill_a_tier() -> None:
    assert chosen(pieces(TIER - 1, "a"), pieces(1, "b", last_us=700), alive_from_us=(720, 720)) == {}


def test_pieces_that_span_several_slots_are_left_alone() -> None:
    assert chosen(pieces(3 * TIER, slot=None), watermark_us=END_US) == {}
