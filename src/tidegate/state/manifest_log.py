"""`ManifestLog`: what each batch left behind; the newest manifest *is* the state of the query.

    manifests/0000000031.json  snapshot      every `snapshot_every` batches, and whenever the log does not
    manifests/0000000032.json  delta on 31   know the manifest before
    manifests/0000000033.json  delta on 32

A delta costs as much as the batch changed, not as much as the state holds. It names the manifest it builds
on and the snapshot its chain starts from.

Guarantee: `commit` returns when the manifest stands complete under its name; before that instant it does not
exist for any reader. So a crash leaves manifest b-1 (the batch runs again) or b (it is done). A file
of the chain that is damaged or missing is a `StateError` with file and batch. The log never falls back to
an older manifest by itself: Spark may have moved on, and results would be lost in silence.

What changed from one manifest to the next, as plain values, and the way back.

Only pieces and debts are compared: they are many, and few of them change in a batch. Everything else in a
manifest is small and goes into each delta whole. Law, for any two lists of pieces a and b:
`applied(a, difference(a, b)) == b`; and the same for debts, which stay in the order they came in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.errors import StateError
from tidegate.model.debts import Debt
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.state.store.paths import batch_of, batch_path
from tidegate.state.store.sealed import seal, unseal
from tidegate.state.store.store import Store


def small_fields(manifest: Manifest) -> dict[str, Any]:
    """A manifest as JSON without its pieces and debts."""
    return {**vars(manifest), "pieces": [], "debts": []}


def difference(previous: Sequence[Piece], current: Sequence[Piece]) -> dict[str, Any]:
    """Pieces removed, changed and added by name; the order only where it is not the natural one.

    The natural order: what stayed, in its old order, then what was added.
    """
    old, new = by_name(previous), by_name(current)
    kept = [name for name in old if name in new]
    added = [name for name in new if name not in old]
    delta: dict[str, Any] = {
        "removed": [name for name in old if name not in new],
        # Most pieces are the very same object as before, and identity is the cheaper question.
        "changed": [new[n] for n in kept if new[n] is not old[n] and new[n] != old[n]],
        "added": [new[name] for name in added],
    }
    natural = kept + added
    if natural != list(new):
        place = {name: i for i, name in enumerate(natural)}
        delta["order"] = [place[name] for name in new]
    return delta


def applied(previous: Sequence[Piece], delta: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The pieces after the change; the delta is as JSON gave it back."""
    pieces = by_name(previous)
    for name in delta["removed"]:
        del pieces[name]
    for raw in (*delta["changed"], *delta["added"]):  # a changed piece keeps its place in the dictionary
        piece = Piece.from_json(raw)
        pieces[piece.name] = piece
    natural = tuple(pieces.values())
    return tuple(natural[i] for i in delta["order"]) if "order" in delta else natural


def debts_difference(previous: Sequence[Debt], current: Sequence[Debt]) -> dict[str, Any]:
    """Debts that are gone, and those that are new or not what they were."""
    old, new = ({(debt.operator, debt.batch): debt for debt in debts} for debts in (previous, current))
    return {
        "removed": [name for name in old if name not in new],
        "changed": [
            debt for name, debt in new.items() if old.get(name) is not debt and old.get(name) != debt
        ],
    }


def debts_applied(previous: Sequence[Debt], delta: Mapping[str, Any]) -> tuple[Debt, ...]:
    """The debts after the change; the delta is as JSON gave it back."""
    debts = {(debt.operator, debt.batch): debt for debt in previous}
    for operator, batch in delta.get("removed", ()):
        del debts[operator, batch]
    for debt in map(Debt.from_json, delta.get("changed", ())):
        debts[debt.operator, debt.batch] = debt
    return tuple(debts.values())


