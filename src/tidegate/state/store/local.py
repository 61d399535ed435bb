"""`LocalStore`: blobs in a directory of this machine, read through memory maps.

`write_atomic` is a write under a temporary name followed by a rename in the same directory, which POSIX
makes atomic. `write_new` links instead of renaming: the kernel refuses a link over a file. On a disk that has
no hard links it looks and renames, and the lock alone keeps two runs apart. See `store` for what is
guaranteed without fsync.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from tidegate.state.store.paths import Names, checked, missing, no_file, selected, temporary, written_twice

if TYPE_CHECKING:
    from tidegate.state.store.paths import Bytes

#: What a disk says that has no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
#: What it says where something is in the place of a file or of its folder. All else may pass: a full disk.
_IN_PLACE = frozenset({errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY})


class LocalStore:
    """A store in a directory; the directory is made by the first write."""

    def __init__(self, url: str) -> None:
        #: Absolute, because a worker process may run in another working directory.
        self.root: str = os.path.abspath(local_path(url))

    @property
    def url(self) -> str:
        return self.root

    def write(self, path: str, buffers: Sequence[Bytes]) -> int:
        with self._writing(path):
            try:
                with self._create(path) as file:
                    return sum(file.write(memoryview(buffer)) for buffer in buffers)
            except FileExistsError:
                if not os.path.lexists(self._full(path)):
                    raise
                raise written_twice(self.url, path) from None

    def write_atomic(self, path: str, data: bytes) -> None:
        with self._writing(path):
            # 1. All bytes under a temporary name.
            draft = self._draft(path, data)
            # 2. One step that makes them visible, complete.
            try:
                os.replace(draft, self._full(path))
            except OSError:  # a directory of this name
                os.unlink(draft)
                raise

    def write_new(self, path: str, data: bytes) -> bool:
        full = self._full(path)
        with self._writing(path):
            draft = self._draft(path, data)
        try:
            os.link(draft, full)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if os.path.exists(full):
                return False
            os.replace(draft, full)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        return True

    def read(self, path: str) -> bytes:
        with self._reading(path), open(self._full(path), "rb") as file:
            return file.read()

    def map(self, path: str) -> pa.Buffer:
        if self.size(path) == 0:
            return pa.py_buffer(b"")  # the kernel refuses to map an empty file
        with self._reading(path), pa.memory_map(self._full(path), "r") as file:
            return file.read_buffer()

    def exists(self, path: str) -> bool:
        return os.path.isfile(self._full(path))

    def size(self, path: str) -> int:
        with self._reading(path):
            return os.stat(self._full(path)).st_size

    def list(self, prefix: str = "", *, temporary: bool = False) -> Names:
        folder = prefix.strip("/")
        return selected(self._walk(self._full(folder) if folder else self.root), prefix, temporary)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._full(path))

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        """What cannot be read, for whatever reason, is an error with its name."""
        try:
            yield
        except FileNotFoundError:
            raise missing(self.url, path) from None
        except OSError as error:
            raise no_file(self.url, path, error) from error

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _IN_PLACE:
                raise
            raise no_file(self.url, path, error) from error

    def _full(self, path: str) -> str:
        return os.path.join(self.root, checked(path))

    def _draft(self, path: str, data: bytes) -> str:
        """A temporary file beside `path` with these bytes."""
        draft = temporary(checked(path))
        try:
            with self._create(draft) as file:
                file.write(data)
        except OSError:  # the disk is full
            with suppress(OSError):
                os.unlink(self._full(draft))
            raise
        return self._full(draft)

    def _create(self, path: str) -> IO[bytes]:
        full = self._full(path)
        try:
            return open(full, "xb")
        except FileNotFoundError:  # the first file of its folder
            os.makedirs(os.path.dirname(full), exist_ok=True)
            return open(full, "xb")

    def _walk(self, folder: str) -> Iterator[str]:
        for directory, _, names in os.walk(folder):
            below = os.path.relpath(directory, self.root)
            yield from (name if below == "." else f"{below}/{name}" for name in names)


def local_path(url: str) -> str:
    """The path in `file:///a/b`, `file:/a/b` or `/a/b`. Percent signs stay as they are, as in Hadoop."""
    return url.removeprefix("file:").removeprefix("//") if url.startswith("file:") else url
