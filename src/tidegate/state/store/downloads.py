"""`Downloads`: a directory of this machine that holds copies of remote files, up to a byte limit.

All processes of one user on one machine share it, because any worker may get any instance. That is safe
without locks:

- A copy is named after the remote file *and its version* (size, time or tag), so it is never out of date.
- A copy gets its name by a rename after it is complete, so no process sees half of one.
- A copy that is evicted while a process has it mapped lives on, nameless, until the map is dropped.

The least recently used copies go first; the time of use is the file's modification time, so the order
survives the process. The limit may be passed by the copy that is being fetched.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from tidegate.state.store.paths import TEMPORARY_PREFIX

#: A draft older than this belongs to a process that died while it was fetching.
DRAFT_SECONDS_MAX = 3600.0


class Downloads:
    """Copies by version key, least recently used out first."""

    def __init__(self, directory: str, byte_limit: int, clock: Callable[[], float] = time.time) -> None:
        self.directory = directory
        self.byte_limit = byte_limit
        self._clock = clock
        os.makedirs(directory, mode=0o700, exist_ok=True)

    def map(self, key: str, fetch: Callable[[str], None]) -> pa.Buffer:
        """The copy under `key`, mapped; `fetch(path)` makes it when it is not there."""
        full = os.path.join(self.directory, hashlib.sha256(key.encode()).hexdigest())
        with suppress(FileNotFoundError):
            self._touch(full)
            return _mapped(full)
        draft = os.path.join(self.directory, f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
        try:
            fetch(draft)
            # 1. Map before the file has a name: another process may evict it as soon as it has one.
            self._touch(draft)
            copy = _mapped(draft)
            # 2. Let the others find it. 3. Make room, which may already push this one out again.
            os.replace(draft, full)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        self._evict(spare=full)
        return copy

    def _touch(self, path: str) -> None:
        now = self._clock()
        os.utime(path, (now, now))

    def _evict(self, spare: str) -> None:
        copies = []
        for entry in os.scandir(self.directory):
            with suppress(FileNotFoundError):  # another process may evict at the same time
                stat = entry.stat()
                draft = entry.name.startswith(TEMPORARY_PREFIX)
                if not draft or stat.st_mtime < self._clock() - DRAFT_SECONDS_MAX:
                    copies.append((stat.st_mtime, entry.path, stat.st_size))
        total = sum(size for _, _, size in copies)
        for _, path, size in sorted(copies):
            if total <= self.byte_limit:
                return
            if path != spare:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                total -= size


def private_directory(name: str) -> str:
    """A directory for this user's copies: a shared one, or a fresh one if another user owns that name."""
    shared = os.path.join(tempfile.gettempdir(), f"tidegate-{os.getuid()}", name)
    parent = os.path.dirname(shared)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    if os.stat(parent).st_uid == os.getuid():
        return shared
    return tempfile.mkdtemp(prefix="tidegate-")


def _mapped(path: str) -> pa.Buffer:
    if os.stat(path).st_size == 0:
        return pa.py_buffer(b"")  # the kernel refuses to map an empty file
    with pa.memory_map(path, "r") as file:
        return file.read_buffer()
