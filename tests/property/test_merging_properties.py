"""What merging comes to over many batches: few pieces, few rewrites, and no row lost or doubled.

A tiny engine keeps row numbers instead of rows. Every batch it plans merges from the pieces there are, lets
each instance merge and store, and commits with `after_batch`, as the real one does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.state.samples import a_piece

from tidegate.control.merging import CLOSED_MIN, TIER, choose_merges
from tidegate.control.outcome import after_batch
from tidegate.model.piece_index import PieceIndex
from tidegate.model.pieces import Piece
from tidegate.model.reports import StateChange, TaskReport
from tidegate.model.routing import Routing, together
from tidegate.model.times import BEGINNING_US, END_US

PARTITIONS, INSTANCES = 6, 3
SLOT_US = 100
EVEN = together(0, INSTANCES, tuple(p * INSTANCES // PARTITIONS for p in range(PARTITIONS)))
ALIVE = (BEGINNING_US, BEGINNING_US)
#: Row number, partition.
Row = tuple[int, int]
#: Instance, side, slot, keyless.
Shelf = tuple[int, int, int | None, bool]


class TinyEngine:
    """Stores rows of both sides, merges as planned, counts how often each row is rewritten."""

    def __init__(self, routing: Routing = EVEN):
        self.routing = routing
        self.pieces: tuple[Piece, ...] = ()
        self.rows: dict[str, list[Row]] = {}
        self.stored: set[Row] = set()
        self.rewrites: Counter[Row] = Counter()
        #: Pieces ever stored, not merged, per shelf.
        self.batches: Counter[Shelf] = Counter()
        self._files = 0

    def run(self, arriving: list[Shelf], watermark_us: int) -> None:
        """One batch: a row per partition of the instance for each shelf."""
        merges = choose_merges(
            PieceIndex(self.pieces).groups("near", self.routing), (SLOT_US, SLOT_US), watermark_us, ALIVE
        )
        reports = []
        for instance in range(INSTANCES):
            groups = merges.get(str(instance), ())
            added = [self._merge(instance, group) for group in groups]
            added += [self._store(shelf) for shelf in arriving if shelf[0] == instance]
            merged = tuple(name for group in groups for name in group)
            reports.append(_report(instance, tuple(added), merged))
        self.pieces = after_batch(self.pieces, reports, {"near": self.routing}, lambda piece: False)

    def held(self) -> list[Row]:
        """Every row as often as it is stored."""
        return [r for piece in self.pieces for r in self.rows[piece.name] if r[1] in piece.partitions]

    def shelves(self) -> dict[Shelf, list[Piece]]:
        shelves: dict[Shelf, list[Piece]] = defaultdict(list)
        for piece in self.pieces:
            for instance in {self.routing.left.table[p] for p in piece.partitions}:
                shelves[instance, piece.side, piece.slot, piece.keyless].append(piece)
        return shelves

    def _store(self, shelf: Shelf) -> Piece:
        instance, side, slot, keyless = shelf
        rows = [(len(self.stored) + i, p) for i, p in enumerate(sorted(self.routing.left.owned_by(instance)))]
        self.stored.update(rows)
        self.batches[shelf] += 1
        return self._write(rows, replace(a_piece("s"), side=side, slot=slot, keyless=keyless))

    def _merge(self, instance: int, group: tuple[str, ...]) -> Piece:
        owned = self.routing.left.owned_by(instance)
        by_name = {piece.name: piece for piece in self.pieces}
        sources = [by_name[name] for name in group]
        rows = [r for s in sources for r in self.rows[s.name] if r[1] in owned and r[1] in s.partitions]
        self.rewrites.update(rows)
        return self._write(rows, replace(sources[0], level=1 + max(source.level for source in sources)))

    def _write(self, rows: list[Row], like: Piece) -> Piece:
        self._files += 1
        partitions = tuple(sorted({partition for _, partition in rows}))
        bounds = tuple(b for i in range(len(partitions)) for b in (i, i + 1))
        data = replace(like.data, file=f"s/{self._files}")
        piece = replace(like, partitions=partitions, bounds=bounds, data=data, rows=len(rows))
        self.rows[piece.name] = rows
        return piece


def _report(instance: int, added: tuple[Piece, ...], merged: tuple[str, ...]) -> TaskReport:
    return TaskReport("near", instance, state=StateChange(added=added, merged=merged))


def levels_of(pieces: int) -> int:
    """Levels that this many pieces of level 0 can reach: 1 + the whole part of log_TIER."""
    levels = 1
    while pieces >= TIER:
        pieces //= TIER
        levels += 1
    return levels


SHELVES = st.tuples(
    st.integers(0, INSTANCES - 1), st.integers(0, 1), st.none() | st.integers(-1, 1), st.booleans()
)
ROUTINGS = st.builds(
    together,
    st.just(1),
    st.just(INSTANCES),
    st.tuples(*[st.integers(0, INSTANCES - 1) for _ in range(PARTITIONS)]),
)


@st.composite
def stored_pieces(draw: st.DrawFn) -> list[Piece]:
    """Some handfuls of like pieces, so that tiers are full often enough."""
    pieces: list[Piece] = []
    for _ in range(draw(st.integers(0, 8))):
        partitions = draw(st.sampled_from([(0,), (1, 2), (3, 4), (0, 2, 5), (4,)]))
        like = replace(
            a_piece("s", level=draw(st.integers(0, 1))),
            side=draw(st.integers(0, 1)),
            slot=draw(st.sampled_from([0, 0, 1, None])),
            keyless=draw(st.sampled_from([False, False, True])),
            last_us=draw(st.integers(0, 199)),
            partitions=partitions,
            bounds=tuple(b for i in range(len(partitions)) for b in (i, i + 1)),
        )
        for _ in range(draw(st.integers(1, TIER + 1))):
            pieces.append(replace(like, data=replace(like.data, offset=len(pieces))))
    return pieces


ALIVE_FROM = st.tuples(st.integers(0, 150), st.integers(0, 150))


@given(stored_pieces(), ROUTINGS, st.integers(0, 250), ALIVE_FROM)
def test_groups_never_mix_and_no_instance_takes_a_piece_twice(
    pieces: list[Piece], routing: Routing, watermark_us: int, alive_from_us: tuple[int, int]
) -> None:
    by_name = {piece.name: piece for piece in pieces}
    chosen = choose_merges(
        PieceIndex(pieces).groups("near", routing), (SLOT_US, SLOT_US), watermark_us, alive_from_us
    )
    for instance, groups in chosen.items():
        names = [name for group in groups for name in group]
        assert len(names) == len(set(names))
        for group in groups:
            members = [by_name[name] for name in group]
            assert len(members) >= CLOSED_MIN
            assert len({(piece.side, piece.slot, piece.keyless) for piece in members}) == 1
            assert members[0].slot is not None
            owned = routing.left.owned_by(int(instance))
            assert all(owned & set(piece.partitions) for piece in members)
            assert all(piece.last_us >= alive_from_us[piece.side] for piece in members)
            if watermark_us < (members[0].slot + 1) * SLOT_US:
                assert len({piece.level for piece in members}) == 1
                assert len(members) >= TIER


@settings(max_examples=50)
@given(stored_pieces(), ROUTINGS, st.integers(0, 250), st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(
    pieces: list[Piece], routing: Routing, watermark_us: int, random: Random
) -> None:
    def groups(given: list[Piece]) -> dict[str, set[tuple[str, ...]]]:
        chosen = choose_merges(
            PieceIndex(given).groups("near", routing), (SLOT_US, SLOT_US), watermark_us, ALIVE
        )
        return {instance: set(of_one) for instance, of_one in chosen.items()}

    shuffled = list(pieces)
    random.shuffle(shuffled)
    assert groups(shuffled) == groups(pieces)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.lists(SHELVES, max_size=6), ROUTINGS | st.none(), st.integers(-150, 250)),
        min_size=6,
        max_size=30,
    )
)
def test_no_row_is_lost_or_doubled_while_partitions_move(
    batches: list[tuple[list[Shelf], Routing | None, int]],
) -> None:
    engine = TinyEngine()
    for arriving, routing, watermark_us in batches:
        engine.routing = routing or engine.routing
        engine.run([s for s in arriving if engine.routing.left.owned_by(s[0])], watermark_us)
        held = engine.held()
        assert len(held) == len(set(held))
        assert set(held) == engine.stored


@settings(max_examples=25)
@given(st.lists(st.lists(SHELVES, max_size=8, unique=True), max_size=90))
def test_shelves_stay_short_and_rows_are_rarely_rewritten(batches: list[list[Shelf]]) -> None:
    engine = TinyEngine()
    for arriving in batches:
        engine.run(arriving, watermark_us=BEGINNING_US)
        check_open(engine)
    close(engine)


@pytest.mark.parametrize("batches", [1, 2, CLOSED_MIN, TIER, TIER**2, TIER**2 + TIER + 1, TIER**3 + 3])
def test_a_slot_fed_by_every_batch_stays_short(batches: int) -> None:
    engine = TinyEngine()
    for _ in range(batches):
        engine.run([(0, 0, 0, False)], watermark_us=0)
        check_open(engine)
    close(engine)


def test_rows_really_climb_as_many_levels_as_the_bound_allows() -> None:
    engine = TinyEngine()
    for _ in range(TIER**2):
        engine.run([(0, 0, 0, False)], watermark_us=0)
    engine.run([], watermark_us=0)  # the eighth piece of level 1
    engine.run([], watermark_us=0)  # and of them one of level 2
    assert [piece.level for piece in engine.pieces] == [2]
    assert set(engine.rewrites.values()) == {2}


def check_open(engine: TinyEngine) -> None:
    """While slots are open: at most a tier per level, and a rewrite per level climbed."""
    for shelf, pieces in engine.shelves().items():
        if shelf[2] is None:
            continue
        levels = levels_of(engine.batches[shelf])
        assert len(pieces) <= TIER * levels
        assert max(piece.level for piece in pieces) < levels
        rewritten = [engine.rewrites[row] for piece in pieces for row in engine.rows[piece.name]]
        assert max(rewritten) < levels


def close(engine: TinyEngine) -> None:
    """After the slots have closed and been merged: next to nothing left, and nothing more to do."""
    engine.run([], watermark_us=END_US)
    for shelf, pieces in engine.shelves().items():
        if shelf[2] is None:
            assert len(pieces) == engine.batches[shelf]
        else:
            assert len(pieces) < CLOSED_MIN
            rewritten = [engine.rewrites[row] for piece in pieces for row in engine.rows[piece.name]]
            assert max(rewritten) <= levels_of(engine.batches[shelf])
    done = engine.pieces
    engine.run([], watermark_us=END_US)
    assert engine.pieces == done
