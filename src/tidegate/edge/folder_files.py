"""Reads the files of a folder to which others write: whatever lies there, reading ends soon and takes little.

A file is passed over with its reason if it is a link, a directory or anything else that is no plain file, if
it is larger than `BYTES_MAX`, or if its content is not what it should be. It is read again when it has
changed, and reported once."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

from tidegate.errors import TidegateError
from tidegate.redaction import without_secrets
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import Store

#: Larger files are not read.
BYTES_MAX = 16 << 20
#: More names are not looked at.
FILES_MAX = 100_000

T = TypeVar("T")
#: Distinguishes contents of one name: inode, size and time of the last change.
_Signature = tuple[int, int, int]


class FolderFiles(Generic[T]):
    """The files of one kind in a folder, each parsed by `parse`, which gets name and content."""

    def __init__(self, store: Store, parse: Callable[[str, bytes], T], report: Callable[[str], None]) -> None:
        self._store, self._parse, self._report = store, parse, report
        #: By file: what it was when it was read, and its value, or None if it is passed over.
        self._read: dict[str, tuple[_Signature | None, T | None]] = {}
        self._reported: dict[str, str] = {}

    def value(self, name: str) -> T | None:
        """What the file says; None if it is passed over, or has gone."""
        try:
            signature = _signature(self._store, name)
        except OSError:
            return None
        known = self._read.get(name)
        if known is not None and known[0] == signature is not None:
            return known[1]
        value: T | None = None
        try:
            value = self._parse(name, _content(self._store, name))
        except FileNotFoundError:
            return None
        except (OSError, RecursionError, TidegateError, ValueError) as error:
            self._pass_over(name, str(error))
        self._read[name] = signature, value
        return value

    def _pass_over(self, name: str, reason: str) -> None:
        reason = reason[:300]
        if self._reported.get(name) != reason:
            self._reported[name] = reason
            self._report(f"{without_secrets(self._store.url)}/{name} is passed over: {reason}")


def names(store: Store) -> list[str]:
    """The names in the folder itself, in no order."""
    if not isinstance(store, LocalStore):
        return [name for name in store.list() if "/" not in name]
    try:
        with os.scandir(store.root) as entries:
            return [entry.name for entry in islice(entries, FILES_MAX)]
    except FileNotFoundError:
        return []


def _signature(store: Store, name: str) -> _Signature | None:
    """None where a file system does not say it."""
    if not isinstance(store, LocalStore):
        return None
    found = os.lstat(os.path.join(store.root, name))
    return found.st_ino, found.st_size, found.st_mtime_ns


def _content(store: Store, name: str) -> bytes:
    if isinstance(store, LocalStore):
        path = os.path.join(store.root, name)
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ValueError("it is a link, a directory or a device, not a plain file")
        # A pipe may have taken its place since; opening it must not wait.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(BYTES_MAX + 1)
    else:
        data = store.read(name) if store.size(name) <= BYTES_MAX else bytes(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise ValueError(f"it has more than {BYTES_MAX >> 20} MB")
    return data
