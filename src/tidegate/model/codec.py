"""Frozen dataclasses as JSON and back, by their annotations: one codec for files, reports and control state.

    value ──encode──▶ bytes ──decode──▶ equal value       what tasks send to the driver; files of their own
    value ──encode_exactly──▶ bytes ──decode──▶ …         sealed files: refuses what JSON cannot represent
    value ──to_plain──▶ dicts and lists ──from_plain──▶ … part of a larger JSON document

Tuples become lists, int keys text, and an array its type, shape and base 64 bytes. Reading checks every field
against its annotation and raises ValueError naming the field. Annotations are therefore resolved at run time:
their names must be imported there, not for type checkers alone.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np

#: The format version of checkpoints. Raise it with every change of a written value: files of another version
#: are refused.
FORMAT = 8

T = TypeVar("T")


def encode(value: object) -> bytes:
    """JSON, as fast as possible. A float that is not finite becomes null, which no float field accepts."""
    return _ENCODER.encode(value)


def encode_exactly(value: object) -> bytes:
    """JSON; ValueError or TypeError for NaN, infinities, sets and arrays, which might not decode to equal
    values.
    """
    parts: list[Ready] = []
    mark = secrets.token_hex(8)

    def simpler(value: Any) -> Any:
        if isinstance(value, Ready):
            parts.append(value)
            return f"{mark}{len(parts)}"
        return _fields(value)

    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=simpler).encode()
    for number, part in enumerate(parts, 1):
        text = text.replace(f'"{mark}{number}"'.encode(), part.text, 1)
    return text


class Ready:
    """A part of a value that has neither floats nor arrays, encoded the fast way."""

    def __init__(self, value: object) -> None:
        self.text: bytes = encode(value)


def decode(kind: type[T], text: bytes | str) -> T:
    """The value that was encoded; ValueError for anything else."""
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_restored)
    value: T = _DECODERS[kind].decode(text)
    return value


def to_plain(value: object) -> Any:
    """The value as dicts with text for keys, lists or tuples, text and numbers."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_simpler)


def to_json_values(value: object) -> Any:
    """The same as `to_plain`, as reading its JSON gives it: lists, and no tuples."""
    return json.loads(json.dumps(to_plain(value)))


def from_plain(kind: type[T], plain: object) -> T:
    """The value that `to_plain` was given, also when `plain` has been JSON since; ValueError otherwise."""
    return msgspec.convert(plain, kind, str_keys=True, dec_hook=_restored)


@dataclass(frozen=True)
class _Array:
    """A numpy array in JSON. As bytes, because floats as text are three times as long."""

    dtype: str
    shape: tuple[int, ...]
    base64: bytes


def _simpler(value: Any) -> Any:
    """A replacement for a value that JSON does not support."""
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        text = base64.b64encode(little.tobytes()).decode()
        return {"dtype": little.dtype.str, "shape": value.shape, "base64": text}
    if isinstance(value, float):  # numpy's own
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r:.100}")


def _fields(value: Any) -> Any:
    """A dataclass as its fields: as `asdict`, without its deep copy."""
    if is_dataclass(value):
        return vars(value)
    if isinstance(value, np.ndarray):
        raise TypeError("an array among plain values would not come back as one")
    return _simpler(value)


def _restored(kind: Any, plain: object) -> object:
    """The array that `_simpler` converted, if it has the type that the annotation names."""
    if kind is object:
        return plain
    if get_origin(kind) is not np.ndarray:
        raise TypeError(f"{kind} cannot be read from JSON")
    (wanted,) = get_args(get_args(kind)[1])
    raw = msgspec.convert(plain, _Array)
    if np.dtype(raw.dtype) != np.dtype(wanted):
        raise ValueError(f"Expected an array of {np.dtype(wanted)}, got {raw.dtype}")
    return np.frombuffer(raw.base64, raw.dtype).reshape(raw.shape)


_ENCODER = msgspec.json.Encoder(enc_hook=_simpler)
#: By type, made at first use.
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
