"""Which rows of which side go when more is stored than may be: what was learnt of them decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidegate.api.goal import Shed
from tidegate.control import planning
from tidegate.control.actuators.join_policies import JoinShape, kind_of
from tidegate.control.actuators.join_shedding import OverloadSettings, decide, productivity_by_age
from tidegate.control.levels import CONTROL
from tidegate.join.within import Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.times import BEGINNING_US

SECOND = 1_000_000
WITHIN = Within(-10 * SECOND, 10 * SECOND)
NEAR = OperatorTraits("near", ("a", "b"), WITHIN, (False, False), (False, False))
SHED, SLOTS = Shed(), 10


def piece(side: int, slot: int, batch: int, rows: int = 100) -> Piece:
    first, last = slot * SECOND, (slot + 1) * SECOND - 1
    data = ByteRange(f"{side}", slot, 1000, "")
    return Piece("near", side, slot, 0, rows, first, last, (batch, batch), False, (0,), (0, rows), data)


def manifest(values: tuple[float, float] | None) -> Manifest:
    """Ten batches of a slot each; matches per comparison of the left and the right window."""
    pieces = tuple(piece(side, slot, slot) for side in (0, 1) for slot in range(SLOTS))
    control: dict[str, Any] = {"kind": kind_of(SHED)}
    if values is not None:
        ages = JoinShape(NEAR).ages
        evidence = [
            {"matches": [1000 * value] * count, "comparisons": [1000] * count}
            for value, count in zip(values, ages, strict=True)
        ]
        work = [[1.0] * count for count in ages]
        policy = {"rate": {"fraction": 1.0}, "searching": False, "work": work, "evidence": evidence}
        control["policies"] = {"near": policy}
    empty = planning.first_manifest({}, ["a", "b"], {}, 0)
    return replace(empty, batch=SLOTS - 1, pieces=pieces, control=control)


def forgotten(values: tuple[float, float] | None, state_bytes: int) -> tuple[int, int]:
    settings = OverloadSettings(SHED, ("near",), 1.0, 1.0, state_bytes=state_bytes)
    return decide(settings, manifest(values), {"near": NEAR})["near"].forget_us


def test_without_knowing_better_the_oldest_of_both_sides_go() -> None:
    left, right = forgotten(None, 18_000)
    assert left == right > BEGINNING_US


@pytest.mark.parametrize(("values", "worse"), [((0.01, 0.001), 1), ((0.001, 0.01), 0)])
def test_the_side_whose_rows_find_less_gives_up_more(values: tuple[float, float], worse: int) -> None:
    given = forgotten(values, 18_000)
    assert given[worse] > BEGINNING_US
    assert given[1 - worse] == BEGINNING_US


def test_a_row_finds_nothing_until_its_first_match_can_come() -> None:
    """Right rows come 4 to 8 seconds after left ones: slots of 0.4 seconds, of which ten lie before."""
    after = replace(NEAR, within=Within(4 * SECOND, 8 * SECOND))
    shape = JoinShape(after)
    values = [np.ones(count) for count in shape.ages]
    pieces = [piece(side, slot, slot) for side in (0, 1) for slot in range(SLOTS)]
    left, right = productivity_by_age(shape, "near", values, pieces)
    assert left[:10] == [0.0] * 10
    assert left[10:] == pytest.approx([100 * 0.4] * 11)
    assert right == [0.0]


@pytest.mark.parametrize(("lower", "kept"), [(-10, 5.5), (4, 7.2)])
def test_a_shortened_window_is_the_newest_part_of_the_time_in_which_matches_lie(
    lower: int, kept: float
) -> None:
    """Half of the basic windows, of 1 second or of 0.4 that begin 4 seconds back."""
    shed = Shed(join="window_reduction")
    known = replace(manifest(None), control={"kind": kind_of(shed), CONTROL: {"levels": {"near": 0.5}}})
    operator = replace(NEAR, within=Within(lower * SECOND, 10 * SECOND))
    settings = OverloadSettings(shed, ("near",), 1.0, 1.0)
    forget_us = decide(settings, known, {"near": operator})["near"].forget_us
    newest = SLOTS * SECOND - 1
    # Right rows whose matches come before them are kept for late rows only, and stay.
    right = newest - kept * SECOND if lower < 0 else BEGINNING_US
    assert forget_us == (newest - kept * SECOND, right)


def test_room_is_left_for_what_the_next_batch_brings() -> None:
    # 20,000 bytes are stored and fit; the next batch brings 2,000 more.
    assert forgotten(None, 22_000) == (BEGINNING_US, BEGINNING_US)
    assert max(forgotten(None, 21_000)) > BEGINNING_US
