"""Sealed JSON: one small file that can prove it is whole, and is still plain JSON to a person.

    {"format":2,"kind":"plan","batch":12,"body":{…},"checksum":"0123456789abcdef"}

The checksum (xxh3, 64 bits) is the last member and covers every byte before it. A file that was cut
short, altered, or is of another kind, batch or format is a `StateError` that names it; it is never read
as something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import xxhash

from tidegate.errors import StateError
from tidegate.model.codec import FORMAT, decode, encode_exactly

T = TypeVar("T")
_SEAL = re.compile(rb',"checksum":"([0-9a-f]{16})"\}\n\Z')


@dataclass(frozen=True)
class _Document:
    """What is sealed. The body is read only once the rest has said what it is."""

    format: int
    kind: str
    batch: int
    body: msgspec.Raw


def checksum(data: Any) -> str:
    """The checksum used throughout a checkpoint: xxh3_64 in hex, of anything that shows its bytes."""
    return xxhash.xxh3_64_hexdigest(data)


def seal(kind: str, batch: int, body: object) -> bytes:
    """The bytes of a sealed file; StateError for a body that is neither plain JSON nor dataclasses of it."""
    document = {"format": FORMAT, "kind": kind, "batch": batch, "body": body}
    try:
        content = encode_exactly(document)[:-1]
    except (TypeError, ValueError) as error:
        raise StateError(
            f"The {kind} of batch {batch} cannot be written as JSON",
            code="CHECKPOINT_VALUE_NOT_JSON",
            got=error,
            why="Checkpoints store JSON",
            do="Use only strings, finite numbers, booleans, None, lists and mappings with string keys in "
            "options and in snapshots of your own strategies",
        ) from error
    return content + f',"checksum":"{checksum(content)}"}}\n'.encode()


def unseal(data: bytes, kind: str, batch: int, file: str, of: type[T]) -> T:
    """The body that was sealed, a value of type `of`; StateError when it is not exactly what was written."""
    found = _SEAL.search(data)
    if found is None:
        raise _damaged(kind, batch, file, f"{len(data)} bytes without a seal at their end")
    content, expected = data[: found.start()], found.group(1).decode()
    actual = checksum(content)
    if actual != expected:
        raise _damaged(kind, batch, file, f"checksum {actual} where {expected} was expected")
    try:
        document = decode(_Document, content + b"}")
        if document.format != FORMAT:
            raise StateError(
                f"The {kind} of batch {batch} was written by another version of Tidegate: {file}",
                code="CHECKPOINT_FORMAT_UNKNOWN",
                got=f"format {document.format}, while this version reads format {FORMAT}",
                do="Run the version that wrote the checkpoint, or start with a new checkpoint",
            )
        if (document.kind, document.batch) != (kind, batch):
            raise _damaged(kind, batch, file, f"a sound {document.kind} of batch {document.batch}")
        return decode(of, bytes(document.body))
    except (ValueError, RecursionError) as error:
        raise _damaged(kind, batch, file, str(error)) from error


def _damaged(kind: str, batch: int, file: str, found: str) -> StateError:
    return StateError(
        f"The {kind} of batch {batch} is damaged: {file}",
        code="CHECKPOINT_FILE_DAMAGED",
        got=found,
        why="Continuing from it could lose or repeat results",
        do="Restore the file from a backup, or start with a new checkpoint",
    )
