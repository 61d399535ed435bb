"""Sealed JSON: one small file that can prove it is whole, and is still plain JSON to a person.

    {"format":1,"kind":"plan","batch":12,"body":{…},"checksum":"0123456789abcdef"}

The checksum (xxh3, 64 bits) is the last member and covers every byte before it. A file that was cut
short, altered, or is of another kind, batch or format is a `StateError` that names it; it is never read
as something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import xxhash

from tidegate.errors import StateError

#: Raised when an older version of this library could misread what we write.
FORMAT = 1
_SEAL = re.compile(rb',"checksum":"([0-9a-f]{16})"\}\n\Z')


def checksum(data: Any) -> str:
    """The checksum used throughout a checkpoint: xxh3_64 in hex, of anything that shows its bytes."""
    return xxhash.xxh3_64_hexdigest(data)


def seal(kind: str, batch: int, body: Any) -> bytes:
    """The bytes of a sealed file; StateError for a body that is neither plain JSON nor dataclasses of it."""
    document = {"format": FORMAT, "kind": kind, "batch": batch, "body": body}
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False, default=_fields)
    except (TypeError, ValueError) as error:
        raise StateError(
            f"The {kind} of batch {batch} cannot be written as JSON",
            got=error,
            why="A checkpoint holds nothing that a later version could not read",
            do="Use only strings, finite numbers, booleans, None, lists and string-keyed mappings",
        ) from error
    content = text[:-1].encode()
    return content + f',"checksum":"{checksum(content)}"}}\n'.encode()


def unseal(data: bytes, kind: str, batch: int, file: str) -> Any:
    """The body that was sealed; StateError when it is not exactly what was written."""
    found = _SEAL.search(data)
    if found is None:
        raise _damaged(kind, batch, file, f"{len(data)} bytes without a seal at their end")
    content, expected = data[: found.start()], found.group(1).decode()
    actual = checksum(content)
    if actual != expected:
        raise _damaged(kind, batch, file, f"checksum {actual} where {expected} was expected")
    document = json.loads(content + b"}")
    named = (document["format"], document["kind"], document["batch"])
    if named != (FORMAT, kind, batch):
        raise _damaged(kind, batch, file, f"format, kind and batch {named}, not {(FORMAT, kind, batch)}")
    return document["body"]


def _fields(value: Any) -> dict[str, Any]:
    """A dataclass as its fields, a mapping as a dict: as `asdict`, without its deep copy (5× the time)."""
    if is_dataclass(value):
        return vars(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON: {value!r:.100}")


def _damaged(kind: str, batch: int, file: str, found: str) -> StateError:
    return StateError(
        f"The {kind} of batch {batch} is damaged or of another version: {file}",
        got=found,
        why="Going on from it could lose or repeat results",
        do="Restore the file from a backup, or start with a new checkpoint",
    )
