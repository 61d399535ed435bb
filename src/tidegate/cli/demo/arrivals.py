"""A made-up city as files that arrive: one parquet file per stream and tick, moved in as time passes.

All files are written before the first one arrives, so that writing costs the running query nothing. A file
appears whole or not at all: it is prepared on the same file system and renamed into place.
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
    #: All orders, and all tracks of which those of free cabs count; row numbers are ids.
    orders: Side = field(repr=False)
    tracks: Side = field(repr=False)
    fares: NDArray[np.float64] = field(repr=False)
    #: Rows of both streams by tick.
    tick_rows: NDArray[np.int64] = field(repr=False)

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
        tick_rows=np.sum([[len(columns["ts"]) for columns in one] for one in kept.values()], axis=0),
    )


class WaitingFiles(Protocol):
    """Files that wait to arrive, tick by tick."""

    @property
    def ticks(self) -> int: ...

    def files(self, tick: int) -> list[tuple[Path, Path]]:
        """Where the files of a tick wait, and where they arrive."""
        ...


class CityArrivals:
    """Moves one tick's files in per second, on a thread of its own, until all are in or it is stopped.

    The first tick comes at once and the others wait for `go`: a query spends its first batch on starting
    workers and compiling kernels, and a city that did not wait would pile up in front of it.
    """

    def __init__(self, prepared: WaitingFiles, *, seconds_per_tick: float = 1.0) -> None:
        self._prepared = prepared
        self._seconds_per_tick = seconds_per_tick
        self._go, self._stopped = Event(), Event()
        self._thread = Thread(target=self._run, name="tidegate-arrivals", daemon=True)
        #: When each tick came in; only the thread writes it after the first.
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
        """Let the others come; a second call does nothing."""
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
            # Counted from the beginning: a tick that was moved late does not delay all others.
            if self._stopped.wait(max(0.0, began + tick * self._seconds_per_tick - time.monotonic())):
                return
            self._move_in(tick)

    def _move_in(self, tick: int) -> None:
        for waiting, arrived in self._prepared.files(tick):
            # The time of arrival, not of preparation: file sources go by it.
            os.utime(waiting)
            waiting.rename(arrived)
        self.moments.append(time.time())


def ticks_taken(tick_rows: NDArray[np.int64], first: int, rows: int) -> tuple[tuple[int, int], ...]:
    """Which ticks a batch took, and how many rows of each: so many rows from the first one on.

    Files come in order, so it follows from numbers of rows; the first and the last tick perhaps in part.
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
    """Ticks, how long rows of theirs waited for their commit, and how many did.

    `commits`: when each batch was committed, and the rows it took. The first tick is left out: it came while
    everything was cold.
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


def _joined(parts: list[Columns], name: str) -> NDArray[Any]:
    return np.concatenate([part[name] for part in parts])
