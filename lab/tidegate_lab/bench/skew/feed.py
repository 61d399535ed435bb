"""Skewed streams as files: one pair of files per batch, keys drawn as in the routing papers.

The number of rows is chosen by skew, so that batches give about the same number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate_lab.reproduce.taxis import TaxiStreams, taxi_batches
from tidegate_lab.workloads.skew import (
    GROUPS,
    Batch,
    ZipfStreams,
    city_streams,
    jumping_batches,
    with_pairs,
    zipf_batches,
)

SIDES, WAITING = ("left", "right"), "waiting"
SCHEMA = "ts timestamp, k long, n long"
KEYS = 100_000
TAXIS = "taxis"
#: Batches that a row stays in the window, either way.
WINDOW_BATCHES = 3
ROWS_MIN, ROWS_MAX = 500, 300_000
_SECOND = 1_000_000
_START_US = 1_700_000_000 * _SECOND


@dataclass(frozen=True)
class Workload:
    """Streams by name: `zipf-1.0`; `G12`, a group of the FastJoin paper (Zipf 1 on the left, 2 on the right);
    `jump` (a hot key that changes every so many batches); `city`; `taxis`, which are real ones."""

    name: str
    #: Pairs that a batch is to give, about.
    pairs: float = 4e6
    batches: int = 14
    seed: int = 0
    #: `jump`: batches until another key is hot.
    jump: int = 20
    #: `taxis`: the folder that has them. They have as many pairs as they have.
    real: Path | None = None

    def __post_init__(self) -> None:
        if self.name == TAXIS:
            self._taxis()  # Files that are not there are told of before anything runs.

    def batch_codes(self) -> Iterator[Batch]:
        if self.name == "jump":
            return jumping_batches(self._zipf((1.5, 1.5)), self.jump)
        if self.name == "city":
            city = city_streams(batches=self.batches, seed=self.seed)
            return zipf_batches(with_pairs(city, self.pairs, 2 * WINDOW_BATCHES))
        if self.name == TAXIS:
            return taxi_batches(self._taxis())
        if self.name in GROUPS:
            return zipf_batches(self._zipf(GROUPS[self.name]))
        exponent = float(self.name.removeprefix("zipf-"))
        return zipf_batches(self._zipf((exponent, exponent)))

    def _taxis(self) -> TaxiStreams:
        if self.real is None:
            raise FlowError(
                f"{TAXIS} are real ones", code="LAB_REAL_DATA_MISSING", do="Name the folder that has them"
            )
        return TaxiStreams(self.real, batches=self.batches, seed=self.seed)

    def _zipf(self, exponents: tuple[float, float]) -> ZipfStreams:
        one = ZipfStreams(exponents, KEYS, (1000, 1000), self.batches, self.seed)
        rows = with_pairs(one, self.pairs, 2 * WINDOW_BATCHES).rows[0]
        return replace(one, rows=(min(ROWS_MAX, max(ROWS_MIN, rows)),) * 2)


def write(root: Path, batches: Iterable[Batch]) -> list[int]:
    """The files of all batches, which wait; rows per batch."""
    rows = []
    for number, codes in enumerate(batches):
        for side, keys in zip(SIDES, codes, strict=True):
            waiting = root / WAITING / side
            waiting.mkdir(parents=True, exist_ok=True)
            (root / side).mkdir(exist_ok=True)
            pq.write_table(_table(keys, number), waiting / _name(number))
        rows.append(sum(map(len, codes)))
    return rows


def arrive(root: Path, batches: Iterable[int]) -> None:
    """Let the files of some batches come in."""
    for number in batches:
        for side in SIDES:
            (root / WAITING / side / _name(number)).rename(root / side / _name(number))


def put_back(root: Path) -> None:
    """All files wait again, for another round."""
    for side in SIDES:
        for file in (root / side).glob("*.parquet"):
            file.rename(root / WAITING / side / file.name)


def _name(batch: int) -> str:
    return f"{batch:04d}.parquet"


def _table(keys: NDArray[np.uint64], batch: int) -> pa.Table:
    begin = _START_US + batch * _SECOND
    times = begin + np.arange(len(keys), dtype=np.int64) * _SECOND // max(1, len(keys))
    numbers = np.arange(len(keys), dtype=np.int64) + batch * ROWS_MAX
    kind = pa.timestamp("us", tz="UTC")
    return pa.table({"ts": pa.array(times, kind), "k": keys.view(np.int64), "n": numbers})
