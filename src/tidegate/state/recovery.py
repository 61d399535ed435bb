"""Deletes what no manifest needs: files of failed attempts, of expired slots and of merged pieces.

A file is referenced when the manifest names it, as rows or as matched bits of a piece; all others under
`segments/` are rubbish, because tasks write first and are believed only by a manifest.

    commit b ──▶ drop_unreferenced(b-1, b)      after each batch: no listing, only what b let go of
    start    ──▶ sweep(manifest)                once per run: also what failed attempts left behind

Both are safe only in that order: never before the manifest stands, and `sweep` only while this run
holds the lock and none of its tasks is running, since a running task's file is not referenced yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.state.store.store import Store

FOLDER = "segments"


def referenced(pieces: Iterable[Piece]) -> set[str]:
    """All files that hold rows or matched bits of these pieces."""
    files: set[str] = set()
    for piece in pieces:
        files.add(piece.data.file)
        files.update(bits.file for bits in piece.matched.values())
    return files


def sweep(store: Store, manifest: Manifest | None) -> list[str]:
    """Delete every segment file that the manifest does not name, and torn atomic writes; what was deleted."""
    needed = referenced(manifest.pieces) if manifest else set()
    rubbish = [path for path in store.list(FOLDER) if path not in needed]
    # The lock lies at the root: another run may be writing its own request for it right now.
    rubbish += [path for path in store.list(temporary=True) if "/" in path]
    return _deleted(store, rubbish)


def drop_unreferenced(store: Store, before: Iterable[Piece], after: Iterable[Piece]) -> list[str]:
    """Delete the files that were needed before and are not any more; what was deleted."""
    return _deleted(store, sorted(referenced(before) - referenced(after)))


def _deleted(store: Store, paths: list[str]) -> list[str]:
    for path in paths:
        store.delete(path)
    return paths
