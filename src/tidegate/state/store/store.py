"""A store: a flat tree of immutable blobs under one root, on whatever file system the root names.

The rest of Tidegate knows files only through `Store`. There are three kinds, which pass the same tests:
`LocalStore` (a directory), `MemoryStore` (its twin for tests and simulation) and `RemoteStore` (any other
file system, through fsspec). A store holds nothing but its url: send the url to a worker and call
`open_store` there.

Guarantees that all three give:

- `write_atomic`: a reader sees the old content, the new content, or no file: never a part. The file
  appears under its name only when all bytes have been handed to the file system.
- `write_new`: the same, but one that is there stays as it is. Of two runs that write one name, one is told
  that the name was free: by the kernel, or by the object store where it can put on a condition (which were
  tested: see `remote`). Elsewhere the lease alone keeps two runs apart.
- `write` does not guarantee this: its names are unique to an attempt and unknown to readers until a later
  manifest lists them. A second write of one name is refused.
- A missing file is a `StateError` that names it.

Nothing is fsynced. When a process dies, the page cache still holds all that it wrote, so no crash of
a process (SIGKILL included) loses or tears a finished write. A power loss can; then the checksums in
manifests, plans and byte ranges turn the torn file into a clear error, never into a wrong result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from tidegate.state.store.local import LocalStore
from tidegate.state.store.memory import MemoryStore
from tidegate.state.store.paths import Bytes, Names
from tidegate.state.store.remote import RemoteStore


class Store(Protocol):
    """Immutable blobs by relative path."""

    @property
    def url(self) -> str:
        """Enough to open the same store in another process: `open_store(store.url)`."""

    def write(self, path: str, buffers: Sequence[Bytes]) -> int:
        """Write a new file out of consecutive buffers; the number of bytes written."""

    def write_atomic(self, path: str, data: bytes) -> None:
        """Write a file that appears complete or not at all, replacing one of the same name."""

    def write_new(self, path: str, data: bytes) -> bool:
        """The same, unless a file of this name is there: then nothing is written, and False returned."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def map(self, path: str) -> pa.Buffer:
        """All bytes of a file without reading them: pages come in when they are touched."""

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int:
        """Length of a file in bytes."""

    def list(self, prefix: str = "", *, temporary: bool = False) -> Names:
        """Files below a folder, at any depth, sorted, relative to the root.

        `temporary`: the leftovers of atomic writes that a crash cut short, instead of the finished files.
        """

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""


def open_store(url: str) -> Store:
    """The store at `url`: a plain path or `file:` is local, `memory://name` lives in this process."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":  # Hadoop also writes file:/path, without the two slashes
        return LocalStore(url)
    if scheme == "memory":
        return MemoryStore(rest)
    return RemoteStore(url)
