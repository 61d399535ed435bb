"""Pick-ups of a real city as data, and squares on its map as queries.

The rows are Uber's pick-ups in New York, April 2014, by latitude and longitude (not part of this project). A
seed is a day: the sample is taken from it, and the whole next day is what comes then. Queries are squares of
the paper's sides, as shares of the map: around Lyft's pick-ups of the same city (people who ask where others
drive), around Uber's own of another day (queries lie where data is), or anywhere on the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis
from tidegate.sift.queries.query_set import QuerySet
from tidegate.sift.regions import Domain
from tidegate_lab.reproduce.real_files import require
from tidegate_lab.workloads.box_queries import queries_of_boxes

FILES = ("nyc_uber_apr14.parquet", "nyc_lyft_2014.parquet")
#: Around whom queries lie.
LYFT, UBER, ANYWHERE = "lyft", "uber", "anywhere"
CENTRES = (LYFT, UBER, ANYWHERE)
#: The part of New York that nearly all pick-ups are in, with both airports: latitude and longitude.
MAP = Domain(np.array([40.60, -74.05]), np.array([40.90, -73.75]))
_DAY_US = 86_400_000_000
#: Whole days that a seed can choose from; each has a next one, and one far away.
_DAYS = 28
_AWAY = 14


@dataclass(frozen=True)
class Pickups:
    """Where the files lie, around what queries are, and the day."""

    folder: Path
    queries: str = LYFT
    query_count: int = 1000
    query_sides: tuple[float, float] = (0.005, 0.01)
    alphas: tuple[float, float] = (1.0, 2.0)
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            self.folder,
            FILES,
            "The pick-ups",
            why="Their terms are not stated, so they do not come with Tidegate",
            made_of="with columns ts, lat and lon",
            instead="the paper's own workload is generated",
        )
        if self.queries not in CENTRES:
            raise FlowError(
                "Unknown centres of queries",
                code="LAB_CENTRES_UNKNOWN",
                got=self.queries,
                do="Use one of " + ", ".join(CENTRES),
            )


def draw_pickups(
    pickups: Pickups, sample_rows: int
) -> tuple[Domain, QuerySet, NDArray[np.float64], NDArray[np.float64]]:
    """The map, the queries, a sample of a day, and all rows of the next day."""
    random = np.random.default_rng([pickups.seed, CENTRES.index(pickups.queries)])
    day = pickups.seed % _DAYS
    today, tomorrow = _day(pickups.folder, day), _day(pickups.folder, day + 1)
    rows = random.choice(today, min(sample_rows, len(today)), replace=False)
    return MAP, _queries(pickups, random, _day(pickups.folder, (day + _AWAY) % _DAYS)), rows, tomorrow


def _queries(pickups: Pickups, random: np.random.Generator, other_day: NDArray[np.float64]) -> QuerySet:
    count = pickups.query_count
    if pickups.queries == ANYWHERE:
        centre = random.uniform(MAP.low, MAP.high, (count, 2))
    else:
        centres = other_day if pickups.queries == UBER else _positions(pickups.folder, FILES[1])[1]
        centre = centres[random.integers(0, len(centres), count)]
    half = random.uniform(*pickups.query_sides, centre.shape) / 2 * (MAP.high - MAP.low)
    return queries_of_boxes(
        (Axis("lat"), Axis("lon")),
        np.maximum(centre - half, MAP.low),
        np.minimum(centre + half, MAP.high),
        alphas=random.uniform(*pickups.alphas, count),
    )


def _day(folder: Path, day: int) -> NDArray[np.float64]:
    times, positions = _positions(folder, FILES[0])
    begin = int(times[0]) + day * _DAY_US
    first, last = np.searchsorted(times, [begin, begin + _DAY_US])
    return positions[first:last]


@lru_cache(maxsize=4)
def _positions(folder: Path, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times in microseconds, and (latitude, longitude) of the pick-ups on the map, in the order of time."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / name, columns=["ts", "lat", "lon"])
    times = table["ts"].cast("int64").to_numpy()
    where = np.stack([table[side].to_numpy().astype(np.float64) for side in ("lat", "lon")], axis=1)
    there = ((where >= MAP.low) & (where < MAP.high)).all(axis=1)
    order = np.argsort(times[there], kind="stable")
    return times[there][order], where[there][order]
