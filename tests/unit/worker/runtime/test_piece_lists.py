"""Each task reads the pieces of its own instance, and misses none that it needs."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.state.samples import a_piece, a_range, flipped

from tidegate.driver.engine import piece_files
from tidegate.driver.engine.piece_files import PieceFiles
from tidegate.errors import StateError
from tidegate.model.piece_index import Pieces, taken
from tidegate.model.pieces import Piece
from tidegate.model.routing import Cut, Place, Placement, Routing
from tidegate.model.times import LEFT, RIGHT
from tidegate.state.store.local import LocalStore
from tidegate.worker.runtime.piece_lists import Audience
from tidegate.worker.runtime.state_order import StateOrder, for_instance

#: Partition p lies on instance p // 2; 6 and 7 belong to the key 99.
TABLE = (0, 0, 1, 1, 2, 2, 0, 1)
ROUTING = Routing(0, 3, Placement(TABLE))
SPLIT = Routing(1, 3, Placement(TABLE, keys={99: Place((6, 7), (6, 7), columns=2)}))


def at(file: str, *partitions: int, **fields: Any) -> Piece:
    bounds = tuple(edge for i, _ in enumerate(partitions) for edge in (i, i + 1))
    return replace(a_piece(file), partitions=partitions, bounds=bounds, **fields)


def an_order(store: LocalStore, *pieces: Piece, batch: int = 3, **fields: Any) -> StateOrder:
    return StateOrder(store.url, batch, 20, 10, fields.pop("routing", ROUTING), pieces, **fields)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "state"))


def test_an_instance_gets_its_pieces_and_merges_in_their_order(store: LocalStore) -> None:
    a, b, c = at("a", 0), at("b", 1, 2, matched={"1": a_range("bits")}), at("c", 5)
    order = an_order(store, c, b, a, merges=(("0", (("a", "b"),)), ("2", (("c",),))))
    sent = order.in_file(store, "segments/near/x.pieces")
    assert not sent.pieces
    assert not sent.merges
    mine = [sent.of(instance) for instance in range(3)]
    assert [one.pieces for one in mine] == [(b, a), (b,), (c,)]
    assert [one.merges for one in mine] == [(("0", (("a", "b"),)),), (), (("2", (("c",),)),)]
    assert [one.instance for one in mine] == [0, 1, 2]
    # All else stays as it was.
    assert replace(mine[2], pieces=order.pieces, merges=order.merges, instance=None) == order


def test_an_order_with_all_pieces_is_that_of_every_instance(store: LocalStore) -> None:
    order = an_order(store, at("a", 0))
    assert order.of(2) is order
    assert for_instance("no state in it", 2) == "no state in it"


@pytest.mark.parametrize("merges", [(), (("1", (("a",),)),)])
def test_an_order_in_a_file_says_whether_it_changes_the_state(store: LocalStore, merges: Any) -> None:
    order = replace(an_order(store, at("a", 0), merges=merges), settled_us=20)
    assert order.in_file(store, "f").changes_state == order.changes_state == bool(merges)


def test_pieces_of_a_place_on_several_instances_go_to_all_of_these() -> None:
    audience = Audience(SPLIT, ())
    assert audience.of(at("a", 6)) == audience.of(at("b", 7)) == (0, 1)
    assert audience.of(at("c", 4)) == (2,)


def test_a_cut_brings_pieces_to_where_their_rows_go_also_by_way_of_another_cut() -> None:
    cuts = [Cut(LEFT, 99, (3,), (7, 5)), Cut(LEFT, 98, (1,), (3,))]
    audience = Audience(ROUTING, cuts)
    assert audience.of(at("a", 1)) == (0, 1, 2)
    assert audience.of(at("b", 3)) == (0, 1, 2)
    assert audience.of(at("c", 4)) == (2,)


def test_marks_and_sides_that_are_read_everywhere_go_to_all(store: LocalStore) -> None:
    a, marks, right = at("a", 0), at("m", 4, marks=True), at("b", 4, side=RIGHT)
    sent = an_order(store, marks, right, a, everywhere=(RIGHT,)).in_file(store, "f")
    assert sent.of(0).pieces == (a, marks, right)
    assert sent.of(1).pieces == (marks, right)
    assert an_order(store, right).in_file(store, "g").of(1).pieces == ()


def test_sides_that_lie_apart_are_told_apart() -> None:
    apart = Audience(Routing(0, 2, Placement((0, 0)), Placement((1, 1))), ())
    assert apart.of(at("a", 1)) == (0,)
    assert apart.of(at("b", 1, side=RIGHT)) == (1,)


def test_a_free_partition_number_belongs_to_nobody() -> None:
    assert Audience(Routing(0, 1, Placement((0, -1))), ()).of(at("a", 0, 1)) == (0,)


@pytest.mark.parametrize("where", [0, 3, 30, -5])
def test_a_damaged_list_is_refused(store: LocalStore, where: int) -> None:
    sent = an_order(store, at("a", 0)).in_file(store, "f")
    data = store.read("f")
    with open(f"{store.root}/f", "wb") as file:
        file.write(flipped(data, where % len(data)) if where else data[:40])
    with pytest.raises(StateError, match=r"STATE_PIECE_LIST_DAMAGED.*damaged: f"):
        [sent.of(instance) for instance in range(3)]


# -- files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def files(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> PieceFiles:
    monkeypatch.setattr(piece_files, "LISTED_FROM", 2)
    return PieceFiles(store.url)


def sent(files: PieceFiles, order: StateOrder) -> StateOrder:
    """As if the operator was the only one."""
    return files.sent("near", order, order.pieces)


def test_few_pieces_go_with_the_order_and_many_into_a_file(store: LocalStore, files: PieceFiles) -> None:
    few, many = an_order(store, at("a", 0)), an_order(store, at("a", 0), at("b", 4))
    assert sent(files, few) is few
    assert store.list() == []
    named = sent(files, many)
    assert store.list() == [named.lists]
    assert named.of(2).pieces == (many.pieces[1],)


def test_a_pass_that_finds_the_same_state_uses_the_same_file(store: LocalStore, files: PieceFiles) -> None:
    a, b, c = at("a", 0), at("b", 4), at("c", 2)
    first = sent(files, an_order(store, a, b))
    assert sent(files, an_order(store, a, b, batch=4)).lists == first.lists
    others = [
        an_order(store, a, b, everywhere=(RIGHT,)),
        an_order(store, a, c),
        an_order(store, a, b, c),
        an_order(store, a, b, merges=(("0", (("a",),)),)),
        an_order(store, a, b, routing=SPLIT),
        an_order(store, a, b, cuts=(Cut(LEFT, 99, (3,), (7,)),)),
    ]
    for other in others:
        sent(files, an_order(store, a, b))
        assert sent(files, other).lists not in (None, first.lists)


def test_files_live_until_their_batch_is_over_and_the_newest_until_the_end(
    store: LocalStore, files: PieceFiles
) -> None:
    a, b, c = at("a", 0), at("b", 4), at("c", 2)
    first = sent(files, an_order(store, a, b)).lists
    second = sent(files, an_order(store, a, b, c)).lists
    files.clear(3)
    assert set(store.list()) == {first, second}
    files.clear(4)
    assert store.list() == [second]
    third = sent(files, an_order(store, a, c, batch=4)).lists
    files.clear(5)
    assert store.list() == [third]
    files.close()
    assert store.list() == []


def test_what_a_batch_changed_is_what_the_next_file_says(store: LocalStore, files: PieceFiles) -> None:
    a, b, c, far = at("a", 0), at("b", 4), at("c", 0), replace(at("x", 4), operator="far")
    state: tuple[Piece, ...] = (a, b, c, far)

    def read() -> list[list[Piece]]:
        near = tuple(piece for piece in state if piece.operator == "near")
        order = files.sent("near", an_order(store, *near), state)
        return [list(order.of(instance).pieces) for instance in range(3)]

    def changed(*puts: Piece, gone: Sequence[Piece] = ()) -> Pieces:
        index = taken(state)
        for piece in gone:
            index.pop(piece.name)
        for piece in puts:
            index.put(piece)
        return Pieces.after(state, index)

    assert read() == [[a, c], [], [b]]
    texts = files._newest["near"].texts
    # A piece is gone, one lies elsewhere now, one has other bits, one is new; those of another operator too.
    moved, bits, new = at("b", 2), at("c", 0, matched={"0": a_range("bits")}), at("d", 1, 5)
    state = changed(moved, bits, new, replace(at("y", 0), operator="far"), gone=[a, far])
    assert read() == [[bits, new], [moved], [new]]
    assert files._newest["near"].texts is texts, "everything was encoded again"
    # An operator that a pass leaves out, or pieces of unknown origin: made anew.
    state = changed(gone=[new])
    state = changed(a)
    assert read() == [[bits, a], [moved], []]
    state = (a, c, b)
    assert read() == [[a, c], [], [b]]


def test_what_every_task_is_sent_does_not_grow_with_the_pieces(store: LocalStore, files: PieceFiles) -> None:
    def size(count: int) -> int:
        order = an_order(store, *(at(f"{number}", number % 6) for number in range(count)))
        return len(pickle.dumps(sent(files, order)))

    assert size(3_000) == size(30)
