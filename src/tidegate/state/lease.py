"""`Lease`: the lock of a checkpoint where no kernel keeps one: an object that must be renewed.

The object names its holder and the time of the last renewal. A thread renews it every 15 s;
after 60 s without renewal the run counts as dead and another may take over.

    read: free or dead? ──▶ write ours ──▶ read back: still ours? ──▶ held ──▶ check() before each commit

Guarantee: once both of two runs have written, at most one of them passes `check()`. A file system has no
compare-and-swap, so two runs that start in the same instant may both believe in their lease for a while;
the one that wrote first fails at its next `check()`, before it commits anything. A run that is halted for a
minute between its check and its commit finds the manifest written, where the store can put on a condition
(`store/remote.py`); elsewhere that window remains. Clocks of different machines must agree to well within
the 60 s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tidegate.errors import StateError
from tidegate.state.holder import Holder, in_use
from tidegate.state.store.store import Store

RENEW_SECONDS = 15.0
#: Four renewals may fail before a run counts as dead. Less: a slow network kills healthy runs.
DEAD_SECONDS = 60.0
#: A quick check believes in a lease that was renewed as recently as this: nobody may take it over yet.
FRESH_SECONDS = 30.0


class Lease:
    """A lease on one object; `start` begins to renew it, `check` tells whether it is still ours."""

    def __init__(self, store: Store, path: str, me: Holder, clock: Callable[[], float]) -> None:
        self._store = store
        self._path = path
        self._me = me
        self.token: str = me.token
        self._clock = clock
        #: When we last wrote the object.
        self._renewed = me.renewed
        #: Guards read-then-write of the object between the renewing thread and the engine's.
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="tidegate-lease", daemon=True)
        self._take()

    @property
    def run(self) -> int:
        return self._me.run

    def start(self) -> None:
        self._thread.start()

    def check(self, quick: bool = False) -> None:
        """CheckpointInUse when the object is no longer ours; renews it if the thread is behind."""
        # A clock that was set back tells nothing.
        if quick and 0 <= self._clock() - self._renewed < FRESH_SECONDS:
            return
        with self._turn:
            self._refuse_if_lost()
            if self._clock() - self._renewed >= RENEW_SECONDS:
                self._write()
                self._refuse_if_lost()

    def renew(self) -> None:
        """Say that we are alive; CheckpointInUse when the object is no longer ours."""
        with self._turn:
            self._refuse_if_lost()
            self._write()

    def release(self) -> None:
        # 1. Stop renewing, or the thread could write the object again after it is gone.
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        # 2. Remove it if it is still ours: a successor's lease is not ours to delete.
        with self._turn:
            holder = self._read()
            if holder is not None and holder.token == self._me.token:
                self._store.delete(self._path)

    def _take(self) -> None:
        # 1. Free, or its holder is dead?
        if self._store.exists(self._path):
            holder = self._read()
            if holder is None or self._clock() - holder.renewed < DEAD_SECONDS:
                raise in_use(self._store.url, holder)
            self._me = self._me.after(holder)
        # 2. Ours.
        self._write()
        # 3. Unless another run wrote it after us.
        self._refuse_if_lost()

    def _write(self) -> None:
        now = self._clock()
        self._store.write_atomic(self._path, replace(self._me, renewed=now).to_bytes())
        self._renewed = now

    def _read(self) -> Holder | None:
        with suppress(StateError):  # gone: released by its holder
            return Holder.from_bytes(self._store.read(self._path))
        return None

    def _refuse_if_lost(self) -> None:
        # An object that is gone counts as lost: another run may have taken, used and released it.
        holder = self._read()
        if holder is None or holder.token != self._me.token:
            raise in_use(self._store.url, holder)

    def _keep_alive(self) -> None:
        while not self._stop.wait(RENEW_SECONDS):
            try:
                self.renew()
            except StateError:
                return  # taken over; the engine will hear it from check()
            except OSError:
                continue  # the network may come back within DEAD_SECONDS
