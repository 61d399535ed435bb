"""Small values of the state layer, made up for tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
from fsspec.implementations.dirfs import DirFileSystem

from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import LateRows, Plan, Rewrites
from tidegate.model.routing import together
from tidegate.state.store.local import LocalStore
from tidegate.state.store.memory import MemoryStore
from tidegate.state.store.remote import RemoteStore
from tidegate.state.store.store import Store

KINDS = ("local", "memory", "remote-memory", "remote-file", "remote-dir")


def make_store(kind: str, folder: Path) -> Store:
    """A fresh store of one kind; `folder` is a directory that no other store uses."""
    name = folder.as_posix().strip("/")
    cache = str(folder / "cache")
    if kind == "local":
        return LocalStore(str(folder / "data"))
    if kind == "memory":
        return MemoryStore(name)
    if kind == "remote-memory":
        return RemoteStore(f"memory://{name}", cache_directory=cache)
    if kind == "remote-file":
        return RemoteStore(f"file://{folder}/data", cache_directory=cache)
    os.makedirs(folder / "data")
    inside = DirFileSystem(str(folder / "data"), fsspec.filesystem("file"))
    return RemoteStore("", cache_directory=cache, file_system=inside)


def alter(store: Store, path: str, data: bytes) -> None:
    """What only a fault would do: other bytes under the name of a file that was written."""
    store.delete(path)
    store.write(path, [data])


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def rows(count: int, seed: int = 0) -> pa.RecordBatch:
    values = np.random.default_rng(seed).integers(0, 1 << 60, (5, count))
    return pa.record_batch({f"c{i}": column for i, column in enumerate(values)})


def a_range(file: str, offset: int = 0) -> ByteRange:
    return ByteRange(file, offset, 10, "0123456789abcdef")


def a_piece(
    file: str, offset: int = 0, level: int = 0, matched: Mapping[str, ByteRange] | None = None
) -> Piece:
    return Piece(
        operator="near",
        side=0,
        slot=3,
        level=level,
        rows=2,
        first_us=-5,
        last_us=2**62,
        batches=(1, 4),
        keyless=False,
        partitions=(1, 7),
        bounds=(0, 1, 1, 2),
        data=a_range(file, offset),
        matched=matched or {},
    )


def a_manifest(batch: int, *pieces: Piece) -> Manifest:
    return Manifest(
        batch=batch,
        flow={"joins": [{"on": ["cell"], "within": [1, 2]}]},
        clocks={"orders": StreamClock(-(2**63), 5, batch)},
        settled_us={"near": batch * 10},
        routing={"near": together(batch, 2, (0, 1, 1, 0))},
        pieces=pieces,
    )


def a_plan(batch: int, now_us: int = 99) -> Plan:
    return Plan(
        batch=batch,
        now_us=now_us,
        late=LateRows({"orders": -(2**63)}, {"near": (1, 2)}, {"near": 4}),
        settle_us={"near": 4},
        routing={"near": together(0, 2, (0, 1))},
        seed=7,
        rewrites=Rewrites(merges={"near": {"0": (("a@0", "b@64"), ("c@0",)), "1": ()}}),
    )
