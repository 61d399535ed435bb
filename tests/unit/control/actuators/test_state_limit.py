from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.state.samples import a_piece

from tidegate.control.actuators.state_limit import forget, piece_bytes
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.times import BEGINNING_US

SLOT_US = 100


def piece(join: str, side: int, slot: int, size: int, rows: int = 10) -> Piece:
    last_us = slot * SLOT_US + 90
    data = ByteRange(f"{join}{side}", slot * 1000, size, "x")
    return replace(
        a_piece(join), operator=join, side=side, slot=slot, rows=rows, last_us=last_us, data=data, matched={}
    )


def stored(join: str = "join", slots: range = range(5), size: int = 100) -> list[Piece]:
    return [piece(join, side, slot, size) for side in (0, 1) for slot in slots]


def left_of(pieces: list[Piece], forget_us: dict[str, tuple[int, int]]) -> int:
    """Bytes once what is given up is gone, as the engine lets pieces go."""
    return sum(
        piece_bytes(one)
        for one in pieces
        if one.last_us >= forget_us.get(one.operator, (BEGINNING_US, BEGINNING_US))[one.side]
    )


def test_nothing_is_given_up_while_all_fits() -> None:
    found = forget(stored(), ["join"], 1000)
    assert found.forget_us == {}
    assert found.bytes_left == 1000


def test_the_oldest_go_first_of_both_sides() -> None:
    found = forget(stored(), ["join"], 800)
    assert found.forget_us == {"join": (91, 91)}
    assert (found.bytes_left, found.short_bytes) == (800, 0)


def test_the_side_that_finds_less_gives_up_more() -> None:
    productive = {"join": ((1.0,) * 5, (0.01,) * 5)}
    assert forget(stored(), ["join"], 700, productive).forget_us == {"join": (BEGINNING_US, 291)}


def test_slots_behind_the_productive_ages_go_before_younger_ones_of_another_join() -> None:
    early, late = (1.0, 1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0, 1.0)
    pieces = stored("early") + stored("late")
    found = forget(pieces, ["early", "late"], 1400, {"early": (early, early), "late": (late, late)})
    assert found.forget_us == {"early": (291, 291)}


def test_joins_that_may_lose_nothing_and_slots_that_are_still_filled_stay() -> None:
    pieces = stored("join") + stored("outer")
    found = forget(pieces, ["join"], 100)
    assert found.forget_us == {"join": (391, 391)}
    assert found.short_bytes == 1200 - 100


@given(
    sizes=st.lists(st.integers(1, 50), min_size=6, max_size=6),
    values=st.lists(st.integers(0, 5), min_size=8, max_size=8),
    most=st.integers(0, 400),
)
@settings(max_examples=40)
def test_bytes_fit_and_worth_is_within_one_part_of_the_best(
    sizes: list[int], values: list[int], most: int
) -> None:
    pieces = [piece("join", side, slot, sizes[3 * side + slot]) for side in (0, 1) for slot in range(3)]
    pieces += [piece("join", side, 3, 10) for side in (0, 1)]
    productivity = {"join": (values[:4], values[4:])}
    found = forget(pieces, ["join"], most, productivity)
    assert left_of(pieces, dict(found.forget_us)) == found.bytes_left
    assert found.short_bytes == max(0, found.bytes_left - most)

    def worth(given_up: tuple[int, int]) -> float:
        return sum(
            10.0 * sum(productivity["join"][side][3 - slot :])
            for side in (0, 1)
            for slot in range(given_up[side])
        )

    def given_up() -> tuple[int, int]:
        left, right = found.forget_us.get("join", (BEGINNING_US, BEGINNING_US))
        return (left + 9) // SLOT_US if left > 0 else 0, (right + 9) // SLOT_US if right > 0 else 0

    fits = [
        up
        for up in product(range(4), range(4))
        if sum(map(piece_bytes, pieces)) - sum(sum(sizes[3 * s : 3 * s + up[s]]) for s in (0, 1)) <= most
    ]
    if fits:
        assert found.short_bytes == 0
        # Whole slots go: what was given up last may be more than was needed, never more than one part.
        assert worth(given_up()) <= min(map(worth, fits)) + max(worth((3, 0)), worth((0, 3)))


def test_bits_of_matched_rows_count() -> None:
    one = replace(piece("join", 0, 1, 100), matched={"0": ByteRange("m", 0, 25, "x")})
    assert piece_bytes(one) == pytest.approx(125)
