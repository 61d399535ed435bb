"""`ManifestLog`: what each batch left behind; the newest manifest *is* the state of the query.

    manifests/0000000031.json  snapshot      every `snapshot_every` batches, and whenever the log does not
    manifests/0000000032.json  delta on 31   know the manifest before
    manifests/0000000033.json  delta on 32

The size of a delta is that of the batch's changes, not of the state. It names the manifest it builds on and
the snapshot its chain starts from. Only pieces and debts are stored as differences: there are many, and few
change in a batch. All other fields are small and written whole. For any two lists of pieces a and b:
`applied(a, difference(a, b)) == b`; and the same for debts, which keep their order.

Guarantee: `commit` returns when the manifest is complete under its name; before that no reader sees it. It is
written only where no file of its name is: of two runs that commit one batch, one succeeds. A file that is
there may be our own put that was tried again by the file system, so every link has the token of its run. A
crash leaves manifest b-1 (the batch runs again) or b (it is done). A damaged or missing file of the chain is
a `StateError` with file and batch. The log never falls back to an older manifest: Spark may have moved on,
and results would be lost silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.errors import REPORT_STATE_BUG, StateError
from tidegate.model.codec import Ready
from tidegate.model.debts import Debt
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import Pieces, PiecesChange
from tidegate.model.pieces import Piece
from tidegate.state.store.paths import batch_of, batch_path
from tidegate.state.store.sealed import seal, unseal
from tidegate.state.store.store import Store


@dataclass(frozen=True)
class DebtsChange:
    """Debts that are gone, by operator and batch, and those that are new or not what they were."""

    removed: tuple[tuple[str, int], ...]
    changed: tuple[Debt, ...]


@dataclass(frozen=True)
class _Link:
    """One file of a chain."""

    #: Batch of the manifest that this one builds on; None: this is a snapshot.
    base: int | None
    #: Batch of the snapshot that the chain starts from, and the number of deltas since.
    chain: tuple[int, int]
    #: A delta leaves out pieces and debts, and says how they changed.
    manifest: Manifest
    pieces: PiecesChange
    debts: DebtsChange
    #: The token of the run that wrote it (`lock.Lock.token`).
    writer: str = ""


def difference(previous: Sequence[Piece], current: Sequence[Piece]) -> PiecesChange:
    """What makes the current pieces of the previous ones."""
    if isinstance(current, Pieces) and current.made_of(previous):
        return current.change
    old, new = by_name(previous), by_name(current)
    kept = [name for name in old if name in new]
    added = [name for name in new if name not in old]
    place = {name: i for i, name in enumerate(kept + added)}
    return PiecesChange(
        removed=tuple(name for name in old if name not in new),
        # Most pieces are the very same object as before, and identity is the cheaper question.
        changed=tuple(new[n] for n in kept if new[n] is not old[n] and new[n] != old[n]),
        added=tuple(new[name] for name in added),
        order=None if list(place) == list(new) else tuple(place[name] for name in new),
    )


def applied(previous: Sequence[Piece], change: PiecesChange) -> tuple[Piece, ...]:
    """The pieces after the change."""
    pieces = by_name(previous)
    for name in change.removed:
        del pieces[name]
    # A changed piece keeps its place in the dictionary.
    pieces.update((piece.name, piece) for piece in (*change.changed, *change.added))
    natural = tuple(pieces.values())
    return natural if change.order is None else tuple(natural[i] for i in change.order)


def debts_difference(previous: Sequence[Debt], current: Sequence[Debt]) -> DebtsChange:
    """What makes the current debts of the previous ones."""
    old, new = ({(debt.operator, debt.batch): debt for debt in debts} for debts in (previous, current))
    return DebtsChange(
        removed=tuple(name for name in old if name not in new),
        changed=tuple(
            debt for name, debt in new.items() if old.get(name) is not debt and old.get(name) != debt
        ),
    )


def debts_applied(previous: Sequence[Debt], change: DebtsChange) -> tuple[Debt, ...]:
    """The debts after the change."""
    debts = {(debt.operator, debt.batch): debt for debt in previous}
    for name in change.removed:
        del debts[name]
    debts.update(((debt.operator, debt.batch), debt) for debt in change.changed)
    return tuple(debts.values())


def by_name(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """Pieces by name, in their order; StateError when a name comes twice."""
    named = {piece.name: piece for piece in pieces}
    if len(named) < len(pieces):
        counts = Counter(piece.name for piece in pieces)
        raise StateError(
            "A manifest lists the same piece twice",
            code="INTERNAL_PIECE_DUPLICATED",
            got=", ".join(name for name, count in counts.items() if count > 1),
            why="Its rows would be joined twice",
            do=REPORT_STATE_BUG,
        )
    return named


def _plain(link: _Link) -> dict[str, object]:
    """The fields of a link. Pieces may be very many."""
    manifest = {**vars(link.manifest), "pieces": Ready(link.manifest.pieces)}
    return {**vars(link), "manifest": manifest, "pieces": Ready(link.pieces)}


FOLDER = "manifests"
KIND = "manifest"


def _unfit(wanted: int, batch: int, got: str) -> StateError:
    return StateError(
        f"Manifest {wanted} cannot be loaded because one that it builds on does not fit: "
        f"{batch_path(FOLDER, batch)}",
        code="CHECKPOINT_FILE_DAMAGED",
        got=got,
        why="Continuing from it could lose or repeat results",
        do="Restore the file from a backup, or start with a new checkpoint",
    )


class ManifestLog:
    """The manifests of one checkpoint; of two writers of one batch, one succeeds."""

    def __init__(self, store: Store, snapshot_every: int = 32) -> None:
        if snapshot_every < 1:
            raise StateError(
                "snapshot_every must be at least 1",
                code="INTERNAL_TUNING_INVALID",
                got=snapshot_every,
            )
        self._store = store
        self._snapshot_every = snapshot_every
        #: The newest manifest, where this log has written or loaded it: what the next delta builds on.
        self._previous: Manifest | None = None
        #: Batch → batch of the snapshot that its chain starts from, and the number of deltas between.
        self._chains: dict[int, tuple[int, int]] = {}

    def commit(self, manifest: Manifest, writer: str = "") -> None:
        """Make `manifest` the state of the query. The one step by which a batch becomes done."""
        self._refuse_if_not_newer(manifest)
        # 1. Decide on the form. Nothing is visible yet.
        link = replace(self._link(manifest), writer=writer)
        path, sealed = batch_path(FOLDER, manifest.batch), seal(KIND, manifest.batch, _plain(link))
        # 2. One atomic write: before it batch b-1 is the state, after it batch b.
        if not self._store.write_new(path, sealed) and self._store.read(path) != sealed:
            raise self._committed(manifest.batch, f"{path}, written by another run, in {self._store.url}")
        # 3. Only now may the next delta build on it.
        self._previous = manifest
        self._chains[manifest.batch] = link.chain

    def load_latest(self) -> Manifest | None:
        """The state of the query; None for a checkpoint in which no batch was ever done."""
        latest = self.latest_batch()
        if latest is None:
            return None
        self._previous = self.load(latest)
        return self._previous

    def load(self, batch: int) -> Manifest:
        """The manifest of one batch, put together from its chain."""
        links = [self._read(batch, wanted=batch)]
        while (base := links[-1].base) is not None:
            at = links[-1].manifest.batch
            if not 0 <= base < at:
                raise _unfit(batch, at, f"it builds on batch {base}, which is not before it")
            links.append(self._read(base, wanted=batch))
        manifest = links.pop().manifest
        for link in reversed(links):
            try:
                pieces = applied(manifest.pieces, link.pieces)
                debts = debts_applied(manifest.debts, link.debts)
            except LookupError as error:
                got = f"it changes {error}, which batch {manifest.batch} does not have"
                raise _unfit(batch, link.manifest.batch, got) from error
            manifest = replace(link.manifest, pieces=pieces, debts=debts)
        return manifest

    def latest_batch(self) -> int | None:
        return max(self.batches(), default=None)

    def batches(self) -> list[int]:
        """All batches that have a file, oldest first."""
        return sorted(b for b in map(batch_of, self._store.list(FOLDER)) if b is not None)

    def purge(self, keep: int = 8) -> None:
        """Delete what is not needed to load the newest `keep` manifests."""
        batches = self.batches()
        if len(batches) <= keep:
            return
        oldest_kept = batches[-max(keep, 1)]
        if oldest_kept not in self._chains:
            self._read(oldest_kept, wanted=oldest_kept)
        first_needed, _ = self._chains[oldest_kept]
        for batch in batches:
            if batch < first_needed:
                self._store.delete(batch_path(FOLDER, batch))
                self._chains.pop(batch, None)

    def _link(self, manifest: Manifest) -> _Link:
        previous = self._previous
        start, deltas = self._chains[previous.batch] if previous else (0, 0)
        if previous is None or deltas + 1 >= self._snapshot_every:
            by_name(manifest.pieces)  # refuses one that is listed twice
            unchanged = PiecesChange((), (), ()), DebtsChange((), ())
            return _Link(None, (manifest.batch, 0), manifest, *unchanged)
        return _Link(
            previous.batch,
            (start, deltas + 1),
            replace(manifest, pieces=(), debts=()),
            difference(previous.pieces, manifest.pieces),
            debts_difference(previous.debts, manifest.debts),
        )

    def _read(self, batch: int, wanted: int) -> _Link:
        path = batch_path(FOLDER, batch)
        try:
            link = unseal(self._store.read(path), KIND, batch, path, _Link)
            if link.manifest.batch != batch:
                raise _unfit(wanted, batch, f"it says that it is of batch {link.manifest.batch}")
        except StateError as error:
            raise error.prefixed(
                f"Manifest {wanted} cannot be loaded because it builds on batch {batch}"
            ) from error
        self._chains[batch] = link.chain
        return link

    def _refuse_if_not_newer(self, manifest: Manifest) -> None:
        if self._previous is not None:
            newest: int | None = self._previous.batch
        else:
            newest = self.latest_batch()
        if newest is not None and manifest.batch <= newest:
            raise self._committed(manifest.batch, f"manifest {newest} as the newest in {self._store.url}")

    def _committed(self, batch: int, found: str) -> StateError:
        return StateError(
            f"Batch {batch} is already committed",
            code="CHECKPOINT_BATCH_ALREADY_COMMITTED",
            got=found,
            why="Committing it again would repeat its results",
            do="Check that no other run uses this checkpoint, then start the query again",
        )
