"""Arrivals of a scenario: how many rows each stream has brought by any moment.

    steady  ███████████   step  ▁▁▁▁█████▁▁   burst     ▁▁██▁▁██▁▁██   ramp      ▁▂▃▄▅▆▇█▅▂
    on/off  ██__██__██_   drift ▄▄▅▅▅▆▆▆▇▇▇   sawtooth  ▁▃▅█▁▃▅█▁▃▅█   recorded  ▃▅▂▆▃▇▂▄▁▅

Rates are multiples of what fits a batch without shedding. `recorded` is an excerpt of a recorded arrival
profile where the folder that `TIDEGATE_DATA` names has one, and a generated profile with as heavy bursts
where it has not: scenarios of this kind then differ, and a report says which one was played.

Guarantee: the same seed and the same folder give the same rows, whatever a controller does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.commands.real_data import DATA_VARIABLE

#: Length of a scenario, and the grain of its clock.
SECONDS, GRAIN = 120.0, 0.02
#: Cells of the clock.
CELLS = round(SECONDS / GRAIN)
#: Files with the columns `ts` and `n`, and how many of their seconds are one second of a scenario.
_RECORDED = {"rate_twitter_2021.parquet": 1, "rate_nasa_http_1995.parquet": 60}
#: A recorded rate steps where the mean of so many seconds differs by this factor from that of those before.
_SPAN_SECONDS, _STEPS_BY = 3.0, 2.0
#: Rows of the least busy excerpt of a profile, relative to the mean.
_BUSY = 0.5


@dataclass(frozen=True, eq=False)
class RateShape:
    """A rate over time."""

    kind: str
    #: By second of the scenario: `rates[k]` holds from `k / 10` seconds on.
    tenths: NDArray[np.float64]
    #: Seconds at which the rate jumps.
    steps: tuple[float, ...] = ()
    #: Spans in which it does not change.
    steady: tuple[tuple[float, float], ...] = ()
    #: Where the numbers come from: a formula, a generated profile or a file.
    source: str = "formula"


def shape(kind: str, random: np.random.Generator) -> RateShape:
    """A rate of this kind."""
    calm, rush = float(random.uniform(0.35, 0.8)), float(random.uniform(1.3, 3.0))
    return _SHAPES[kind](kind, calm, rush, random)


def cumulative(
    rate: RateShape, rows_per_second: float, jitter: float, random: np.random.Generator
) -> NDArray[np.int64]:
    """Rows that arrived by the end of each cell of the clock; the first number is 0."""
    tenths = rate.tenths * np.maximum(0.0, 1 + jitter * random.standard_normal(rate.tenths.size))
    cells = np.repeat(tenths, CELLS // tenths.size) * rows_per_second * GRAIN
    return np.concatenate(([0], np.floor(np.cumsum(cells)))).astype(np.int64)


def _at() -> NDArray[np.float64]:
    return np.arange(round(10 * SECONDS)) / 10


def _steady(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    rate = float(random.choice([calm, 0.95, rush]))
    return RateShape(kind, np.full(_at().size, rate), steady=((0.0, SECONDS),))


def _step(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    up, down = float(random.uniform(25, 40)), float(random.uniform(75, 90))
    return _between(kind, calm, rush, [(up, down)])


def _burst(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    lasts = float(random.uniform(12, 18))
    return _between(kind, calm, 1.3 * rush, [(at, at + lasts) for at in (22.0, 56.0, 90.0)])


def _on_off(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    period = float(random.uniform(30, 40))
    starts = np.arange(period / 2, SECONDS, period).tolist()
    return _between(kind, 0.0, rush, [(at, at + period / 2) for at in starts])


def _between(kind: str, calm: float, rush: float, spans: list[tuple[float, float]]) -> RateShape:
    at = _at()
    rates = np.full(at.size, calm)
    edges = [0.0]
    for begin, end in spans:
        rates[(begin <= at) & (at < end)] = rush
        edges += [begin, min(end, SECONDS)]
    ends = [*edges[1:], SECONDS]
    return RateShape(kind, rates, tuple(edges[1:]), tuple(zip(edges, ends, strict=True)))


def _ramp(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    top = float(random.uniform(60, 80))
    corners = [0.0, 20.0, top, top + 20, SECONDS]
    rates = np.interp(_at(), corners, [calm, calm, rush, rush, calm])
    return RateShape(kind, rates, steady=((0.0, 20.0), (top, top + 20)))


def _sawtooth(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    period = float(random.uniform(20, 40))
    rates = calm + (rush - calm) * (_at() % period) / period
    return RateShape(kind, rates, tuple(np.arange(period, SECONDS, period).tolist()))


def _drift(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    first, last = random.permutation([calm, rush]).tolist()
    return RateShape(kind, np.interp(_at(), [0, SECONDS], [first, last]))


def _recorded(kind: str, calm: float, rush: float, random: np.random.Generator) -> RateShape:
    known = profiles()
    if known:
        source, counts = known[int(random.integers(len(known)))]
        first = int(random.choice(_busy(counts)))
        seconds = counts[first : first + round(SECONDS)].astype(np.float64)
    else:
        source, seconds = "generated", _cascade(random)
    mean = max(float(seconds.mean()), 1e-9)
    rates = np.minimum(4.0, seconds / mean * random.uniform(0.6, 1.8))
    return RateShape(kind, np.repeat(rates, 10), _jumps(rates), source=source)


def _busy(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where excerpts of a profile may begin: not in an outage, nor where hardly any row came."""
    until = np.append(0, np.cumsum(counts))
    sums = until[round(SECONDS) :] - until[: -round(SECONDS)]
    return np.flatnonzero(sums >= _BUSY * sums.mean())


