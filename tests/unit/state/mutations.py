"""A small checkpoint with everything in it, ways to damage one file of it, and a run that goes on from it."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.unit.state.samples import a_manifest, a_piece, a_plan, rows
from tests.unit.state.test_receipt_log import BEGIN_US, MINUTE, receipt

from tidegate.control.receipts.roll_up import combined
from tidegate.model.graph import FlowNames
from tidegate.model.json_values import Json
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.receipt_log import DEFAULT
from tidegate.state.segments import SegmentCache, SegmentWriter
from tidegate.state.spark_log import commit_of
from tidegate.state.store.paths import segment_path
from tidegate.state.store.sealed import seal

#: Commits of the checkpoint; the next one was planned.
BATCHES = 7
NAMES = FlowNames(("orders",), ("near",), ("out",))


def at_us(batch: int) -> int:
    """So that minutes and an hour end within the checkpoint."""
    return BEGIN_US + batch * 11 * MINUTE


# -- a run ---------------------------------------------------------------------------------------------------


class SparkFails(Exception):
    """Spark itself cannot use its files."""


class Run:
    """One run on a checkpoint, as the engine goes about it."""

    def __init__(self, root: Path):
        self.root = root
        self.checkpoint = Checkpoint(str(root))

    def recover(self) -> Manifest:
        found = self.checkpoint.recover()
        if found is None:
            if self.checkpoint.first_names() is None:
                self.checkpoint.begin(NAMES)
            return a_manifest(-1)
        return found

    def spark_asks(self) -> int:
        """Spark writes down what its next batch reads, or repeats the last one."""
        logged = [int(name) for name in _files(self.root / "spark/offsets") if name.isdigit()]
        last = max(logged, default=-1)
        if last >= 0 and not os.path.exists(self.root / f"spark/commits/{last}"):
            return last
        _spark_writes(self.root / f"spark/sources/0/{last + 1}", "v1\n{}")
        _spark_writes(
            self.root / f"spark/offsets/{last + 1}",
            f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{last + 1}}}\n{last}',
        )
        return last + 1

    def commit(self, state: Manifest, spark_batch: int) -> Manifest:
        """The next commit; if Spark's batch is done already, Spark goes on to the next one."""
        store, log = self.checkpoint.store, self.checkpoint.spark_log
        taken, before = log.batch(spark_batch), log.batch(spark_batch - 1)
        number = commit_of(taken, state, before)
        if number is None:
            _spark_writes(self.root / f"spark/commits/{spark_batch}", "v1\n{}")
            return self.commit(state, self.spark_asks())
        if self.checkpoint.plans.read(number) is None:
            self.checkpoint.plans.write(a_plan(number))
        writer = SegmentWriter(store, path := segment_path("near", number, 0, "a"))
        data, bits = writer.add(rows(20, number)), writer.add_bytes(b"%016d" % number)
        if not store.exists(path):
            writer.close()
        piece = replace(a_piece(path), data=data, matched={"0": bits})
        after = replace(a_manifest(number, *state.pieces[-3:], piece), spark_batch=taken)
        self.checkpoint.telemetry.write(number, {"batch": number})
        receipts, line = self.checkpoint.receipts, receipt(number, at_us=at_us(number))
        receipts.write(line)
        if receipts.begins_period(line):
            after = replace(
                after, receipts_from=receipts.kept_from(at_us(number), DEFAULT, state.receipts_from)
            )
        self.checkpoint.commit(after)
        if receipts.begins_period(line):
            receipts.roll_up(line, combined)
            receipts.purge(after.receipts_from)
        _spark_writes(self.root / f"spark/commits/{spark_batch}", "v1\n{}")
        return after

    def rows(self, state: Manifest) -> list[tuple[pa.RecordBatch, bytes]]:
        cache = SegmentCache(self.checkpoint.store)
        return [self._of(cache, piece) for piece in state.pieces]

    @staticmethod
    def _of(cache: SegmentCache, piece: Piece) -> tuple[pa.RecordBatch, bytes]:
        return cache.batch(piece.data), cache.bytes(piece.matched["0"]).to_pybytes()


def make(root: Path) -> None:
    """The checkpoint: seven commits of Spark batches, and a plan."""
    run = Run(root)
    run.checkpoint.open("first")
    state = run.recover()
    for _ in range(BATCHES):
        state = run.commit(state, run.spark_asks())
    run.checkpoint.plans.write(a_plan(BATCHES))
    run.checkpoint.close()


@dataclass(frozen=True)
class Seen:
    """What a run got to see, and what it left."""

    state: Manifest
    rows: list[tuple[pa.RecordBatch, bytes]]
    telemetry: dict[int, Json]
    receipts: list[Json]
    after: Manifest
    rows_after: list[tuple[pa.RecordBatch, bytes]]
    #: Warnings of lost or damaged lines.
    warned: bool


def play(root: Path) -> Seen:
    """Recover, read everything, commit once more, and load that."""
    run, told = Run(root), _Told()
    logging.getLogger("tidegate").addHandler(told)
    try:
        run.checkpoint.open("heir")
        state = run.recover()
        found = run.rows(state)
        reports = {
            batch: run.checkpoint.telemetry.read(batch) for batch in run.checkpoint.telemetry.batches()
        }
        run.checkpoint.plans.read(state.batch + 1)
        lines = run.checkpoint.receipts.read(None, state)
        run.commit(state, run.spark_asks())
        again = Run(root)
        after = again.checkpoint.manifests.load_latest()
        assert after is not None
        return Seen(state, found, reports, lines, after, again.rows(after), told.warned)
    finally:
        run.checkpoint.close()
        logging.getLogger("tidegate").removeHandler(told)


