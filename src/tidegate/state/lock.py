"""One run at a time per checkpoint: `hold` takes the lock, or raises an error that names its holder.

- Local stores: `flock` on the file `lock`. The kernel releases it when the process ends, however it ends, so
  a lock never outlives its run. Two holds conflict within one process too, because each opens the file anew.
- All other stores: a lease (`lease.py`).

The lock file stays behind after a release; removing it would let two runs lock two files of one name.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable
from typing import Protocol

from tidegate.state.holder import Holder, in_use, this_process
from tidegate.state.lease import Lease
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import Store

PATH = "lock"


class Lock(Protocol):
    """A checkpoint that this run holds."""

    def check(self) -> None:
        """CheckpointInUse when another run has taken over; called before each manifest commit."""
        ...

    def release(self) -> None:
        """Give it back; a second call does nothing."""
        ...


def hold(store: Store, owner: str, clock: Callable[[], float] = time.time) -> Lock:
    """Take the lock of a checkpoint for this run; CheckpointInUse when another run has it."""
    me = this_process(owner, secrets.token_hex(8), clock())
    if isinstance(store, LocalStore):
        return FileLock(store, me)
    lease = Lease(store, PATH, me, clock)
    lease.start()
    return lease


class FileLock:
    """The lock of a directory on this machine."""

    def __init__(self, store: LocalStore, me: Holder) -> None:
        os.makedirs(store.root, exist_ok=True)
        # Never inherited by a program that we start: a child must not keep the lock alive.
        self._file: int | None = os.open(os.path.join(store.root, PATH), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = Holder.from_bytes(os.read(self._file, 65536))
            os.close(self._file)
            self._file = None
            raise in_use(store.url, holder) from None
        # Only after the lock is ours may its file say so.
        os.ftruncate(self._file, 0)
        os.write(self._file, me.to_bytes())

    def check(self) -> None:
        """Nothing to check: no other run can take a lock that the kernel keeps for this one."""

    def release(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None
