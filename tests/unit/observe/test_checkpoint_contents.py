from __future__ import annotations

from dataclasses import replace

from tidegate.model.debts import Debt, DebtCell
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import LateRows, Plan
from tidegate.model.routing import together
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US, END_US
from tidegate.observe.checkpoint_contents import (
    Contents,
    all_rows,
    checkpoint_row,
    debt_rows,
    last_of,
    routing_rows,
    segment_rows,
)
from tidegate.observe.units import iso


def piece(slot: int | None, rows: int, *, side: int = 0, keyless: bool = False, at: int = 0) -> Piece:
    return Piece(
        operator="near",
        side=side,
        slot=slot,
        level=0,
        rows=rows,
        first_us=1_000_000 * rows,
        last_us=2_000_000 * rows,
        batches=(0, 1),
        keyless=keyless,
        partitions=(0,),
        bounds=(0, rows),
        data=ByteRange(f"segments/near/{side}.arrow", at, 100, "aa"),
        matched={"0": ByteRange("segments/near/m.arrow", at, 7, "bb")},
    )


def contents(*pieces: Piece, planned: tuple[int, ...] = (4,)) -> Contents:
    manifest = Manifest(
        batch=4,
        flow={"keys": ["cell"]},
        clocks={"orders": StreamClock(5_000_000, 3_000_000, 9_000_000)},
        settled_us={},
        routing={"near": together(2, 3, (0, 1, 0, 0))},
        pieces=pieces,
    )
    plans = tuple(Plan(b, 0, LateRows({}), {}, {}) for b in planned)
    return Contents("ck", manifest, (3, 4), plans, {4: {"duration_seconds": 0.5}})


def test_pieces_of_one_slot_are_added_up_with_their_matched_bits() -> None:
    (row,) = segment_rows(contents(piece(3, 10), piece(3, 5, at=200, keyless=True)))
    assert (row["side"], row["slot"], row["pieces"], row["rows"]) == ("left", 3, 2, 15)
    assert (row["keyless_rows"], row["bytes"]) == (5, 214)
    assert (row["first"], row["last"]) == ("1970-01-01T00:00:05+00:00", "1970-01-01T00:00:20+00:00")


def test_slots_come_in_order_and_those_without_one_come_first() -> None:
    found = segment_rows(
        contents(
            piece(2, 1), piece(0, 1, at=1), piece(None, 1, at=2), piece(-1, 1, at=3), piece(0, 1, side=1)
        )
    )
    assert [(row["side"], row["slot"]) for row in found] == [
        ("left", None),
        ("left", -1),
        ("left", 0),
        ("left", 2),
        ("right", 0),
    ]


def test_an_instance_without_partitions_is_listed_with_none() -> None:
    assert [row["partitions"] for row in routing_rows(contents())] == [3, 1, 0]


def test_a_plan_beyond_the_manifest_is_a_batch_under_way() -> None:
    assert checkpoint_row(contents(planned=(3, 4)))["batch_under_way"] is None
    assert checkpoint_row(contents(planned=(4, 5)))["batch_under_way"] == 5


def test_the_first_batch_may_be_under_way_too() -> None:
    found = Contents("ck", None, (), (Plan(0, 0, LateRows({}), {}, {}),), {})
    assert checkpoint_row(found)["batch_under_way"] == 0
    assert checkpoint_row(found)["state_rows"] == 0


def test_every_line_says_what_it_is_about() -> None:
    kinds = [row["kind"] for row in all_rows(contents(piece(0, 1)))]
    assert kinds == ["checkpoint", "stream", *["routing"] * 3, "segments", "plan", "telemetry"]


def test_moments_without_a_date_have_a_word() -> None:
    assert iso(BEGINNING_US) is None
    assert iso(END_US) == "end"
    assert iso(END_US - 1) == f"{END_US - 1} us"
    assert iso(1_500_000) == "1970-01-01T00:00:01.500000+00:00"


def test_the_last_batches_are_the_newest() -> None:
    assert list(last_of([1, 2, 3], 2)) == [2, 3]
    assert list(last_of([1, 2, 3], 9)) == [1, 2, 3]
    assert list(last_of([1, 2, 3], 0)) == []


def test_debts_are_listed_with_what_is_left_of_them_and_what_was_given_up() -> None:
    left, right = (1_000_000, 2_000_000), (END_US, BEGINNING_US)
    cells = (DebtCell(0, 1, 100, 3.0, repaired=0.5), DebtCell(1, 0, 10, 1.0))
    owed = Debt("near", 2, Skipping(0.5, ((0.5,), (0.5,))), 0, (left, right), cells)
    found = contents()
    assert found.manifest is not None
    manifest = replace(found.manifest, debts=(owed,), written_off=(replace(owed, batch=1),))
    first, second = debt_rows(replace(found, manifest=manifest))
    assert (first["operator"], first["batch"], first["state"]) == ("near", 2, "in_debt")
    assert (first["comparisons"], first["matches"], first["cells"]) == (60, 2.5, 2)
    assert first["needed_from"] == ["1970-01-01T00:00:01+00:00", None]
    assert (second["batch"], second["state"]) == (1, "written_off")
    assert debt_rows(replace(found, manifest=None)) == []
