"""`Pieces`: the pieces of a manifest as a tuple, which knows what changed since the manifest before.

There may be a hundred thousand pieces, of which a batch changes a few. What must be found among them (by
name, by the instance that merges them, by file) is kept in one `PieceIndex`, which goes on from each `Pieces`
to the next:

    Pieces b-1 ──index──▶ change ──▶ Pieces b, with the index and the change
         └ has none any more; if it is asked again, it makes a new one

So nothing depends on the index but time: a plain tuple of pieces, such as one that was read from a file,
gives the same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.model.pieces import Piece
from tidegate.model.routing import Routing

#: Instance, side, slot, keyless, marks: only pieces that agree in these are merged.
GroupKey = tuple[int, int, int, bool, bool]
Group = dict[str, Piece]


@dataclass(frozen=True)
class PiecesChange:
    """Pieces removed, changed and added; the order only where it is not the natural one.

    The natural order: what stayed, in its old order, then what was added. A piece that is removed and added
    is the last one then.
    """

    removed: tuple[str, ...]
    changed: tuple[Piece, ...]
    added: tuple[Piece, ...]
    #: Places in the natural order.
    order: tuple[int, ...] | None = None


@dataclass
class _Groups:
    """The pieces of an operator that may be merged, by group, under one routing."""

    routing: Routing
    by_key: dict[GroupKey, Group] = field(default_factory=dict)
    #: Partitions of a piece → the instances that own them; most pieces of an instance have the same ones.
    owners: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)

    def put(self, name: str, piece: Piece) -> None:
        if piece.slot is not None:
            for instance in self._owners(piece):
                key = instance, piece.side, piece.slot, piece.keyless, piece.marks
                group = self.by_key.get(key)
                if group is None:
                    group = self.by_key[key] = {}
                group[name] = piece

    def take(self, name: str, piece: Piece) -> None:
        if piece.slot is not None:
            for instance in self._owners(piece):
                key = instance, piece.side, piece.slot, piece.keyless, piece.marks
                group = self.by_key[key]
                del group[name]
                if not group:
                    del self.by_key[key]

    def _owners(self, piece: Piece) -> tuple[int, ...]:
        key = piece.side, piece.partitions
        found = self.owners.get(key)
        if found is None:
            table = self.routing.sides[piece.side].table
            found = self.owners[key] = tuple(dict.fromkeys(table[p] for p in piece.partitions))
        return found


@dataclass
class Total:
    """What an operator stores."""

    pieces: int = 0
    rows: int = 0
    size_bytes: int = 0

    def add(self, piece: Piece, sign: int) -> None:
        self.pieces += sign
        self.rows += sign * (sum(piece.bounds[1::2]) - sum(piece.bounds[::2]))
        self.size_bytes += sign * piece.data.length


class PieceIndex:
    """Pieces by name, file and group; changed in place."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        #: In the order of the manifest.
        self.named: dict[str, Piece] = {piece.name: piece for piece in pieces}
        self._files: Counter[str] | None = None
        self._groups: dict[str, _Groups] = {}
        self._totals: dict[str, Total] | None = None
        self._removed: dict[str, None] = {}
        self._changed: dict[str, Piece] = {}
        self._added: dict[str, Piece] = {}
        self._released: set[str] = set()

    def put(self, piece: Piece) -> None:
        """Add a piece as the last one, or put it in the place of the one of its name."""
        name = piece.name
        old = self.named.get(name)
        if old is not None:
            self._unlink(name, old)
        self.named[name] = piece
        (self._changed if old is not None and name not in self._added else self._added)[name] = piece
        if self._files is not None:
            self._files.update(files_of(piece))
        if self._totals is not None:
            self._totals.setdefault(piece.operator, Total()).add(piece, 1)
        groups = self._groups.get(piece.operator)
        if groups is not None:
            groups.put(name, piece)

    def pop(self, name: str) -> Piece:
        """Remove a piece."""
        piece = self.named.pop(name)
        self._unlink(name, piece)
        if name in self._added:
            del self._added[name]
        else:
            self._changed.pop(name, None)
            self._removed[name] = None
        return piece

    def _unlink(self, name: str, piece: Piece) -> None:
        if self._files is not None:
            for file in files_of(piece):
                self._files[file] -= 1
                if not self._files[file]:
                    del self._files[file]
                    self._released.add(file)
        if self._totals is not None:
            self._totals[piece.operator].add(piece, -1)
        groups = self._groups.get(piece.operator)
        if groups is not None:
            groups.take(name, piece)

    def groups(self, operator: str, routing: Routing) -> Mapping[GroupKey, Group]:
        """The pieces of an operator that lie in one slot, by what may be merged into one."""
        found = self._groups.get(operator)
        if found is None or (found.routing is not routing and found.routing != routing):
            found = self._groups[operator] = _Groups(routing)
            for name, piece in self.named.items():
                if piece.operator == operator:
                    found.put(name, piece)
        return found.by_key

    def totals(self) -> Mapping[str, Total]:
        """By operator: what it stores."""
        if self._totals is None:
            self._totals = {}
            for piece in self.named.values():
                self._totals.setdefault(piece.operator, Total()).add(piece, 1)
        return self._totals

    def count_files(self) -> None:
        """From here on, know which files are released."""
        if self._files is None:
            self._files = Counter(file for piece in self.named.values() for file in files_of(piece))

    def finish(self) -> tuple[PiecesChange, frozenset[str] | None]:
        """The change since the last call, and the files that no piece names any more, if they are counted."""
        change = PiecesChange(
            tuple(self._removed), tuple(self._changed.values()), tuple(self._added.values())
        )
        known = self._files
        released = None if known is None else frozenset(f for f in self._released if f not in known)
        self._removed, self._changed, self._added, self._released = {}, {}, {}, set()
        return change, released


class Pieces(tuple[Piece, ...]):
    """The pieces of a manifest; see the module docstring."""

    #: Those before, only to be compared by identity; and what made these of them.
    origin: object = None
    change: PiecesChange = PiecesChange((), (), ())
    #: Files that those before named, or that came with the change, and these do not name; None: not counted.
    released: frozenset[str] | None = None
    #: Stands for these very pieces.
    token: object = None
    _index: PieceIndex | None = None

    @classmethod
    def after(cls, before: Sequence[Piece], index: PieceIndex) -> Pieces:
        """What the index, which was taken from `before`, has become."""
        made = cls(index.named.values())
        made.change, made.released = index.finish()
        made.origin, made._index, made.token = identity(before), index, object()
        return made

    def made_of(self, before: Sequence[Piece]) -> bool:
        """Whether the change is that from these pieces."""
        return self.origin is identity(before)


def identity(pieces: Sequence[Piece]) -> object:
    """Stands for these very pieces, without keeping them in memory."""
    return pieces.token if isinstance(pieces, Pieces) else pieces


def index_of(pieces: Iterable[Piece]) -> PieceIndex:
    """The index of these pieces, to ask it."""
    if not isinstance(pieces, Pieces):
        return PieceIndex(pieces)
    if pieces._index is None:
        pieces._index = PieceIndex(pieces)
    return pieces._index


def taken(pieces: Iterable[Piece]) -> PieceIndex:
    """The same, to change it: these pieces do not have it any more."""
    index = index_of(pieces)
    if isinstance(pieces, Pieces):
        pieces._index = None
    return index


def files_of(piece: Piece) -> tuple[str, ...]:
    """The files that hold rows or matched bits of a piece."""
    return (piece.data.file, *(bits.file for bits in piece.matched.values()))
