"""Whatever a batch does to the pieces, what is kept among them is what a fresh look at all of them finds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.samples import a_piece, a_range

from tidegate.model.piece_index import GroupKey, PieceIndex, Pieces, index_of, taken
from tidegate.model.pieces import Piece
from tidegate.model.routing import Routing, together
from tidegate.state.manifest_log import applied, difference
from tidegate.state.recovery import referenced

ROUTINGS = (together(0, 2, (0, 0, 1, 1)), together(1, 3, (0, 1, 2, 2)))
OPERATORS = ("near", "far")
NAMES = st.integers(0, 11)


@st.composite
def a_stored(draw: st.DrawFn) -> Piece:
    number, partitions = draw(NAMES), draw(st.sets(st.integers(0, 3), min_size=1))
    matched = {str(i): a_range(f"s/bits{draw(NAMES)}") for i in draw(st.sets(st.integers(0, 1)))}
    return replace(
        a_piece(f"s/{number // 3}", number, matched=matched),
        # The name says whose it is, as on disk.
        operator=OPERATORS[number % 2],
        side=draw(st.integers(0, 1)),
        slot=draw(st.sampled_from([None, 3, 4])),
        partitions=tuple(sorted(partitions)),
        bounds=tuple(range(2 * len(partitions))),
        keyless=draw(st.booleans()),
        marks=draw(st.booleans()),
    )


#: What a batch does: pieces that it puts, and numbers of pieces that it pops, in this order.
BATCHES = st.lists(st.tuples(st.lists(st.one_of(a_stored(), NAMES), max_size=8), st.booleans()), max_size=6)


def groups_of(index: PieceIndex, routing: Routing) -> dict[str, dict[GroupKey, set[str]]]:
    return {
        operator: {key: set(group) for key, group in index.groups(operator, routing).items()}
        for operator in OPERATORS
    }


@given(st.lists(a_stored(), max_size=8, unique_by=lambda piece: piece.name), BATCHES)
def test_what_went_on_from_batch_to_batch_is_what_is_made_anew(
    first: list[Piece], batches: list[tuple[list[Piece | int], bool]]
) -> None:
    pieces: tuple[Piece, ...] = tuple(first)
    for steps, moved in batches:
        before, plain = pieces, {piece.name: piece for piece in pieces}
        routing = ROUTINGS[moved]
        index_of(before).groups("near", routing)
        index = taken(before)
        index.count_files()
        for step in steps:
            if isinstance(step, Piece):
                plain[step.name] = step
                index.put(step)
            elif plain:
                name = list(plain)[step % len(plain)]
                assert index.pop(name) == plain.pop(name)
        pieces = Pieces.after(before, index)
        assert pieces == tuple(plain.values())
        assert pieces.made_of(before)
        assert not pieces.made_of(pieces)
        # The log and the deletions go by the change alone.
        assert difference(before, pieces) is pieces.change
        assert applied(before, pieces.change) == pieces
        assert applied(before, difference(before, tuple(pieces))) == pieces
        # Also files of pieces that came and went in one batch.
        came = [step for step in steps if isinstance(step, Piece)]
        assert pieces.released is not None
        assert set(pieces.released) == referenced([*before, *came]) - referenced(pieces)
        # Merges go by the groups, under whatever routing.
        for one in (routing, *ROUTINGS):
            assert groups_of(index_of(pieces), one) == groups_of(PieceIndex(tuple(pieces)), one)
        totals = {name: total for name, total in index_of(pieces).totals().items() if total.pieces}
        assert totals == PieceIndex(tuple(pieces)).totals()
        # Those before can still be asked.
        assert list(index_of(before).named.values()) == list(before)
