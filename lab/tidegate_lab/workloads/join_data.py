"""The two streams that `tidegate bench join` feeds to every engine, and the number that proves a join right.

One batch is one tick of event time and one parquet file per stream, so that "one file of each source per
trigger" gives every engine the same batches:

    batch          0         1         2
    event time  [0, 1) s  [1, 2) s  [2, 3) s      no row is ever late, a watermark can follow with no slack

Left rows are (ts, k, a), right rows (ts, k, b): the event time in whole milliseconds (the finest that every
contender keeps), the key, and a number that is unique in its stream. A row is 24 bytes; where `row_bytes`
asks for more, a text column `pa` or `pb` fills the rest. The same settings give the same rows anywhere.

The checksum of a joined row multiplies `a` and `b`, so partners that were swapped change the sum; it is
written in integer arithmetic that Spark, DuckDB and Flink spell alike, and cannot overflow 64 bits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import FlowError

Numbers = np.ndarray[Any, np.dtype[np.int64]]

#: Event time of the first tick, in milliseconds since the epoch.
START_MS = 1_700_000_000_000
#: A prime near a million: products of two remainders stay far below 2**63.
MODULUS = 1_000_003
#: ts, k and a (or b), eight bytes each.
PLAIN_ROW_BYTES = 24
#: Digits at the head of a payload that the checksum reads back.
PAYLOAD_DIGITS = 9
SIDES = ("left", "right")
#: Name of the column that numbers the rows of a stream, and of its payload.
NUMBER = {"left": "a", "right": "b"}
PAYLOAD = {"left": "pa", "right": "pb"}
#: Payload tails are drawn from this many texts: cheap to make, and no dictionary encoding is used on them.
TAILS = 4096


@dataclass(frozen=True)
class JoinData:
    """What the two streams look like; `rows_per_batch` counts both streams together."""

    rows_per_batch: int
    batches: int
    keys: int
    #: Exponent of the key popularity; 0 means that all keys are equally likely.
    zipf: float = 0.0
    batch_ms: int = 1000
    row_bytes: int = PLAIN_ROW_BYTES
    seed: int = 7

    def __post_init__(self) -> None:
        smallest = PLAIN_ROW_BYTES + PAYLOAD_DIGITS
        plain = self.row_bytes == PLAIN_ROW_BYTES
        for name, good, do in (
            ("rows_per_batch", self.rows_per_batch >= 2, "Give at least one row per stream: 2"),
            ("batches", self.batches >= 1, "Give at least 1"),
            ("keys", self.keys >= 1, "Give at least 1"),
            ("zipf", self.zipf >= 0, "Give 0 (uniform) or more"),
            ("batch_ms", self.batch_ms >= 1, "Give at least 1"),
            ("row_bytes", plain or self.row_bytes >= smallest, f"Give 24, or {smallest} or more"),
        ):
            if not good:
                wrong = f"{name} is too small for a stream"
                raise FlowError(wrong, code="LAB_WORKLOAD_INVALID", got=getattr(self, name), do=do)

    @property
    def payload_bytes(self) -> int:
        return self.row_bytes - PLAIN_ROW_BYTES

    @cached_property
    def popularity(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Cumulative probability of the keys, most popular first."""
        weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -self.zipf
        total = np.cumsum(weights)
        return np.asarray(total / total[-1])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rows_of(data: JoinData, side: str) -> int:
    """Rows that one batch holds of a stream; an odd row goes to the right."""
    left = data.rows_per_batch // 2
    return left if side == "left" else data.rows_per_batch - left


def tick(data: JoinData, side: str, batch: int) -> pa.Table:
    """The rows of one stream in one batch, ordered by time as a source would deliver them."""
    rng = np.random.default_rng([data.seed, batch, SIDES.index(side)])
    count = rows_of(data, side)
    first_ms = START_MS + batch * data.batch_ms
    time_ms = np.sort(rng.integers(first_ms, first_ms + data.batch_ms, count))
    number = np.arange(batch * count, (batch + 1) * count, dtype=np.int64)
    columns = {
        "ts": pa.array(time_ms * 1000, pa.timestamp("us", tz="UTC")),
        "k": pa.array(draw_keys(data, rng, count)),
        NUMBER[side]: pa.array(number),
    }
    if data.payload_bytes:
        columns[PAYLOAD[side]] = payload(number, data.payload_bytes, rng)
    return pa.table(columns)


def draw_keys(data: JoinData, rng: np.random.Generator, count: int) -> Numbers:
    if data.zipf == 0:
        return rng.integers(0, data.keys, count)
    return np.searchsorted(data.popularity, rng.random(count)).astype(np.int64)


def payload(number: Numbers, width: int, rng: np.random.Generator) -> pa.Array:
    """Texts of `width` bytes: digits that depend on the row's number, then a tail that does not compress."""
    head = (number * 48_271 + 11) % 10**PAYLOAD_DIGITS
    powers = 10 ** np.arange(PAYLOAD_DIGITS - 1, -1, -1)
    letters = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    tails = letters[rng.integers(0, 16, (TAILS, width - PAYLOAD_DIGITS))]
    text = np.empty((len(number), width), dtype=np.uint8)
    text[:, :PAYLOAD_DIGITS] = head[:, None] // powers % 10 + ord("0")
    text[:, PAYLOAD_DIGITS:] = tails[rng.integers(0, TAILS, len(number))]
    offsets = np.arange(len(number) + 1, dtype=np.int32) * np.int32(width)
    return pa.StringArray.from_buffers(len(number), pa.py_buffer(offsets), pa.py_buffer(text))


def write(data: JoinData, folder: Path) -> Iterator[int]:
    """Write `folder/left/000000.parquet` and so on, yielding each batch number when its two files are there.

    File sources order files by the time of their last change, which has gaps of its own; so it is set.
    """
    for side in SIDES:
        (folder / side).mkdir(parents=True, exist_ok=True)
    for batch in range(data.batches):
        for side in SIDES:
            path = folder / side / file_name(batch)
            pq.write_table(tick(data, side, batch), path, compression="none", use_dictionary=False)
            os.utime(path, (START_MS // 1000 + batch, START_MS // 1000 + batch))
        yield batch


def file_name(batch: int) -> str:
    return f"{batch:06d}.parquet"


def spark_schema(side: str, payload_bytes: int) -> str:
    text = f", {PAYLOAD[side]} string" if payload_bytes else ""
    return f"ts timestamp, k bigint, {NUMBER[side]} bigint{text}"


def checksum_sql(left_ms: str, right_ms: str, payload_bytes: int) -> str:
    """SQL for the checksum of one joined row; `left_ms` and `right_ms` spell its times as integers."""
    # Flink gives a remainder the type of the modulus: a plain literal would make it 32 bits, and overflow.
    m = f"cast({MODULUS} as bigint)"
    terms = [
        f"(a % {m}) * (b % {m})",
        f"k % {m}",
        f"3 * (({left_ms}) % {m})",
        f"5 * (({right_ms}) % {m})",
    ]
    if payload_bytes:
        for factor, column in ((7, "pa"), (11, "pb")):
            digits = f"cast(substr({column}, 1, {PAYLOAD_DIGITS}) as bigint)"
            terms.append(f"{factor} * (({digits} + length({column})) % {m})")
    return f"({' + '.join(terms)}) % {m}"
