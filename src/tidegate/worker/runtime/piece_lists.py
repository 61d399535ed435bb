"""Piece lists: one file per operator and pass, in which each task reads the list of its own instance.

A work order goes to every task. With thousands of pieces it would be megabytes that each task unpickles in
order to use a hundredth of it. So the driver writes them to a file beside the state, and the order names it:

    | offsets, checksums | list of instance 0 | list of instance 1 | …     a list: pieces and merges, as JSON

A list has every piece of which its instance may own or read a row, in the order of the manifest: those of its
partitions, and all pieces of a key or partition that lies on several instances, of one that a cut of the plan
concerns, and of marks. It may have more; `owned_state.py` takes what it needs.

No manifest names these files, so recovery deletes what a crash left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from tidegate.errors import StateError
from tidegate.model.codec import decode, encode
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


def write_lists(
    store: Store,
    path: str,
    pieces: Iterable[Piece],
    merges: Mapping[str, Groups],
    routing: Routing,
    cuts: Sequence[Cut],
) -> None:
    """Write the lists of all instances of an operator as one file."""
    audience = Audience(routing, cuts)
    lists: list[list[bytes]] = [[] for _ in range(routing.instances)]
    for piece in pieces:
        text = encode(piece)
        for instance in audience.of(piece):
            lists[instance].append(text)
    blobs = [
        b'{"pieces":[%b],"merges":%b}' % (b",".join(texts), encode(merges.get(str(instance), ())))
        for instance, texts in enumerate(lists)
    ]
    sums = np.array([xxhash.xxh3_64_intdigest(blob) for blob in blobs], "<u8")
    starts = np.concatenate(([0], np.cumsum([len(blob) for blob in blobs]))).astype("<i8")
    store.write(path, [starts.tobytes(), sums.tobytes(), b"".join(blobs)])


def read_list(store: Store, path: str, instance: int, instances: int) -> PieceList:
    """The list of one instance; StateError if it is not what was written."""
    whole = store.map(path)
    head = 8 * (2 * instances + 1)
    numbers = np.frombuffer(whole, "<i8", 2 * instances + 1) if whole.size >= head else np.zeros(0, "<i8")
    start, stop = (head + int(numbers[instance + i]) if len(numbers) else -1 for i in (0, 1))
    if head <= start <= stop <= whole.size:
        blob = whole.slice(start, stop - start).to_pybytes()
        if xxhash.xxh3_64_intdigest(blob) == int(numbers.view("<u8")[instances + 1 + instance]):
            return decode(PieceList, blob)
    raise StateError(
        f"The list of stored pieces is damaged: {path}",
        code="STATE_PIECE_LIST_DAMAGED",
        got=f"{whole.size} bytes, read for instance {instance} of {instances}",
        why="Rows that the list leaves out would not be joined",
        do="Start the query again: the list is made anew. If this repeats, check the disk",
    )


class Audience:
    """Which instances may need a piece."""

    def __init__(self, routing: Routing, cuts: Sequence[Cut]) -> None:
        self._all = tuple(range(routing.instances))
        self._sides = [self._of_partitions(placement, cuts) for placement in routing.sides]
        #: Most pieces of an instance have the same partitions.
        self._known: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}

    def of(self, piece: Piece) -> tuple[int, ...]:
        if piece.marks:
            return self._all
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
