from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import timeit
from pathlib import Path

import pytest
from tests.unit.state.samples import make_store

from tidegate.errors import CheckpointInUse
from tidegate.state import lease
from tidegate.state.holder import Holder
from tidegate.state.lock import hold
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import Store

REMOTE = ("memory", "remote-memory", "remote-file")


class Clock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=REMOTE)
def leased(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return make_store(request.param, tmp_path)


def test_the_second_run_is_told_who_holds_the_checkpoint(store: Store, clock: Clock) -> None:
    first = hold(store, "query near", clock)
    expected = rf"query near, pid {os.getpid()} on {socket.gethostname()}, since 2023-11-14T22:13:20"
    with pytest.raises(CheckpointInUse, match=expected):
        hold(store, "another", clock)
    first.check()
    first.release()


def test_a_released_checkpoint_can_be_held_again(store: Store, clock: Clock) -> None:
    for _ in range(3):
        lock = hold(store, "a", clock)
        lock.check()
        lock.release()
        lock.release()


def test_every_run_has_a_larger_number_whatever_clocks_say(store: Store, clock: Clock) -> None:
    numbers = []
    for step in (0.0, 5.0, 0.0):
        clock.now += step
        lock = hold(store, "a", clock)
        numbers.append(lock.run)
        clock.now += 1e-3
        lock.release()
    assert numbers == sorted(set(numbers))


def test_a_run_that_takes_over_from_a_dead_one_has_a_larger_number(tmp_path: Path, clock: Clock) -> None:
    """Also after a clock that was set back, and whatever a damaged lock says."""
    root = LocalStore(str(tmp_path))
    for left, low in (
        (Holder("a", 1, "b", clock.now + 3600, "t", 0.0).to_bytes(), round((clock.now + 3600) * 1e6)),
        (Holder("a", 1, "b", 1e300, "t", 0.0).to_bytes(), 0),
        (b"nonsense", 0),
    ):
        (tmp_path / "lock").write_bytes(left)
        lock = hold(root, "later", clock)
        assert low < lock.run < 1e17
        lock.check()
        lock.release()
    shared = make_store("memory", tmp_path)
    dead = Holder("a", 1, "b", clock.now + 3600, "t", clock.now - 120)
    shared.write_atomic("lock", dead.to_bytes())
    taken = hold(shared, "later", clock)
    assert taken.run > dead.run
    taken.check()
    taken.release()


def test_a_failed_hold_does_not_disturb_the_holder(store: Store, clock: Clock) -> None:
    first = hold(store, "first", clock)
    for _ in range(2):
        with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*first"):
            hold(store, "second", clock)
    first.check()
    first.release()


def test_the_kernel_releases_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    store = make_store("local", tmp_path)
    program = (
        "import sys, time; from tidegate.state.lock import hold;"
        "from tidegate.state.store.store import open_store;"
        "lock = hold(open_store(sys.argv[1]), 'victim'); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, store.url], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(CheckpointInUse, match=f"victim, pid {child.pid}"):
            hold(store, "heir")
        child.send_signal(signal.SIGKILL)
        child.wait()
    hold(store, "heir").release()


def test_a_run_whose_lock_file_is_removed_fails_its_check_before_and_after_another_takes_over(
    tmp_path: Path,
) -> None:
    store = make_store("local", tmp_path)
    first = hold(store, "first")
    first.check(quick=True)
    store.delete("lock")
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*gone"):
        first.check(quick=True)
    second = hold(store, "second")
    for quick in (True, False):
        with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*held by second"):
            first.check(quick)
        second.check(quick)
    first.release()
    second.check()
    second.release()


def test_a_lock_file_that_says_another_holder_is_lost(tmp_path: Path) -> None:
    # As where two machines lock one file of a network disk that keeps no locks.
    store = make_store("local", tmp_path)
    first, copy = hold(store, "first"), make_store("local", tmp_path / "other")
    second = hold(copy, "second")
    with open(tmp_path / "data/lock", "r+b") as file:
        file.truncate()
        file.write(copy.read("lock"))
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*held by second"):
        first.check(quick=True)
    first.release()
    second.release()


def test_the_check_of_a_local_lock_takes_microseconds(tmp_path: Path) -> None:
    lock = hold(make_store("local", tmp_path), "first")
    fastest = min(timeit.repeat(lambda: lock.check(quick=True), number=100, repeat=20)) / 100
    lock.release()
    assert fastest < 100e-6


def test_a_process_that_was_forked_does_not_keep_the_lock_of_a_dead_parent(tmp_path: Path) -> None:
    store = make_store("local", tmp_path)
    program = """
import multiprocessing, os, sys, time
from tidegate.state.lock import hold
from tidegate.state.store.store import open_store
def child():
    print(os.getpid(), flush=True)
    time.sleep(60)
lock = hold(open_store(sys.argv[1]), "victim")
multiprocessing.get_context("fork").Process(target=child).start()
lock.check()
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, store.url], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        orphan = int(parent.stdout.readline())
        try:
            with pytest.raises(CheckpointInUse, match="victim"):
                hold(store, "heir")
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            os.kill(orphan, 0)  # it lives on
            hold(store, "heir").release()
        finally:
            os.kill(orphan, signal.SIGKILL)


def test_a_full_disk_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = make_store("local", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            hold(store, "first")
    hold(store, "second").release()


def test_a_quick_check_asks_the_store_only_about_a_lease_that_has_grown_old(
    leased: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hold(leased, "first", clock)
    reads: list[str] = []
    read = leased.read

    def reading(path: str) -> bytes:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(leased, "read", reading)
    clock.now += 29
    first.check(quick=True)
    assert reads == []
    clock.now += 32
    second = hold(leased, "second", clock)
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*second"):
        first.check(quick=True)
    clock.now -= 1_000
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*second"):
        first.check(quick=True)
    first.release()
    second.release()


def test_a_lease_that_is_not_renewed_for_a_minute_is_taken_over(leased: Store, clock: Clock) -> None:
    first = hold(leased, "first", clock)
    clock.now += 59.9
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*first"):
        hold(leased, "second", clock)
    clock.now += 0.2
    second = hold(leased, "second", clock)
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*second"):
        first.check()
    first.release()
    second.check()
    second.release()


def test_a_check_renews_a_lease_that_has_grown_old(leased: Store, clock: Clock) -> None:
    first = hold(leased, "first", clock)
    clock.now += 1_000
    first.check()
    clock.now += 59
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*first"):
        hold(leased, "second", clock)
    first.release()


def test_a_lease_that_somebody_took_and_gave_back_counts_as_lost(leased: Store, clock: Clock) -> None:
    first = hold(leased, "first", clock)
    clock.now += 61
    hold(leased, "second", clock).release()
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*gone"):
        first.check()
    first.release()


def test_a_lease_that_cannot_be_read_is_not_taken_over(leased: Store, clock: Clock) -> None:
    leased.write_atomic("lock", b"half a lea")
    clock.now += 1_000_000
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*cannot be read"):
        hold(leased, "second", clock)


def test_a_thread_keeps_the_lease_alive_through_a_long_batch(
    leased: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    ticks = iter(range(1_000, 1_000_000))
    renewals: list[float] = []
    enough = threading.Event()

    def clock() -> float:
        renewals.append(next(ticks))
        if len(renewals) > 5:
            enough.set()
        return renewals[-1]

    held = hold(leased, "first", clock)
    assert enough.wait(5), "the thread has not renewed the lease"
    held.release()
    assert not leased.exists("lock")
    count = len(renewals)
    threading.Event().wait(0.05)
    assert len(renewals) == count, "renewed after the release"


def test_of_two_runs_that_start_at_once_only_one_passes_its_check(
    leased: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both look before either has written: the moment that a file system cannot guard.
    with monkeypatch.context() as blind:
        blind.setattr(leased, "exists", lambda path: False)
        locks = [hold(leased, "first", clock), hold(leased, "second", clock)]
    with pytest.raises(CheckpointInUse, match=r"CHECKPOINT_IN_USE.*second"):
        locks[0].check()
    locks[1].check()
    for lock in locks:
        lock.release()


@pytest.mark.parametrize("since", ["1e300", "-1e18", "NaN", "9" * 400])
@pytest.mark.parametrize("deep", ["1", "[" * 100_000])
def test_a_holder_that_is_nonsense_is_still_only_a_holder(tmp_path: Path, since: str, deep: str) -> None:
    first = hold(make_store("local", tmp_path), "first")
    holder = f'{{"owner":"x","pid":1,"host":"h","since":{since},"token":"t","renewed":1,"more":{deep}}}'
    with open(tmp_path / "data/lock", "r+b") as file:
        file.truncate()
        file.write(holder.encode())
    for call in (lambda: hold(make_store("local", tmp_path), "second"), first.check):
        with pytest.raises(CheckpointInUse, match="CHECKPOINT_IN_USE"):
            call()
    first.release()


@pytest.mark.parametrize("kind", ["directory", "loop"])
def test_a_lock_with_something_in_its_place_is_lost(tmp_path: Path, kind: str) -> None:
    first = hold(make_store("local", tmp_path), "first")
    path = tmp_path / "data/lock"
    path.unlink()
    if kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("lock")
    with pytest.raises(CheckpointInUse, match="CHECKPOINT_IN_USE"):
        first.check()
    first.release()
