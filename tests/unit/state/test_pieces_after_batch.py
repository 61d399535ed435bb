from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tests.unit.state.samples import a_piece, a_range

from tidegate.control.outcome import after_batch
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import StateChange, TaskReport
from tidegate.model.routing import together

#: Partition 1 belongs to instance 0, partition 7 to instance 1: a sample piece has rows for both.
ROUTING = {"near": together(0, 2, (0, 0, 0, 0, 1, 1, 1, 1))}


def a_report(
    instance: int,
    *,
    added: Iterable[Piece] = (),
    merged: Iterable[str] = (),
    matched: Mapping[str, ByteRange] | None = None,
) -> TaskReport:
    state = StateChange(added=tuple(added), merged=tuple(merged), matched=matched or {})
    return TaskReport("near", instance, state=state)


def never(piece: Piece) -> bool:
    return False


def left(pieces: Iterable[Piece], *reports: TaskReport) -> dict[str, Piece]:
    return {piece.name: piece for piece in after_batch(pieces, reports, ROUTING, never)}


def part(piece: Piece, partition: int) -> Piece:
    """The rows of one partition of a sample piece."""
    rest = piece.without({1, 7} - {partition})
    assert rest is not None
    return rest


def test_a_batch_that_did_nothing_leaves_everything() -> None:
    old = (a_piece("s/1"), a_piece("s/2"))
    assert after_batch(old, [a_report(0), a_report(1)], ROUTING, never) == old


def test_new_pieces_join_the_list() -> None:
    old, new = a_piece("s/1"), a_piece("s/2")
    assert left([old], a_report(0, added=[new])) == {"s/1@0": old, "s/2@0": new}


def test_merged_rows_leave_the_pieces_they_came_from() -> None:
    old = [part(a_piece(f"s/{n}"), 1) for n in range(3)]
    whole = a_piece("s/9", level=1)
    assert left(old, a_report(0, added=[whole], merged=["s/0@0", "s/2@0"])) == {
        "s/1@0": old[1],
        "s/9@0": whole,
    }


def test_an_instance_takes_only_its_own_rows_out_of_a_shared_piece() -> None:
    shared = a_piece("s/1", matched={"1": a_range("s/2")})
    for instance, rest in ((0, part(shared, 7)), (1, part(shared, 1))):
        assert left([shared], a_report(instance, merged=["s/1@0"])) == {"s/1@0": rest}


def test_a_shared_piece_is_gone_when_both_have_taken_their_rows() -> None:
    whole = [a_piece("s/8", level=1), a_piece("s/9", level=1)]
    reports = [a_report(i, added=[whole[i]], merged=["s/1@0"]) for i in (0, 1)]
    assert left([a_piece("s/1")], *reports) == {"s/8@0": whole[0], "s/9@0": whole[1]}


def test_matched_bits_replace_what_the_same_instance_wrote_before() -> None:
    piece = a_piece("s/1", matched={"0": a_range("s/2"), "1": a_range("s/3")})
    after = left([piece], a_report(0, matched={"s/1@0": a_range("s/4")}))
    assert after["s/1@0"] == replace(piece, matched={"0": a_range("s/4"), "1": a_range("s/3")})
    assert piece.matched["0"] == a_range("s/2")


def test_bits_of_two_instances_in_one_batch_both_stay() -> None:
    reports = [a_report(i, matched={"s/1@0": a_range(f"s/{4 + i}")}) for i in (0, 1)]
    assert left([a_piece("s/1")], *reports)["s/1@0"].matched == {"0": a_range("s/4"), "1": a_range("s/5")}


def test_a_new_or_merged_piece_may_come_with_its_bits() -> None:
    whole = a_piece("s/9", level=1)
    report = a_report(0, added=[whole], merged=["s/1@0"], matched={"s/9@0": a_range("s/9", 64)})
    assert left([part(a_piece("s/1"), 1)], report) == {
        "s/9@0": replace(whole, matched={"0": a_range("s/9", 64)})
    }


def test_bits_find_a_piece_that_a_later_report_brings() -> None:
    new = a_piece("s/9")
    after = left([], a_report(0, matched={"s/9@0": a_range("s/2")}), a_report(1, added=[new]))
    assert after["s/9@0"].matched == {"0": a_range("s/2")}


def test_bits_stay_on_what_the_other_instance_keeps_of_a_merged_piece() -> None:
    reports = [a_report(0, merged=["s/1@0"]), a_report(1, matched={"s/1@0": a_range("s/4")})]
    assert left([a_piece("s/1")], *reports) == {
        "s/1@0": part(a_piece("s/1", matched={"1": a_range("s/4")}), 7)
    }


def test_bits_of_a_piece_that_is_gone_are_forgotten() -> None:
    reports = [a_report(0, merged=["s/1@0"]), a_report(1, matched={"s/1@0": a_range("s/4")})]
    assert left([part(a_piece("s/1"), 1)], *reports) == {}


def test_dead_pieces_are_dropped_old_and_new_alike() -> None:
    old = [replace(a_piece(f"s/{n}"), last_us=n) for n in range(4)]
    after = after_batch(old[:3], [a_report(0, added=old[3:])], ROUTING, lambda piece: piece.last_us in (1, 3))
    assert after == (old[0], old[2])


def test_each_operator_s_rows_go_by_its_own_routing() -> None:
    routing = {**ROUTING, "far": together(1, 2, (1,) * 8)}
    pieces = [a_piece("s/1"), replace(a_piece("s/2"), operator="far")]
    report = replace(a_report(1, merged=["s/2@0"]), operator="far")
    assert after_batch(pieces, [report], routing, never) == (pieces[0],)


def test_reports_that_can_be_read_only_once_will_do() -> None:
    new = a_piece("s/9")
    reports = iter([a_report(0, added=[new], matched={"s/9@0": a_range("s/2")})])
    assert after_batch(iter([]), reports, ROUTING, never) == (replace(new, matched={"0": a_range("s/2")}),)