class _Told(logging.Handler):
    """Whether something was warned of."""

    warned = False

    def emit(self, record: logging.LogRecord) -> None:
        self.warned |= record.levelno >= logging.WARNING


# -- damage --------------------------------------------------------------------------------------------------

#: Contents that are no file of ours.
STRANGE = {
    "deep JSON": b"[" * 100_000,
    "deep closed JSON": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "huge numbers": b'{"pid":1e999,"since":1e300,"format":%s}' % (b"9" * 5_000),
    "not finite": b'{"since":NaN,"renewed":Infinity,"batch":-Infinity}',
    "wrong UTF-8": b'{"owner":"\xff\xfe\xc0","kind":"\x80"}',
    "other JSON": b"[null]",
    "zeros": bytes(5_000),
}


@dataclass(frozen=True)
class Mutation:
    """What was done to which files, relative to the checkpoint."""

    kind: str
    files: tuple[str, ...]
    #: Content with a valid seal: what it says is believed, and need not be what was written.
    forged: bool = False


def mutate(root: Path, chance: random.Random, kinds: Sequence[str] = ()) -> Mutation:
    """Damage one file, or exchange two; `kinds`: of these, or of all."""
    kind = chance.choice(sorted(kinds or KINDS))
    folder = chance.choice(sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_dir()))
    files = sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())
    inside = [one for one in files if one.startswith(f"{folder}/")]
    return KINDS[kind](root, kind, chance.choice(inside), chance)


def _changed(change: Callable[[bytes, random.Random], bytes]) -> Callable[..., Mutation]:
    def changing(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
        path = root / file
        path.write_bytes(change(path.read_bytes(), chance))
        return Mutation(kind, (file,))

    return changing


def _flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(chance.choice([1, 1, 5])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _replaced(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    kind = chance.choice(sorted(STRANGE))
    (root / file).write_bytes(STRANGE[kind])
    return Mutation(kind, (file,))


def _removed(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    (root / file).unlink()
    return Mutation(kind, (file,))


def _other_in_place(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    path = root / file
    path.unlink()
    if kind == "directory":
        path.mkdir()
        if chance.random() < 0.5:
            (path / "0000000001.json").write_bytes(b"{}")
    else:
        path.symlink_to(path.name if kind == "symlink loop" else "nowhere")
    return Mutation(kind, (file,))


def _copied(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    """Under another name of the folder, or under the next one."""
    path = root / file
    others = sorted(one.name for one in path.parent.iterdir() if one.is_file())
    number = path.name.partition(".")[0].partition("-")[0]
    if number.isdigit():
        others.append(path.name.replace(number, f"{BATCHES + chance.randrange(2):0{len(number)}d}", 1))
    to = chance.choice([one for one in others if one != path.name] or [f"{path.name}.copy"])
    shutil.copyfile(path, path.parent / to)
    return Mutation(kind, (file, str((path.parent / to).relative_to(root))))


def _swapped(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    other = chance.choice(sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()))
    mine, theirs = (root / file).read_bytes(), (root / other).read_bytes()
    (root / file).write_bytes(theirs)
    (root / other).write_bytes(mine)
    return Mutation(kind, (file, other))


def _folder(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    path = (root / file).parent
    if path == root / "tidegate":
        path /= "manifests"
    shutil.rmtree(path)
    if kind == "file in place of a folder":
        path.write_bytes(b"")
    return Mutation(kind, (str(path.relative_to(root)),))


def _forged(root: Path, kind: str, file: str, chance: random.Random) -> Mutation:
    """One value of a sealed file is another, and the seal is right again."""
    folder = chance.choice(["manifests", "manifests", "plans", "telemetry"])
    file = f"tidegate/{folder}/{chance.randrange(BATCHES):010d}.json"
    document = json.loads((root / file).read_bytes())
    places = list(_places(document["body"]))
    values: list[Any] = [10**30, 2**62, -1, -(2**63), 0.5, "x", "", None, [], {}, [[[]]], True]
    holder, key = chance.choice(places)
    holder[key] = chance.choice(values)
    if folder == "manifests" and chance.random() < 0.3:
        document["body"]["base"] = chance.randrange(BATCHES + 2)
    (root / file).write_bytes(seal(document["kind"], document["batch"], document["body"]))
    return Mutation(kind, (file,), forged=True)


def _places(value: Any) -> list[tuple[Any, Any]]:
    found = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(item, dict | list):
            found += _places(item)
    return found


def _spark_writes(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            path.write_text(text)
    except OSError as error:
        raise SparkFails(str(error)) from error
    if not path.is_file():
        raise SparkFails(f"{path} is no file")


def _files(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


KINDS: dict[str, Callable[[Path, str, str, random.Random], Mutation]] = {
    "flip": _changed(_flipped),
    "truncate": _changed(lambda data, chance: data[: chance.randrange(max(len(data), 1))]),
    "longer": _changed(lambda data, chance: data + data[: chance.choice([1, 40, len(data)])]),
    "empty": _changed(lambda data, chance: b""),
    "strange": _replaced,
    "remove": _removed,
    "directory": _other_in_place,
    "symlink loop": _other_in_place,
    "dangling symlink": _other_in_place,
    "copy": _copied,
    "swap": _swapped,
    "remove folder": _folder,
    "file in place of a folder": _folder,
    "forge": _forged,
}
