"""`SealedLines`: a log of JSON lines, each of which can prove that it is whole.

    0000000000.json     {"batch_id":0, …, "checksum":"0123456789abcdef"}     a line covers one batch or
                        {"batch_id":1, …, "checksum":"123456789abcdef0"}     several, in order
    0000000100.json     …                                                    named by its first batch

The checksum (xxh3, 64 bits) is the last member of a line and covers every byte before it. So many lines share
a file that thousands of them stay few files; a file is read again and replaced as a whole with every line, so
readers see whole lines only, and nothing that is not on the disk is ever written to it.

A line whose bytes are not what was written is never believed, and fails nothing: readers leave it out with a
warning that names the file. The writer also sets the file aside, as `_damaged-…`, before it replaces it.
Whether lines are missing, the reader tells from the batches of the others (`receipt_log.py`).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.errors import StateError
from tidegate.model.json_values import Json
from tidegate.model.receipts import ReceiptRange, batches_of
from tidegate.redaction import without_secrets
from tidegate.state.store.paths import batch_of
from tidegate.state.store.sealed import checksum
from tidegate.state.store.store import Store

#: Lines of a file. More: fewer files; fewer: less to write with every line.
PER_FILE = 100
#: Spark's readers of a folder, and those for `*.json`, leave out files that are named so.
ASIDE = "_damaged-"
_log = logging.getLogger(__name__)
_SEAL = re.compile(rb',"checksum":"([0-9a-f]{16})"\}\Z')
#: How the line of one batch begins, and that of several.
_ONE, _SUM = re.compile(rb'\{"batch_id":(\d+)[,}]'), re.compile(rb'\{"first_batch_id":(\d+)[,}]')


def sealed_line(line: Mapping[str, Any]) -> bytes:
    """The bytes of a line; `batch_id` or `first_batch_id` must come first in it."""
    content = json.dumps(line, separators=(",", ":"), allow_nan=False)[:-1].encode()
    return content + f',"checksum":"{checksum(content)}"}}'.encode()


def first_batch(sealed: bytes, sums: bool) -> int | None:
    """The first batch of a line of one batch, or of several; None if it is not what was written."""
    seal, first = _SEAL.search(sealed), (_SUM if sums else _ONE).match(sealed)
    if seal is None or first is None or checksum(sealed[: seal.start()]) != seal.group(1).decode():
        return None
    return int(first.group(1))


class SealedLines:
    """The lines of one folder; one writer at a time (see `lock`)."""

    def __init__(self, store: Store, sums: bool = False) -> None:
        self._store = store
        #: Each line covers several batches.
        self._sums = sums
        #: The file that was written last.
        self._newest: str | None = None
        #: What was warned of: somebody may read again and again.
        self._warned: set[tuple[str, int]] = set()

    def put(self, line: Mapping[str, Any]) -> None:
        """Add a line behind all others; that of the same batch gives way, because the batch runs again."""
        first, _ = batches_of(line)
        path = self._path_for(first)
        lines = [one for number, one in self._whole(path) if number < first] if path else []
        if path is None or (len(lines) >= PER_FILE and batch_of(path) != first):
            path, lines = _name(first), []
        self._store.write_atomic(path, b"\n".join([*lines, sealed_line(line)]) + b"\n")
        self._newest = path

    def read(self, wanted: ReceiptRange, first: int = 0, last: int | None = None) -> list[Json]:
        """The lines that lie within these batches and are wanted, oldest first; damaged ones are left out."""
        found: list[list[Json]] = []
        until: int | None = None
        for path in reversed(self.files()):
            begin = batch_of(path) or 0
            if last is not None and begin > last:
                continue
            sound = self._sound(path, until)
            lines = [_plain(one) for _, one in sound]
            until = sound[0][0] if sound else until
            inside = [line for line in lines if first <= batches_of(line)[0] and _ends_by(line, last)]
            taken = [line for line in inside if wanted.takes(line)]
            found.append(taken)
            # Older files have older batches.
            if begin <= max(first, wanted.first_batch) or (inside and not taken):
                break
        return [line for lines in reversed(found) for line in lines]

    def newest(self) -> Json | None:
        """The last line; None if there is none."""
        for path in reversed(self.files()):
            sound = self._sound(path)
            if sound:
                return _plain(sound[-1][1])
        return None

    def kept_from(self, wanted: ReceiptRange, before: int) -> int:
        """The first batch of the oldest file with a line that is wanted, or of the newest, if there is a file
        to delete in front of it; else as before, because files that are not there are lost."""
        files = self.files()
        kept = len(files) - 1
        for number, path in enumerate(files[:-1]):
            if any(wanted.takes(_plain(one)) for _, one in self._sound(path)[-1:]):
                kept = number
                break
        return before if kept < 1 else max(before, batch_of(files[kept]) or 0)

    def copy_to(self, other: SealedLines, last: int) -> None:
        """Copy the lines of batches up to the last one."""
        for path in self.files():
            lines = [one for _, one in self._sound(path) if _ends_by(_plain(one), last)]
            if lines:
                other._store.write_atomic(path, b"\n".join(lines) + b"\n")

    def purge(self, before: int) -> None:
        """Delete all files that begin before this batch."""
        for path in self.files():
            if (batch_of(path) or 0) >= before:
                return
            self._store.delete(path)

    def tidy(self) -> None:
        """Delete what a crash left of writes that were cut short."""
        for path in self._store.list(temporary=True):
            self._store.delete(path)

    def files(self) -> list[str]:
        """All files, oldest first."""
        return sorted(path for path in self._store.list() if batch_of(path) is not None)

    def _path_for(self, first: int) -> str | None:
        """The file for a line that begins with this batch, if there is one already."""
        if self._newest is None or (batch_of(self._newest) or 0) > first:
            older = [path for path in self.files() if (batch_of(path) or 0) <= first]
            self._newest = older[-1] if older else None
        return self._newest

    def _whole(self, path: str) -> list[tuple[int, bytes]]:
        """For the writer: the sound lines of a file; if there are others, the file is set aside as it is."""
        if not self._store.exists(path):
            return []
        data = self._store.read(path)
        sound, damaged = self._split(path, data)
        if damaged:
            aside = f"{ASIDE}{path}-{checksum(data)}"
            self._store.write_atomic(aside, data)
            _log.warning(
                "%d damaged lines of %s/%s are left out: the file as it was is now %s",
                *(damaged, without_secrets(self._store.url), path, aside),
            )
        return sound

    def _sound(self, path: str, until: int | None = None) -> list[tuple[int, bytes]]:
        """For readers: the sound lines of a file. A copy under another name may have those of a newer one,
        which begins with batch `until`."""
        try:
            sound, damaged = self._split(path, self._store.read(path))
        except StateError:  # purged since it was listed
            return []
        if damaged and (path, damaged) not in self._warned:
            self._warned.add((path, damaged))
            _log.warning(
                "%d damaged lines of %s/%s are left out: their bytes are not those that were written",
                *(damaged, without_secrets(self._store.url), path),
            )
        return [(first, one) for first, one in sound if until is None or first < until]

    def _split(self, path: str, data: bytes) -> tuple[list[tuple[int, bytes]], int]:
        """The sound lines of a file by their first batch, and the number of others: also of those that lie
        in the wrong file, or twice in one, because they would count twice."""
        lines = [one for one in data.split(b"\n") if one]
        sound: list[tuple[int, bytes]] = []
        begin = batch_of(path) or 0
        for one in lines:
            first = first_batch(one, self._sums)
            if first is not None and first >= begin:
                sound.append((first, one))
                begin = first + 1
        return sound, len(lines) - len(sound)


def _plain(sealed: bytes) -> Json:
    line: Json = msgspec.json.decode(sealed)
    del line["checksum"]
    return line


def _ends_by(line: Mapping[str, Any], last: int | None) -> bool:
    return last is None or batches_of(line)[1] <= last


def _name(first: int) -> str:
    return f"{first:010d}.json"
