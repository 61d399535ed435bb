"""A run that was halted while another took over: it wakes up, and can neither commit nor delete anything."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.state.samples import a_manifest, a_piece

from tidegate.errors import CheckpointInUse
from tidegate.state import lease
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.paths import segment_path

#: Where the first run is halted, in batch 3.
PLACES = ("before its check", "before its manifest", "before its deletions")
#: A run that stops itself in batch 3, and then goes on for as long as it is allowed to.
VICTIM = """
import os, signal, sys
from tests.unit.state.samples import a_manifest, a_piece
from tidegate.errors import StateError
from tidegate.state import checkpoint as module
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.paths import segment_path
url, place = sys.argv[1:]
checkpoint = Checkpoint(url)
checkpoint.open("victim")
checkpoint.recover()

def halting(call):
    def halted(*given):
        if batch == 3:
            os.kill(os.getpid(), signal.SIGSTOP)
        return call(*given)
    return halted

if place == "before its check":
    checkpoint._lock.check = halting(checkpoint._lock.check)
elif place == "before its manifest":
    checkpoint.manifests.commit = halting(checkpoint.manifests.commit)
else:
    module.drop_unreferenced = halting(module.drop_unreferenced)
kept = segment_path("near", 0, 0, "kept")
checkpoint.store.write(kept, [b"rows that the next run still needs"])
for batch in range(200):
    path = segment_path("near", batch, 0, "victim")
    checkpoint.store.write(path, [b"rows"])
    try:
        # From batch 3 on, its state has let go of the old rows.
        checkpoint.commit(a_manifest(batch, a_piece(path), *([a_piece(kept)] if batch < 3 else [])))
    except StateError as error:
        print(batch, error.code, flush=True)
        break
"""


@pytest.mark.parametrize("later", [1, 80], ids=["one batch", "more than are kept"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["lock", "lease"])
def test_a_run_that_was_halted_and_replaced_commits_and_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str, later: int
) -> None:
    url = str(tmp_path / "ck") if kind == "lock" else f"local://{tmp_path}/ck"
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, url, place],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as victim:
        try:
            _, status = os.waitpid(victim.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), victim.communicate()[0]
            if kind == "lock":  # the kernel would keep it for a process that is halted
                os.remove(tmp_path / "ck/tidegate/lock")
            monkeypatch.setattr(lease, "DEAD_SECONDS", 0.0)
            heir = Checkpoint(url)
            heir.open("heir")
            last = heir.recover()
            assert last is not None
            # Its manifest stands or does not; the heir goes on from what it finds.
            assert last.batch == (3 if place == "before its deletions" else 2)
            for batch in range(last.batch + 1, last.batch + 1 + later):
                path = segment_path("near", batch, 0, "heir")
                heir.store.write(path, [b"rows"])
                heir.commit(a_manifest(batch, *last.pieces, a_piece(path)))
            state = heir.manifests.load_latest()
            assert state is not None
            victim.send_signal(signal.SIGCONT)
            told = victim.communicate(timeout=60)[0].split()
        finally:
            victim.kill()
    refused = {"CHECKPOINT_IN_USE"}
    if place == "before its manifest" and later == 1:
        refused = {"CHECKPOINT_BATCH_ALREADY_COMMITTED"}
    assert told[0] == ("4" if place == "before its deletions" else "3")
    assert told[1] in refused
    # The heir is not disturbed: its state, its files, and its lock.
    heir.commit(a_manifest(state.batch + 1, *state.pieces))
    heir.close()
    after = Checkpoint(url)
    assert after.manifests.load_latest() == a_manifest(state.batch + 1, *state.pieces)
    for piece in state.pieces:
        assert after.store.exists(piece.data.file), piece.data.file


def test_a_copy_that_was_taken_over_fails_also_where_its_lock_file_comes_back(tmp_path: Path) -> None:
    first = Checkpoint(str(tmp_path / "ck"))
    first.open("first")
    first.recover()
    first.commit(a_manifest(0))
    shutil.move(tmp_path / "ck/tidegate/lock", tmp_path / "lock")
    second = Checkpoint(str(tmp_path / "ck"))
    second.open("second")
    second.recover()
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*second"):
        first.check()
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*second"):
        first.commit(a_manifest(1))
    second.commit(a_manifest(1))
    first.close()
    second.close()
