"""Real taxis as input: pick-ups and vacant cars of San Francisco, by cell of 500 m.

Paper: FastJoin, section VI-A, where DiDi's orders and tracks of Chengdu are joined by place. In their stead:
the Cabspotting traces (San Francisco, June 2008; research use, not part of this project), which have the same
two streams. An order is also a track row of the same car, so orders meet vacant cars only.

Three days are cut into equal batches, which are replayed as one a second. The rows are what they are, so a
seed is another hash function: other cells meet in one instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import cos, radians
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.reproduce.real_files import require
from tidegate_lab.workloads.skew import Batch, key_codes

FILES = ("sf_taxi_orders.parquet", "sf_taxi_tracks.parquet")
_METRES_PER_DEGREE = 111_320.0
_LATITUDE = 37.78


@dataclass(frozen=True)
class TaxiStreams:
    """Where the files lie, how large a cell is, and into how many batches the days are cut."""

    folder: Path
    cell_metres: float = 500.0
    batches: int = 72
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            self.folder,
            FILES,
            "The taxi traces",
            why="They may be used for research only, so they do not come with Tidegate",
            made_of="with columns ts, lat, lon and, for tracks, occupied",
            instead="a city is generated",
        )


def taxi_batches(streams: TaxiStreams) -> Iterator[Batch]:
    """Codes of the cells of orders (left) and of vacant cars (right), batch by batch."""
    sides = _sides(streams.folder, streams.cell_metres)
    begin, end = int(sides[1][0][0]), int(sides[1][0][-1])
    edges = np.linspace(begin, end + 1, streams.batches + 1).astype(np.int64)
    cuts = [np.searchsorted(times, edges) for times, _ in sides]
    codes = [key_codes(cells, streams.seed) for _, cells in sides]
    for batch in range(streams.batches):
        left, right = (side[cut[batch] : cut[batch + 1]] for side, cut in zip(codes, cuts, strict=True))
        yield left, right


@lru_cache(maxsize=2)
def _sides(
    folder: Path, cell_metres: float
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Times in microseconds and cells of orders and of vacant cars, in the order of time."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    orders = pq.read_table(folder / FILES[0], columns=["ts", "lat", "lon"])
    tracks = pq.read_table(folder / FILES[1], columns=["ts", "lat", "lon", "occupied"])
    vacant = tracks.filter(pc.invert(tracks["occupied"]))
    return _times_and_cells(orders, cell_metres), _times_and_cells(vacant, cell_metres)


def _times_and_cells(rows: Any, metres: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    times: NDArray[np.int64] = rows["ts"].cast("int64").to_numpy()
    latitude, longitude = (rows[name].to_numpy().astype(np.float64) for name in ("lat", "lon"))
    north = np.floor(latitude / (metres / _METRES_PER_DEGREE)).astype(np.int64)
    east = np.floor(longitude / (metres / (_METRES_PER_DEGREE * cos(radians(_LATITUDE))))).astype(np.int64)
    order = np.argsort(times, kind="stable")
    # Both numbers are well below 2**31, so that a cell is one number.
    return times[order], (north[order] << 32) + east[order]
