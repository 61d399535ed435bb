"""A synthetic city: orders and taxi tracks over a grid of cells, skewed, bursty and slightly out of order.

Generates numpy arrays only: no files, no clock, no Spark.

    arrival   |--------- tick 0 ---------|--------- tick 1 ---------|
    event       o  o <- up to disorder_us before its arrival, never after it

Popularity falls off from the centre of the grid as Zipf(zipf) over the cells by distance, the same for both
streams. A burst of `burst_seconds` multiplies both rates by `burst_factor`, first at `burst_first_seconds`
and then every `burst_every_seconds`.

Guarantee: rows are in arrival order, and an event time is at most `disorder_us` below the highest event time
before it in its stream, so a lateness of `disorder_us` loses nothing. The same settings give the same rows.

· · · ┊ · · ·      The grid has four by four districts. A cell is close to itself and to the cells one step
· ▒ · ┊ · · ·      up, down, left and right of it within its district.
▒ █ ▒ ┊ · · ▒
· ▒ · ┊ · ▒ █
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

#: Districts in a row, and rows of them.
DISTRICTS_WIDE = 4


@dataclass(frozen=True)
class CityGrid:
    """Cells numbered row by row. Called with two columns of cells, it returns which pairs are close."""

    cells: int

    @property
    def width(self) -> int:
        return ceil(sqrt(self.cells))

    def district(self, cell: NDArray[np.int64]) -> NDArray[np.int64]:
        block = ceil(self.width / DISTRICTS_WIDE)
        row, column = np.divmod(cell, self.width)
        return np.asarray(row // block * DISTRICTS_WIDE + column // block, np.int64)

    def __call__(self, left: Any, right: Any) -> NDArray[np.bool_]:
        """Whether cells are at most one step apart, in any district."""
        (row, column), (other_row, other_column) = (
            np.divmod(np.asarray(one), self.width) for one in (left, right)
        )
        return np.asarray(np.abs(row - other_row) + np.abs(column - other_column) <= 1)

    def close(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(self(left, right) & (self.district(left) == self.district(right)))

    def around(self, cell: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The close cells by direction; -1 if there is none."""
        for step in (0, -1, 1, -self.width, self.width):
            other = cell + step
            inside = (0 <= other) & (other < self.cells)
            yield np.where(inside & self.close(cell, np.where(inside, other, cell)), other, -1)


Columns: TypeAlias = Mapping[str, NDArray[Any]]

SECOND_US = 1_000_000
#: Monday, 3 March 2025, 17:00 UTC: an arbitrary moment in the past.
EVENING_US = 1_741_021_200_000_000

# One random stream per kind of row, so that a change of one rate does not redraw the other stream.
_ORDERS, _TRACKS, _GRID = 1, 2, 3


@dataclass(frozen=True)
class City:
    """Settings of a city; more skew (`zipf`) and larger bursts increase the load."""

    cells: int = 10_000
    zipf: float = 0.8
    orders_per_second: float = 1_000.0
    tracks_per_second: float = 3_000.0
    burst_factor: float = 3.0
    burst_every_seconds: float = 30.0
    burst_first_seconds: float = 12.0
    burst_seconds: float = 6.0
    disorder_us: int = 1_500_000
    cabs: int = 4_000
    occupied_share: float = 0.7
    start_us: int = EVENING_US
    seed: int = 7

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not value >= least:
                raise FlowError(
                    f"City({name}=…) must be at least {least}",
                    code="DEMO_SETTING_INVALID",
                    got=value,
                    do=f"Give a larger {name}",
                )
        if not 0 <= self.occupied_share <= 1:
            raise FlowError(
                "City(occupied_share=…) must be between 0 and 1",
                code="DEMO_SETTING_INVALID",
                got=self.occupied_share,
                do="Give a number from 0 to 1",
            )

    @property
    def grid(self) -> CityGrid:
        return CityGrid(self.cells)