def by_name(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """Pieces by name, in their order; StateError when a name comes twice."""
    named = {piece.name: piece for piece in pieces}
    if len(named) < len(pieces):
        counts = Counter(piece.name for piece in pieces)
        raise StateError(
            "A manifest lists one piece twice",
            got=", ".join(name for name, count in counts.items() if count > 1),
            why="Its rows would be joined twice",
            do="Report this: a task's report was counted twice",
        )
    return named


FOLDER = "manifests"
KIND = "manifest"


class ManifestLog:
    """The manifests of one checkpoint; one writer at a time (see `lock`)."""

    def __init__(self, store: Store, snapshot_every: int = 32) -> None:
        if snapshot_every < 1:
            raise StateError("snapshot_every must be at least 1", got=snapshot_every)
        self._store = store
        self._snapshot_every = snapshot_every
        #: The newest manifest, where this log has written or loaded it: what the next delta builds on.
        self._previous: Manifest | None = None
        #: Batch → batch of the snapshot that its chain starts from, and the number of deltas between.
        self._chains: dict[int, tuple[int, int]] = {}

    def commit(self, manifest: Manifest) -> None:
        """Make `manifest` the state of the query. The one step by which a batch becomes done."""
        self._refuse_if_not_newer(manifest)
        # 1. Decide on the form. Nothing is visible yet.
        body, chain = self._body(manifest)
        # 2. One atomic write: before it batch b-1 is the state, after it batch b.
        self._store.write_atomic(
            batch_path(FOLDER, manifest.batch), seal(KIND, manifest.batch, {**body, "chain": chain})
        )
        # 3. Only now may the next delta build on it.
        self._previous = manifest
        self._chains[manifest.batch] = chain

    def load_latest(self) -> Manifest | None:
        """The state of the query; None for a checkpoint in which no batch was ever done."""
        latest = self.latest_batch()
        if latest is None:
            return None
        self._previous = self.load(latest)
        return self._previous

    def load(self, batch: int) -> Manifest:
        """The manifest of one batch, put together from its chain."""
        bodies = [self._read(batch, wanted=batch)]
        while bodies[-1]["base"] is not None:
            bodies.append(self._read(bodies[-1]["base"], wanted=batch))
        manifest = Manifest.from_json(bodies.pop()["snapshot"])
        while bodies:
            body = bodies.pop()
            fields = Manifest.from_json(body["fields"])
            debts = debts_applied(manifest.debts, body.get("debts", {}))
            manifest = replace(fields, pieces=applied(manifest.pieces, body["pieces"]), debts=debts)
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

    def _body(self, manifest: Manifest) -> tuple[dict[str, Any], tuple[int, int]]:
        previous = self._previous
        start, deltas = self._chains[previous.batch] if previous else (0, 0)
        if previous is None or deltas + 1 >= self._snapshot_every:
            pieces = list(by_name(manifest.pieces).values())
            snapshot = {**small_fields(manifest), "pieces": pieces, "debts": manifest.debts}
            return {"base": None, "snapshot": snapshot}, (manifest.batch, 0)
        changes = difference(previous.pieces, manifest.pieces)
        owed = debts_difference(previous.debts, manifest.debts)
        fields = small_fields(manifest)
        body = {"base": previous.batch, "fields": fields, "pieces": changes, "debts": owed}
        return body, (start, deltas + 1)

    def _read(self, batch: int, wanted: int) -> dict[str, Any]:
        path = batch_path(FOLDER, batch)
        try:
            body: dict[str, Any] = unseal(self._store.read(path), KIND, batch, path)
        except StateError as error:
            raise StateError(f"Manifest {wanted} cannot be loaded, it needs {path}. {error}") from error
        start, deltas = body["chain"]
        self._chains[batch] = (start, deltas)
        return body

    def _refuse_if_not_newer(self, manifest: Manifest) -> None:
        if self._previous is not None:
            newest: int | None = self._previous.batch
        else:
            newest = self.latest_batch()
        if newest is not None and manifest.batch <= newest:
            raise StateError(
                f"Batch {manifest.batch} is committed already",
                got=f"manifest {newest} as the newest in {self._store.url}",
                why="A batch that is done must not be done again: its results would be repeated",
                do="Ask latest_batch() before running a batch, and skip what is done",
            )
