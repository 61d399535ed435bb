"""The synthetic city as arriving files: one Parquet file per stream and tick, moved in over time.

All files are written before the first one arrives, so that writing does not slow the query. A file is renamed
into place on the same file system, so it appears as a whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidegate.cli.demo.answers import Side
from tidegate.cli.demo.city import City, Columns, ticks

STREAMS = ("orders", "tracks")


@dataclass(frozen=True)
class PreparedCity:
    """A city on disk, not yet arrived."""

    root: Path
    seconds: int
    #: All orders, and all tracks, of which those of free cabs take part; row numbers are ids.
    orders: Side = field(repr=False)
    tracks: Side = field(repr=False)
    fares: NDArray[np.float64] = field(repr=False)
    #: Rows by tick, of orders and of tracks.
    stream_rows: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)

    @property
    def tick_rows(self) -> NDArray[np.int64]:
        """Rows of both streams by tick."""
        return self.stream_rows[0] + self.stream_rows[1]

    @property
    def rows(self) -> int:
        return len(self.orders.key) + len(self.tracks.key)

    def arrived(self, stream: str) -> Path:
        """The directory that a query reads."""
        return self.root / stream

    def file(self, stream: str, tick: int) -> tuple[Path, Path]:
        """Where a tick's file waits, and where it arrives."""
        name = f"tick-{tick:05d}.parquet"
        return self.root / "waiting" / stream / name, self.arrived(stream) / name

    @property
    def ticks(self) -> int:
        return self.seconds

    def files(self, tick: int) -> list[tuple[Path, Path]]:
        return [self.file(stream, tick) for stream in STREAMS]


def prepare(city: City, seconds: int, root: Path) -> PreparedCity:
    """Write every tick's files into `root/waiting`; `root/orders` and `root/tracks` start empty."""
    for stream in STREAMS:
        (root / "waiting" / stream).mkdir(parents=True)
        (root / stream).mkdir()
    kept: dict[str, list[Columns]] = {stream: [] for stream in STREAMS}
    for tick in ticks(city, seconds):
        for stream, columns in (("orders", tick.orders), ("tracks", tick.tracks)):
            path = root / "waiting" / stream / f"tick-{tick.number:05d}.parquet"
            pq.write_table(_table(columns), path)
            kept[stream].append(columns)
    return PreparedCity(
        root,
        seconds,
        orders=_side(kept["orders"], counts=np.ones(sum(len(c["ts"]) for c in kept["orders"]), dtype=bool)),
        tracks=_side(kept["tracks"], counts=~_joined(kept["tracks"], "occupied")),
        fares=_joined(kept["orders"], "fare"),
        stream_rows=(_tick_rows(kept["orders"]), _tick_rows(kept["tracks"])),
    )


class WaitingFiles(Protocol):
    """Files that wait to arrive, tick by tick."""

    @property
    def ticks(self) -> int: ...

    def files(self, tick: int) -> list[tuple[Path, Path]]:
        """Where the files of a tick wait, and where they arrive."""


class CityArrivals:
    """Moves one tick's files in per second, on its own thread, until all are in or it is stopped.

    The first tick arrives at once and the others wait for `go`: the first batch of a query starts workers and
    compiles kernels, and rows would pile up meanwhile.
    """

    def __init__(self, prepared: WaitingFiles, *, seconds_per_tick: float = 1.0) -> None:
        self._prepared = prepared
        self._seconds_per_tick = seconds_per_tick
        self._go, self._stopped = Event(), Event()
        self._thread = Thread(target=self._run, name="tidegate-arrivals", daemon=True)
        #: When each tick arrived; after the first only the thread writes it.
        self.moments: list[float] = []

    @property
    def arrived(self) -> int:
        """Ticks that are in."""
        return len(self.moments)

    @property
    def finished(self) -> bool:
        return self.arrived == self._prepared.ticks

    def start(self) -> None:
        self._move_in(0)
        self._thread.start()

    def go(self) -> None:
        """Let the other ticks arrive; a second call does nothing."""
        self._go.set()

    def stop(self) -> None:
        """No file arrives after this returns."""
        self._stopped.set()
        self._go.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        self._go.wait()
        began = time.monotonic()
        for tick in range(1, self._prepared.ticks):
            # Counted from the start, so a late tick does not delay the others.
            if self._stopped.wait(max(0.0, began + tick * self._seconds_per_tick - time.monotonic())):
                return
            self._move_in(tick)

    def _move_in(self, tick: int) -> None:
        for waiting, arrived in self._prepared.files(tick):
            # File sources order files by modification time, so it must be the time of arrival.
            os.utime(waiting)
            waiting.rename(arrived)
        self.moments.append(time.time())


def ticks_taken(tick_rows: NDArray[np.int64], first: int, rows: int) -> tuple[tuple[int, int], ...]:
    """The ticks that a batch took and the rows of each: `rows` rows from the tick `first` on.

    Files are read in order, so counts of rows are enough; the first and the last tick may be partial.
    """
    until = np.cumsum(tick_rows)
    begin, end = np.searchsorted(until, [first, first + rows - 1], side="right") if rows else (0, -1)
    return tuple(
        (tick, int(min(until[tick], first + rows) - max(until[tick] - tick_rows[tick], first)))
        for tick in range(int(begin), min(int(end), tick_rows.size - 1) + 1)
    )


def row_waits(
    tick_rows: NDArray[np.int64], moments: Sequence[float], commits: Iterable[tuple[float, int]]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Ticks, how long their rows waited for the commit, and the number of these rows.

    `commits`: when each batch was committed, and the rows it took. The first tick is left out because the
    workers were cold.
    """
    waits, so_far = [], 0
    for done, rows in commits:
        taken = ticks_taken(tick_rows, so_far, rows)
        waits += [(tick, done - moments[tick], count) for tick, count in taken if tick]
        so_far += rows
    ticks, seconds, counts = np.array(waits, np.float64).reshape(-1, 3).T
    return ticks.astype(np.int64), seconds, counts.astype(np.int64)


def _table(columns: Columns) -> pa.Table:
    """An Arrow table; times are instants (UTC), not wall-clock readings without a zone."""
    utc = pa.timestamp("us", tz="UTC")
    arrays = {name: pa.array(v, type=utc if name == "ts" else None) for name, v in columns.items()}
    return pa.table(arrays)


def _side(parts: list[Columns], counts: NDArray[np.bool_]) -> Side:
    return Side(_joined(parts, "cell"), _joined(parts, "ts").astype(np.int64), counts)


def _tick_rows(parts: list[Columns]) -> NDArray[np.int64]:
    return np.array([len(columns["ts"]) for columns in parts], np.int64)


def _joined(parts: list[Columns], name: str) -> NDArray[Any]:
    return np.concatenate([part[name] for part in parts])
