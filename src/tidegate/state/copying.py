"""Copies a checkpoint, also that of a running query, so that a query can continue from the copy.

    1. the newest manifest    decides what belongs to the copy
    2. its segments           each verified against its checksums
    3. Spark's log            commits up to the manifest's Spark batch; all of its lists of source files
    4. history                plans, telemetry and receipts up to that batch
    5. the manifest           as one snapshot
    6. Spark's offsets

The query goes on meanwhile and deletes what it no longer needs. If a file vanishes, the copy goes on with the
newest manifest at that time; files that are there already stay. A copy that ends before step 6 lacks a file
that a start asks for (`spark_log.SparkLog.check_whole`), so no part is taken for a whole.

Limits: the files of outputs are not part of a checkpoint. Entries in lists of source files that are newer
than the manifest come along, as after a crash: Spark reads them next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from tidegate.errors import StateError
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange
from tidegate.state.checkpoint import FIRST_NAMES, Checkpoint
from tidegate.state.plan_log import FOLDER as PLANS
from tidegate.state.recovery import sweep
from tidegate.state.segments import SegmentCache
from tidegate.state.spark_log import FOLDER as OFFSETS
from tidegate.state.spark_log import refuse_other
from tidegate.state.store.paths import batch_of
from tidegate.state.store.store import Store
from tidegate.state.telemetry_log import FOLDER as TELEMETRY

#: Tries in a row that find no newer manifest, or copy nothing new, before a missing file counts as lost.
TRIES = 5
_COMMITS = "commits"


def copy_checkpoint(source: str, target: str) -> Manifest:
    """Copy the state after the newest batch into an empty folder; the manifest of that state."""
    old, new = Checkpoint(source), Checkpoint(target)
    for store in (new.store, new.spark_log.store):
        _refuse_unless_empty(store, target)
    manifest, offsets = _copied(old, new)
    for folder in (PLANS, TELEMETRY):
        _copy_history(old.store, new.store, folder, manifest.batch)
    for mine, its in zip(old.receipts.tiers, new.receipts.tiers, strict=True):
        mine.copy_to(its, manifest.batch)
    if old.store.exists(FIRST_NAMES):
        new.store.write_atomic(FIRST_NAMES, old.store.read(FIRST_NAMES))
    # Files of earlier tries go; a file that the manifest names and that is not there is an error.
    sweep(new.store, manifest)
    new.manifests.commit(manifest)
    for path, data in offsets.items():
        new.spark_log.store.write_atomic(path, data)
    taken = manifest.spark_batch
    refuse_other(taken, new.spark_log.batch(taken.number))
    new.spark_log.check_whole(taken)
    return manifest


def _copied(old: Checkpoint, new: Checkpoint) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest whose segments and Spark log are copied, and the entries of Spark's offset log."""
    in_vain, before = 0, (-1, -1)
    while True:
        batch = old.manifests.latest_batch()
        if batch is None:
            raise StateError(
                "There is nothing to copy",
                code="CHECKPOINT_COPY_EMPTY",
                got=f"no manifest in {old.store.url}",
                why="A checkpoint has one as soon as its first batch is committed",
                do="Pass the directory that tg.start(…, checkpoint=…) was given, or wait for its first batch",
            )
        try:
            manifest = old.manifests.load(batch)
            for place in _ranges(manifest):
                _copy_segment(old.store, new.store, place)
            return manifest, _copy_spark(
                old.spark_log.store, new.spark_log.store, manifest.spark_batch.number
            )
        except StateError:
            done = (batch, len(new.store.list()))
            in_vain = 0 if done > before else in_vain + 1
            before = done
            if in_vain == TRIES:
                raise


def _ranges(manifest: Manifest) -> Iterator[ByteRange]:
    for piece in manifest.pieces:
        yield piece.data
        yield from piece.matched.values()


def _copy_segment(old: Store, new: Store, place: ByteRange) -> None:
    """Verify a range, and copy its file unless an earlier range or try has."""
    SegmentCache(old, byte_limit=0).bytes(place)
    if not new.exists(place.file):
        new.write(place.file, [old.map(place.file)])


def _copy_spark(old: Store, new: Store, last: int) -> dict[str, bytes]:
    """Copy Spark's part up to this batch; its offset log is returned instead."""
    offsets = {}
    for path in old.list():
        folder, _, name = path.rpartition("/")
        if name.startswith(".") or (
            folder in (OFFSETS, _COMMITS) and not (name.isdigit() and int(name) <= last)
        ):
            continue
        if folder == OFFSETS:
            offsets[path] = old.read(path)
        else:
            new.write_atomic(path, old.read(path))
    return offsets


def _copy_history(old: Store, new: Store, folder: str, last: int) -> None:
    for path in old.list(folder):
        batch = batch_of(path)
        if batch is not None and batch <= last:
            with suppress(StateError):  # purged since it was listed
                new.write_atomic(path, old.read(path))


def _refuse_unless_empty(store: Store, target: str) -> None:
    found = store.list()
    if found:
        raise StateError(
            "A checkpoint can only be copied into an empty folder",
            code="CHECKPOINT_COPY_TARGET_NOT_EMPTY",
            got=f"{len(found)} files in {target}, such as {found[0]}",
            why="The files of two checkpoints would mix",
            do="Name a new folder, or delete this one",
        )
