"""Piece lists: one file per operator and pass, in which each task reads the list of its own instance.

A work order goes to every task. With thousands of pieces it would be megabytes that each task unpickles in
order to use a hundredth of it. So the driver writes them to a file beside the state, and the order names it:

    | offsets, checksums | list of instance 0 | list of instance 1 | … | list for all |

A list has pieces and merges, as JSON. With the list for all it names every piece of which its instance may
own or read a row: those of its partitions, those of a key or partition that lies on several instances or that
a cut of the plan concerns, marks, and whole sides where a repair reads them. It may have more;
`owned_state.py` takes what it needs.

No manifest names these files, so recovery deletes what a crash left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import xxhash

from tidegate.errors import StateError
from tidegate.model.codec import decode, encode
from tidegate.model.piece_index import PiecesChange
from tidegate.model.pieces import Piece
from tidegate.model.routing import Cut, Placement, Routing
from tidegate.state.store.store import Store

#: Groups of names of pieces that an instance merges.
Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class PieceList:
    """What one instance needs to know."""

    pieces: tuple[Piece, ...]
    merges: Groups = ()


class PieceTexts:
    """The pieces of the lists as text; what a batch changes is changed in place."""

    def __init__(self, pieces: Iterable[Piece], audience: Audience) -> None:
        self._audience = audience
        #: Name of a piece → the lists that it is in.
        self._in: dict[str, tuple[int, ...]] = {}
        #: By list: name → text.
        self._lists: list[dict[str, bytes]] = [{} for _ in range(audience.instances + 1)]
        for piece in pieces:
            self._put(piece)

    def change(self, change: PiecesChange, operator: str) -> None:
        """Follow a change of the pieces of all operators."""
        for name in change.removed:
            self._take(name)
        for piece in (*change.changed, *change.added):
            if piece.operator == operator:
                self._put(piece)

    def _put(self, piece: Piece) -> None:
        name, text = piece.name, encode(piece)
        numbers = self._audience.of(piece)
        if self._in.get(name, numbers) != numbers:
            self._take(name)
        self._in[name] = numbers
        for number in numbers:
            self._lists[number][name] = text

    def _take(self, name: str) -> None:
        for number in self._in.pop(name, ()):
            del self._lists[number][name]

    def write(self, store: Store, path: str, merges: Mapping[str, Groups]) -> None:
        """Write all lists as one file."""
        blobs = [
            b'{"pieces":[%b],"merges":%b}' % (b",".join(texts.values()), encode(merges.get(str(number), ())))
            for number, texts in enumerate(self._lists)
        ]
        _write(store, path, blobs)


def _write(store: Store, path: str, blobs: Sequence[bytes]) -> None:
    sums = np.array([xxhash.xxh3_64_intdigest(blob) for blob in blobs], "<u8")
    starts = np.concatenate(([0], np.cumsum([len(blob) for blob in blobs]))).astype("<i8")
    store.write(path, [starts.tobytes(), sums.tobytes(), *blobs])


def read_list(store: Store, path: str, instance: int, instances: int) -> PieceList:
    """The list of one instance, and that for all; StateError if it is not what was written."""
    whole = store.map(path)
    mine, common = (_list(whole, path, number, instances + 1) for number in (instance, instances))
    return PieceList((*mine.pieces, *common.pieces), mine.merges)


def _list(whole: pa.Buffer, path: str, number: int, lists: int) -> PieceList:
    head = 8 * (2 * lists + 1)
    numbers = np.frombuffer(whole, "<i8", 2 * lists + 1) if whole.size >= head else np.zeros(0, "<i8")
    start, stop = (head + int(numbers[number + i]) if len(numbers) else -1 for i in (0, 1))
    if head <= start <= stop <= whole.size:
        blob = whole.slice(start, stop - start).to_pybytes()
        if xxhash.xxh3_64_intdigest(blob) == int(numbers.view("<u8")[lists + 1 + number]):
            return decode(PieceList, blob)
    raise StateError(
        f"The list of stored pieces is damaged: {path}",
        code="STATE_PIECE_LIST_DAMAGED",
        got=f"{whole.size} bytes, list {number} of {lists}",
        why="Rows that the list leaves out would not be joined",
        do="Start the query again: the list is made anew. If this repeats, check the disk",
    )


class Audience:
    """Which instances may need a piece; their number stands for all of them."""

    def __init__(self, routing: Routing, cuts: Sequence[Cut], everywhere: Sequence[int] = ()) -> None:
        """`everywhere`: sides of which every instance may read all rows."""
        self.instances = routing.instances
        self._everywhere = everywhere
        self._sides = [self._of_partitions(placement, cuts) for placement in routing.sides]
        #: Most pieces of an instance have the same partitions.
        self._known: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}

    def of(self, piece: Piece) -> tuple[int, ...]:
        if piece.marks or piece.side in self._everywhere:
            return (self.instances,)
        key = piece.side, piece.partitions
        if key not in self._known:
            readers = self._sides[piece.side]
            found = {instance for partition in piece.partitions for instance in readers[partition]}
            self._known[key] = tuple(sorted(found))
        return self._known[key]

    def _of_partitions(self, placement: Placement, cuts: Sequence[Cut]) -> list[tuple[int, ...]]:
        readers: list[tuple[int, ...]] = [(owner,) if owner >= 0 else () for owner in placement.table]
        owners = [set(one) for one in readers]
        # A place is read on each of its instances; a cut moves rows between its partitions.
        together = [place.holds for place in placement.places]
        together += [(*cut.sources, *cut.targets) for cut in cuts]
        grew = True
        while grew:  # rows that one cut brings to a partition may go on with the next cut
            grew = False
            for partitions in together:
                here = [partition for partition in partitions if partition < len(owners)]
                everyone = set[int]().union(*(owners[partition] for partition in here))
                grew = grew or any(owners[partition] != everyone for partition in here)
                for partition in here:
                    owners[partition] = everyone
        for number, found in enumerate(owners):
            if len(found) != len(readers[number]):
                readers[number] = tuple(found)
        return readers