_LEAST = {
    "cells": 1,
    "zipf": 0,
    "orders_per_second": 0,
    "tracks_per_second": 0,
    "burst_factor": 0,
    "burst_every_seconds": 1,
    "burst_first_seconds": 0,
    "burst_seconds": 0,
    "disorder_us": 0,
    "cabs": 1,
    "seed": 0,
}


@dataclass(frozen=True)
class Tick:
    """What arrives in one tick: rows in arrival order, event times as datetime64[us] in UTC."""

    number: int
    orders: Columns
    tracks: Columns


def ticks(city: City, seconds: int) -> Iterator[Tick]:
    """The city's first `seconds` seconds, one tick a second."""
    ladder = _popularity(city)
    cells = _cells_by_rank(city)
    order_id = track_id = 0
    for number in range(seconds):
        draw = np.random.default_rng([city.seed, _ORDERS, number])
        orders = _orders(city, draw, number, order_id, cells, ladder)
        draw = np.random.default_rng([city.seed, _TRACKS, number])
        tracks = _tracks(city, draw, number, track_id, cells, ladder)
        order_id += len(orders["order_id"])
        track_id += len(tracks["track_id"])
        yield Tick(number, orders, tracks)


def burst_at(city: City, second: float) -> float:
    """The factor on the rates at this second of the stream."""
    since = second - city.burst_first_seconds
    bursting = since >= 0 and since % city.burst_every_seconds < city.burst_seconds
    return city.burst_factor if bursting else 1.0


def _orders(
    city: City, draw: np.random.Generator, tick: int, first: int, cells: NDArray[Any], ladder: NDArray[Any]
) -> Columns:
    n = int(draw.poisson(city.orders_per_second * burst_at(city, tick)))
    times, cell = _event_times(city, draw, tick, n), _visit(draw, n, cells, ladder)
    return {
        "order_id": np.arange(first, first + n, dtype=np.int64),
        "ts": times,
        "cell": cell,
        "district": city.grid.district(cell),
        "fare": np.round(2.5 + draw.gamma(2.0, 6.0, n), 2),
    }


def _tracks(
    city: City, draw: np.random.Generator, tick: int, first: int, cells: NDArray[Any], ladder: NDArray[Any]
) -> Columns:
    n = int(draw.poisson(city.tracks_per_second * burst_at(city, tick)))
    times, cell = _event_times(city, draw, tick, n), _visit(draw, n, cells, ladder)
    return {
        "track_id": np.arange(first, first + n, dtype=np.int64),
        "ts": times,
        "cell": cell,
        "district": city.grid.district(cell),
        "cab": draw.integers(0, city.cabs, n),
        "occupied": draw.random(n) < city.occupied_share,
    }


def _event_times(city: City, draw: np.random.Generator, tick: int, n: int) -> NDArray[np.datetime64]:
    """Sorted arrivals inside the tick, each minus a random delay of at most `disorder_us`."""
    arrivals = np.sort(draw.integers(0, SECOND_US, n)) + tick * SECOND_US
    delays = draw.integers(0, city.disorder_us + 1, n)
    return (city.start_us + arrivals - delays).astype("datetime64[us]")


def _visit(draw: np.random.Generator, n: int, cells: NDArray[Any], ladder: NDArray[Any]) -> NDArray[np.int64]:
    chosen: NDArray[np.int64] = cells[np.searchsorted(ladder, draw.random(n), side="right")]
    return chosen


def _popularity(city: City) -> NDArray[np.float64]:
    """Cumulated Zipf shares by rank; the last step is exactly 1, so that every draw falls on a cell."""
    shares = np.arange(1, city.cells + 1, dtype=np.float64) ** -city.zipf
    ladder = np.cumsum(shares / shares.sum())
    ladder[-1] = 1.0
    return ladder


def _cells_by_rank(city: City) -> NDArray[np.int64]:
    """Cells from the busiest to the quietest: by distance from the centre, ties broken by the seed."""
    row, column = np.divmod(np.arange(city.cells), city.grid.width)
    middle = (city.grid.width - 1) / 2
    jitter = np.random.default_rng([city.seed, _GRID]).random(city.cells)
    return np.argsort(np.hypot(row - middle, column - middle) + jitter).astype(np.int64)
