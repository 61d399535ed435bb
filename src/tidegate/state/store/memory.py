"""`MemoryStore`: the twin of `LocalStore` that lives in this process, for tests and simulation.

Two stores of one name in one process share their blobs, as two stores of one directory do. Another process
sees nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.state.store.paths import Names, checked, missing, selected, written_twice

if TYPE_CHECKING:
    from tidegate.state.store.paths import Bytes

#: Name of a store → its blobs. The one global of this package: it plays the part of the disk.
_DISK: dict[str, dict[str, bytes]] = {}


class MemoryStore:
    """A store in a dictionary."""

    def __init__(self, name: str) -> None:
        self.name: str = name.strip("/")
        self._blobs = _DISK.setdefault(self.name, {})

    @property
    def url(self) -> str:
        return f"memory://{self.name}"

    def __reduce__(self) -> tuple[type[MemoryStore], tuple[str]]:
        return MemoryStore, (self.name,)

    def write(self, path: str, buffers: Sequence[Bytes]) -> int:
        data = b"".join(memoryview(buffer) for buffer in buffers)
        if self._blobs.setdefault(checked(path), data) is not data:
            raise written_twice(self.url, path)
        return len(data)

    def write_atomic(self, path: str, data: bytes) -> None:
        self._blobs[checked(path)] = bytes(data)

    def write_new(self, path: str, data: bytes) -> bool:
        # A fresh object, so that identity tells which of two equal ones is there.
        mine = bytes(bytearray(data))
        return self._blobs.setdefault(checked(path), mine) is mine

    def read(self, path: str) -> bytes:
        try:
            return self._blobs[checked(path)]
        except KeyError:
            raise missing(self.url, path) from None

    def map(self, path: str) -> pa.Buffer:
        return pa.py_buffer(self.read(path))

    def exists(self, path: str) -> bool:
        return checked(path) in self._blobs

    def size(self, path: str) -> int:
        return len(self.read(path))

    def list(self, prefix: str = "", *, temporary: bool = False) -> Names:
        return selected(tuple(self._blobs), prefix, temporary)

    def delete(self, path: str) -> None:
        self._blobs.pop(checked(path), None)