def _cascade(random: np.random.Generator) -> NDArray[np.float64]:
    """Bursts at all time scales: the mass of a span is split unevenly, again and again."""
    mass = np.ones(1)
    while mass.size < SECONDS:
        left = np.clip(0.5 + 0.07 * random.standard_normal(mass.size), 0.1, 0.9)
        mass = np.stack([2 * mass * left, 2 * mass * (1 - left)], axis=1).ravel()
    return mass[: round(SECONDS)]


def _jumps(rates: NDArray[np.float64]) -> tuple[float, ...]:
    """Seconds at which a profile jumps."""
    span = round(_SPAN_SECONDS)
    means = np.convolve(rates, np.ones(span) / span, mode="valid")
    before, after = means[:-span], means[span:]
    ratio = np.maximum(before, after) / np.maximum(np.minimum(before, after), 1e-6)
    found: list[float] = []
    for at in (np.flatnonzero(ratio > _STEPS_BY) + span).tolist():
        # One jump is seen from several seconds.
        if not found or at > found[-1] + span:
            found.append(float(at))
    return tuple(found)


@cache
def profiles() -> list[tuple[str, NDArray[np.int64]]]:
    """Recorded profiles: rows by second of a scenario."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return []
    import duckdb

    found = []
    for name, seconds in _RECORDED.items():
        path = Path(folder) / name
        if path.exists():
            cells = f"epoch_us(ts) // {1_000_000 * seconds} AS at, sum(n)::BIGINT AS n"
            rows = duckdb.execute(f"SELECT {cells} FROM read_parquet(?) GROUP BY 1", [str(path)]).fetchnumpy()
            found.append((name, np.bincount(rows["at"] - rows["at"].min(), rows["n"]).astype(np.int64)))
    return found


_SHAPES: dict[str, Callable[[str, float, float, np.random.Generator], RateShape]] = {
    "steady": _steady,
    "step": _step,
    "burst": _burst,
    "ramp": _ramp,
    "sawtooth": _sawtooth,
    "on/off": _on_off,
    "drift": _drift,
    "recorded": _recorded,
}
#: All kinds; scenarios take turns.
KINDS = tuple(_SHAPES)
