"""A checkpoint is copied while its query runs; a copy that does not fit together is never believed."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.unit.state.running_query import (
    GROUPS,
    Disk,
    expected_batches,
    piece_batch,
    placed,
    rows_of,
    snapshot,
    steps,
)

from tidegate.cli.main import main
from tidegate.errors import StateError
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.copying import copy_checkpoint
from tidegate.state.segments import SegmentCache
from tidegate.state.spark_log import commit_of, refuse_other
from tidegate.state.store.memory import MemoryStore

BATCHES = 10


def goes_on(checkpoint: Checkpoint) -> int:
    """Start on a checkpoint and ask for the next batch as Spark would; the newest batch of the state.

    StateError where a start or its first batch refuses. What is believed must be the truth.
    """
    checkpoint.open("test")
    try:
        manifest = checkpoint.recover()
    finally:
        checkpoint.close()
    spark = snapshot(checkpoint.store.url.removeprefix("memory://").removesuffix("/tidegate"))
    numbers = {
        folder: [int(path.rpartition("/")[2]) for path in spark if path.startswith(f"spark/{folder}/")]
        for folder in ("offsets", "commits")
    }
    newest, done = (max(numbers[folder], default=-1) for folder in ("offsets", "commits"))
    wanted = newest if done < newest else newest + 1
    before = None
    if manifest is None:
        raise StateError("nothing is there yet", code="NOTHING")
    if manifest.spark_batch.number + 1 < wanted:
        before = checkpoint.spark_log.batch(wanted - 1)
    commit = commit_of(checkpoint.spark_log.batch(wanted), manifest, before)
    if commit is not None and (plan := checkpoint.plans.read(commit)) is not None and wanted == newest:
        refuse_other(plan.spark_batch, checkpoint.spark_log.batch(wanted))
    assert wanted in (manifest.batch, manifest.batch + 1)
    assert [piece_batch(piece) for piece in manifest.pieces] == expected_batches(manifest)
    cache = SegmentCache(checkpoint.store)
    for piece in manifest.pieces:
        assert cache.bytes(piece.data).to_pybytes() == rows_of(piece_batch(piece))
    lists = {path.rpartition("/")[2] for path in spark if path.startswith("spark/sources/0/")}
    compact = max((int(one.removesuffix(".compact")) for one in lists if one.endswith("compact")), default=-1)
    assert {str(number) for number in range(compact + 1, newest + 1)} <= lists
    return manifest.batch


@pytest.mark.parametrize("seed", range(60))
def test_a_copy_of_a_running_checkpoint_is_the_state_after_a_batch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    query = steps(placed("running", {}), 40)
    for _ in range(chance.randint(30, 120)):
        next(query)
    begun = Checkpoint("memory://running").manifests.latest_batch()
    assert begun is not None
    busy = False

    def while_it_runs(method: Any) -> Any:
        def called(store: MemoryStore, path: str) -> Any:
            nonlocal busy
            if store.name.startswith("running/") and not busy:
                busy = True
                for _ in range(chance.choice((0, 0, 1, 2, 9))):
                    next(query, None)
                busy = False
            return method(store, path)

        return called

    placed("copied", {})
    with monkeypatch.context() as patched:
        for name in ("read", "map"):
            patched.setattr(MemoryStore, name, while_it_runs(getattr(MemoryStore, name)))
        manifest = copy_checkpoint("memory://running", "memory://copied")
    copied = Checkpoint("memory://copied")
    assert begun <= manifest.batch == goes_on(copied)
    assert [line["batch_id"] for line in copied.receipts.read()] == list(range(manifest.batch + 1))
    assert (
        max(int(path.rpartition("/")[2]) for path in copied.spark_log.store.list("offsets")) == manifest.batch
    )


def test_a_copy_that_was_cut_short_at_any_file_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in steps(placed("running", {}), BATCHES):
        pass
    wrote, left = MemoryStore.write_atomic, 0

    def limited(store: MemoryStore, path: str, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError("killed")
        wrote(store, path, data)

    refused = 0
    for files in range(200):
        placed("copied", {})
        left = files
        with monkeypatch.context() as patched:
            patched.setattr(MemoryStore, "write_atomic", limited)
            try:
                copy_checkpoint("memory://running", "memory://copied")
            except OSError:
                refused += 1
            else:
                break
        if Checkpoint("memory://copied").store.list():
            with pytest.raises(StateError):
                goes_on(Checkpoint("memory://copied"))
    assert refused > 10
    assert goes_on(Checkpoint("memory://copied")) == BATCHES - 1


def test_a_copy_made_by_hand_in_any_order_is_refused_or_whole() -> None:
    query = steps(placed("running", {}), BATCHES)
    past = [snapshot("running")]
    past += [snapshot("running") for _ in query]
    outcomes: Counter[str] = Counter()
    last = len(past) - 1
    for order in permutations(GROUPS):
        for first, pace in ((last - 22, 1), (last - 14, 2), (last - 20, 3), (last - 30, 5), (last - 9, 1)):
            disk: Disk = {"spark/metadata": b"{}"}
            for number, group in enumerate(order):
                then = past[min(first + pace * number, last)]
                disk |= {path: data for path, data in then.items() if path.startswith(f"{group}/")}
            try:
                goes_on(placed("by hand", disk))
                outcomes["whole"] += 1
            except StateError as error:
                outcomes[error.code] += 1
    assert all(name == "whole" or name.startswith("CHECKPOINT_") for name in outcomes)
    assert outcomes["whole"] > 10
    assert outcomes["CHECKPOINT_FILE_MISSING"] > 100


@pytest.mark.parametrize(
    "gone", ["tidegate/segments/", "spark/offsets/9", "spark/sources/0/9", "spark/sources/0/8"]
)
def test_a_start_names_the_file_that_a_copy_lacks(gone: str) -> None:
    for _ in steps(placed("running", {}), BATCHES):
        pass
    whole = snapshot("running")
    lacking = [path for path in whole if path.startswith(gone)][-1]
    copied = placed("by hand", {path: data for path, data in whole.items() if path != lacking})
    with pytest.raises(StateError, match=r"CHECKPOINT_(FILE_MISSING|SPARK_LOG_OUTDATED)") as error:
        goes_on(copied)
    assert lacking.partition("/")[2] in str(error.value)


def test_a_file_that_stays_away_is_an_error_and_no_endless_search() -> None:
    for _ in steps(placed("running", {}), BATCHES):
        pass
    running = Checkpoint("memory://running")
    running.store.delete(running.store.list("segments")[0])
    placed("copied", {})
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_MISSING.*segments/near/"):
        copy_checkpoint("memory://running", "memory://copied")


def test_the_command_copies_into_an_empty_folder_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = str(tmp_path / "ck"), str(tmp_path / "backup")
    assert main(["checkpoint", "copy", source, target]) == 2
    assert "CHECKPOINT_COPY_EMPTY" in capsys.readouterr().err
    for _ in steps(Checkpoint(source), BATCHES):
        pass
    assert main(["checkpoint", "copy", source, target]) == 0
    assert capsys.readouterr().out == f"copied the state after batch 9 (6 rows in 3 files) to {target}\n"
    assert main(["inspect", target]) == 0
    capsys.readouterr()
    assert main(["checkpoint", "copy", source, target]) == 2
    assert "CHECKPOINT_COPY_TARGET_NOT_EMPTY" in capsys.readouterr().err
