"""`RemoteStore`: blobs on any file system that fsspec knows, with local copies for `map`.

What `write_atomic` guarantees depends on the file system:

- Object stores (S3, Google, Azure and their like): a single put is atomic, an object appears complete
  or not at all. So the bytes are put under their own name at once; a rename there would be a copy and
  a delete, which is slower and not atomic.
- File systems with a rename (HDFS, SFTP, a mounted directory): a write under a temporary name, then
  `mv`. Some of them refuse to rename over a file. Then the old file is deleted first, and a crash between
  the two leaves no file at all. Manifests and plans are never replaced, so this can only hit a lease
  or the telemetry of a replayed batch.

`write_new` puts on the condition that the name is free, where the store is known to keep it: S3 (tested
with s3fs, against moto). All others are asked first whether the file is there; between the answer and the put
another run may write it, and only the lease stands against that.

`map` fetches a file once to a directory of this machine (see `downloads`) and maps the copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow as pa

from tidegate.errors import StateError
from tidegate.model.json_values import Json
from tidegate.state.store.downloads import Downloads, private_directory
from tidegate.state.store.paths import Names, checked, missing, selected, temporary, written_twice

if TYPE_CHECKING:
    from tidegate.state.store.paths import Bytes

#: Schemes whose single put is atomic and whose rename is a copy.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "r2", "oci", "obs"})
#: Of these, those whose package was tested to put on the condition that the name is free.
CONDITIONAL = frozenset({"s3", "s3a"})
#: Local copies of one checkpoint on one machine. Less: more fetching; more: more disk.
CACHE_BYTES = 4 << 30


class RemoteStore:
    """A store on a file system that fsspec opens by url.

    `file_system` is for file systems that no url describes; such a store cannot be sent to a worker.
    """

    def __init__(
        self,
        url: str,
        *,
        cache_directory: str | None = None,
        cache_bytes: int = CACHE_BYTES,
        file_system: Any = None,
    ) -> None:
        self._url = url.rstrip("/")
        if file_system is None:
            # Listings must be fresh: another process writes what we look for.
            self._fs, root = fsspec.core.url_to_fs(self._url, use_listings_cache=False)
        else:
            self._fs, root = file_system, self._url
        self._root: str = root.rstrip("/")
        self._own = (cache_directory, cache_bytes, file_system)
        self._downloads: Downloads | None = None
        scheme = self._url.partition("://")[0]
        self._object_store, self._conditional = scheme in OBJECT_STORES, scheme in CONDITIONAL

    @property
    def url(self) -> str:
        return self._url

    def __getstate__(self) -> Json:
        return {"url": self._url, "own": self._own}

    def __setstate__(self, state: Json) -> None:
        directory, limit, file_system = state["own"]
        RemoteStore.__init__(
            self, state["url"], cache_directory=directory, cache_bytes=limit, file_system=file_system
        )

    def write(self, path: str, buffers: Sequence[Bytes]) -> int:
        if self.exists(path):
            raise written_twice(self.url, path)
        return self._put(path, buffers)

    def write_atomic(self, path: str, data: bytes) -> None:
        if self._object_store:
            self._fs.pipe_file(self._full(path), bytes(data))
            return
        # 1. All bytes under a temporary name.
        draft = temporary(checked(path))
        self._put(draft, [data])
        # 2. One step that makes them visible, complete.
        self._rename(self._full(draft), self._full(path))

    def write_new(self, path: str, data: bytes) -> bool:
        if self._conditional:
            try:
                self._fs.pipe_file(self._full(path), bytes(data), mode="create")
            except FileExistsError:
                return False
            return True
        if self.exists(path):
            return False
        self.write_atomic(path, data)
        return True

    def read(self, path: str) -> bytes:
        try:
            return bytes(self._fs.cat_file(self._full(path)))
        except FileNotFoundError:
            raise missing(self.url, path) from None

    def map(self, path: str) -> pa.Buffer:
        info = self._info(path)
        expected = int(info["size"])
        # All that the file system says of a file (size, time, tag) is its version, as in fsspec's `ukey`.
        copy = self._copies().map(f"{path} {info}", lambda to: self._fetch(path, to))
        if copy.size != expected:
            raise StateError(
                f"A file of the checkpoint was fetched only in part: {path}",
                code="CHECKPOINT_FILE_TRUNCATED",
                got=f"{copy.size} of {expected} bytes from {self.url}/{path}",
                do="Start the query again; if this repeats, check the storage: it returns less than it lists",
            )
        return copy

    def exists(self, path: str) -> bool:
        return bool(self._fs.isfile(self._full(path)))

    def size(self, path: str) -> int:
        return int(self._info(path)["size"])

    def list(self, prefix: str = "", *, temporary: bool = False) -> Names:
        folder = prefix.strip("/")
        try:
            found = self._fs.find(self._full(folder) if folder else self._root)
        except FileNotFoundError:
            return []
        cut = len(self._root) + 1 if self._root else 0
        return selected((name[cut:] for name in found), prefix, temporary)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self._root}/{checked(path)}" if self._root else checked(path)

    def _put(self, path: str, buffers: Sequence[Bytes]) -> int:
        full = self._full(path)
        if not self._object_store:
            self._fs.makedirs(full.rpartition("/")[0], exist_ok=True)
        written = 0
        with self._fs.open(full, "wb") as file:
            for buffer in buffers:
                written += len(memoryview(buffer))
                file.write(memoryview(buffer))
        return written

    def _rename(self, draft: str, full: str) -> None:
        try:
            self._fs.mv(draft, full)
        except OSError:
            # Only a file in the way is worth a second try; see the module's docstring for what it costs.
            if not (self._fs.exists(draft) and self._fs.exists(full)):
                raise
            self._fs.rm_file(full)
            self._fs.mv(draft, full)

    def _info(self, path: str) -> Json:
        try:
            return dict(self._fs.info(self._full(path)))
        except FileNotFoundError:
            raise missing(self.url, path) from None

    def _fetch(self, path: str, to: str) -> None:
        try:
            self._fs.get_file(self._full(path), to)
        except FileNotFoundError:
            raise missing(self.url, path) from None

    def _copies(self) -> Downloads:
        if self._downloads is None:
            directory, limit, _ = self._own
            name = hashlib.sha256(self._url.encode()).hexdigest()[:16]
            self._downloads = Downloads(directory or private_directory(name), limit)
        return self._downloads
