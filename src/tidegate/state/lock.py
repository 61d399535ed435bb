"""One run at a time per checkpoint: `hold` takes the lock, or raises an error that names its holder.

- Local stores: `flock` on the file `lock`. The kernel releases it when the process ends, however it ends, so
  a lock never outlives its run. Two holds conflict within one process too, because each opens the file anew.
  A process that we fork gives its copy of the file back, or it would keep the lock of a run that is dead.
- All other stores: a lease (`lease.py`).

The lock file stays behind after a release; removing it lets a second run lock another file of that name. So
`check` looks whether the file that we locked is still the one of that name, and still says that it is ours.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from tidegate.state.holder import Holder, in_use, this_process
from tidegate.state.lease import Lease
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import Store

PATH = "lock"
#: More bytes than a holder has.
_BYTES_MAX = 65536


class Lock(Protocol):
    """A checkpoint that this run holds."""

    @property
    def token(self) -> str:
        """A random word that no other run has."""

    @property
    def run(self) -> int:
        """A number that is larger than that of every earlier run."""
        ...

    def check(self, quick: bool = False) -> None:
        """CheckpointInUse when another run has taken over; `quick`: if no slow call is needed to tell.

        Once it has failed it fails for ever.
        """

    def release(self) -> None:
        """Give it back; a second call does nothing."""


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
        self._url, self._path = store.url, os.path.join(store.root, PATH)
        self.token: str = me.token
        # Never inherited by a program that we start: a child must not keep the lock alive.
        self._file: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            me = me.after(self._taken(self._file))
            self.run: int = me.run
            self._says = me.to_bytes()
            # Only after the lock is ours may its file say so.
            os.ftruncate(self._file, 0)
            os.write(self._file, self._says)
        except BaseException:
            # A disk may be full. Closing gives the lock back.
            self._forget()
            raise
        _held.add(self)

    def _taken(self, file: int) -> Holder | None:
        """Take the lock; who had it before."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use(self._url, Holder.from_bytes(os.pread(file, _BYTES_MAX, 0))) from None
        return Holder.from_bytes(os.pread(file, _BYTES_MAX, 0))

    def check(self, quick: bool = False) -> None:
        """Two calls of the kernel, and no disk."""
        try:
            named = os.stat(self._path)
        except OSError:
            raise in_use(self._url, None) from None
        if self._file is None or not os.path.samestat(named, os.fstat(self._file)):
            raise in_use(self._url, self._holder())
        # A network disk may let two machines lock one file.
        if os.pread(self._file, len(self._says) + 1, 0) != self._says:
            raise in_use(self._url, self._holder())

    def _holder(self) -> Holder | None:
        try:
            with open(self._path, "rb") as file:
                return Holder.from_bytes(file.read(_BYTES_MAX))
        except OSError:
            return None

    def release(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._forget()

    def _forget(self) -> None:
        """Close our copy of the file; the lock goes with the last copy."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


#: Locks of this process.
_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _forget_all() -> None:
    """In a process that was forked: the lock belongs to its parent."""
    for lock in list(_held):
        lock._forget()
    _held.clear()


os.register_at_fork(after_in_child=_forget_all)
