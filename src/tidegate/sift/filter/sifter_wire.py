"""The binary form of a sifter; `sifter.py` shows the layout. All numbers round-trip exactly."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.filter.sifter_checks import foreign
from tidegate.sift.regions import Domain, Regions

MAGIC = b"TGSF"
#: Raised when an older version of this library could misread what we write.
FORMAT = 2

_HEAD = struct.Struct("<4sBBHIIQQ3d")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class Wire:
    """The decoded content: `text` is JSON of the non-numeric parts; `share` is z, fairness, sample share."""

    text: str
    axes: int
    regions: Regions
    thresholds: NDArray[np.float64]
    #: Epoch and version.
    order: tuple[int, int]
    share: tuple[float, float, float]


def pack(wire: Wire) -> bytes:
    text, regions = wire.text.encode(), wire.regions
    width = 2 if regions.count < 2**15 else 4
    head = _HEAD.pack(MAGIC, FORMAT, width, wire.axes, regions.count, len(text), *wire.order, *wire.share)
    domain = (regions.domain.low, regions.domain.high)
    arrays: tuple[NDArray[Any], ...] = (*domain, regions.at, regions.axis, regions.children, wire.thresholds)
    kinds = _kinds(wire.axes, regions.count, width)
    body = b"".join(a.astype(kind).tobytes() for a, (kind, _) in zip(arrays, kinds, strict=True))
    content = head + text + body
    return content + _CRC.pack(zlib.crc32(content))


def unpack(data: bytes) -> Wire:
    if not data.startswith(MAGIC) or len(data) < _HEAD.size + _CRC.size:
        raise foreign(
            f"{len(data)} bytes that begin with {data[:4]!r}, not with {MAGIC!r} and a complete header"
        )
    _, form, width, axes, count, text_length, epoch, version, *shares = _HEAD.unpack_from(data)
    # Another format may end differently, so the format is checked before the checksum.
    if form != FORMAT:
        raise foreign(f"format {form} of the binary form, not {FORMAT}")
    content, crc = data[: -_CRC.size], _CRC.unpack(data[-_CRC.size :])[0]
    if zlib.crc32(content) != crc:
        raise foreign(
            f"{len(data)} bytes with checksum {zlib.crc32(content):08x} where {crc:08x} was expected"
        )
    if width not in (2, 4) or not count:
        raise foreign(f"{count} regions with children of {width} bytes")
    kinds = _kinds(axes, count, width)
    begin = _HEAD.size + text_length
    if begin + sum(np.dtype(kind).itemsize * length for kind, length in kinds) != len(content):
        raise foreign(f"{len(data)} bytes, the wrong length for {count} regions over {axes} axes")
    text, arrays = content[_HEAD.size : begin].decode(), []
    for kind, length in kinds:
        arrays.append(np.frombuffer(content, kind, length, begin))
        begin += arrays[-1].nbytes
    low, high, at, axis, children, thresholds = arrays
    regions = Regions(
        Domain(low.astype(np.float64), high.astype(np.float64)),
        axis.astype(np.int32),
        at.astype(np.float64),
        children.astype(np.int32).reshape(-1, 2),
    )
    z, fairness, samples = shares
    order, share = (epoch, version), (z, fairness, samples)
    return Wire(text, axes, regions, thresholds.astype(np.float64), order, share)


def _kinds(axes: int, count: int, width: int) -> tuple[tuple[str, int], ...]:
    """Type and length of each array, in the order of the layout."""
    cuts = count - 1
    bounds, points = ("<f8", axes), ("<f8", cuts)
    return bounds, bounds, points, ("<u2", cuts), (f"<i{width}", 2 * cuts), ("<f8", count)
