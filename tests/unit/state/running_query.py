"""A query that writes a checkpoint in memory, file by file, as the engine and Spark do; without rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.unit.state.samples import a_manifest, a_piece, a_plan

from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.recovery import drop_unreferenced
from tidegate.state.segments import SegmentWriter
from tidegate.state.store.memory import _DISK
from tidegate.state.store.paths import segment_path

#: Batches whose rows are in the state, and after how many a list of files is written as one entry.
WINDOW, COMPACT_EVERY = 3, 4
#: One folder of the snapshot of a disk each: what a hand copies at once.
GROUPS = (
    "tidegate/manifests",
    "tidegate/segments",
    "tidegate/plans",
    "spark/offsets",
    "spark/commits",
    "spark/sources",
)
Disk = dict[str, bytes]


def rows_of(batch: int) -> bytes:
    return f"rows of {batch}".encode() * 9


def steps(checkpoint: Checkpoint, batches: int) -> Iterator[None]:
    """Run batches; it stops after each file that is written or deleted."""
    spark, pieces = checkpoint.spark_log.store, tuple[Piece, ...]()
    spark.write_atomic("metadata", b'{"id":"one"}')
    for batch in range(batches):
        compact = batch % COMPACT_EVERY == COMPACT_EVERY - 1
        spark.write_atomic(f"sources/0/{batch}{'.compact' if compact else ''}", b"v1\nfile")
        yield
        if compact:
            for old in range(batch):
                spark.delete(f"sources/0/{old}")
                spark.delete(f"sources/0/{old}.compact")
                yield
        spark.write_atomic(
            f"offsets/{batch}", f'v1\n{{"batch":{batch}}}\n{{"logOffset":{batch}}}\n7'.encode()
        )
        yield
        taken = checkpoint.spark_log.batch(batch)
        checkpoint.plans.write(replace(a_plan(batch), spark_batch=taken))
        yield
        writer = SegmentWriter(checkpoint.store, segment_path("near", batch, 0, "a"))
        place = writer.add_bytes(rows_of(batch))
        writer.close()
        yield
        checkpoint.receipts.write(
            {"batch_id": batch, "started_at": "2026-03-01T12:00:00+00:00", "latency": None, "rows": []}
        )
        yield
        before, pieces = pieces, (*pieces, replace(a_piece(place.file), data=place))[-WINDOW:]
        checkpoint.manifests.commit(replace(a_manifest(batch, *pieces), spark_batch=taken))
        yield
        drop_unreferenced(checkpoint.store, before, pieces)
        if batch % 2:
            checkpoint.manifests.purge(2)
            checkpoint.plans.purge(batch)
        yield
        spark.write_atomic(f"commits/{batch}", b"v1\n{}")
        yield


def snapshot(name: str) -> Disk:
    """All files of a checkpoint in memory now."""
    return {
        f"{store.removeprefix(name + '/')}/{path}": data
        for store, files in _DISK.items()
        if store.startswith(f"{name}/")
        for path, data in files.items()
    }


def placed(name: str, disk: Disk) -> Checkpoint:
    """A checkpoint in memory with these files alone."""
    checkpoint = Checkpoint(f"memory://{name}")
    for store in [one for one in _DISK if one.startswith(f"{name}/")]:
        _DISK[store].clear()
    for path, data in disk.items():
        folder, _, rest = path.partition("/")
        _DISK[f"{name}/{folder}"][rest] = data
    return checkpoint


def piece_batch(piece: Piece) -> int:
    return int(piece.data.file.rpartition("/")[2][:10])


def expected_batches(manifest: Manifest) -> list[int]:
    return list(range(max(0, manifest.batch - WINDOW + 1), manifest.batch + 1))
