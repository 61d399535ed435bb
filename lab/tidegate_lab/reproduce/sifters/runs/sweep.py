"""What contenders do along one setting: seeds by places on an axis, curves and gains out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate_lab.plots.plots import Curve
from tidegate_lab.reproduce.experiment import Line, Options
from tidegate_lab.reproduce.sifters.claims.readings import kinds, named
from tidegate_lab.reproduce.sifters.runs.combinations import (
    COLOURS,
    CONTENDERS,
    PAPER,
    RANDOM,
    Measured,
    Setting,
    measured,
)
from tidegate_lab.reproduce.sifters.runs.scene import Source
from tidegate_lab.workloads.sifters import Workload

#: What is read off a contender.
Read = Callable[[Measured], float]

#: Fresh rows of a quick run.
QUICK_FRESH_ROWS = 20_000
#: Loss of QoS by loss of completeness: as in Table I, and one for one. With U[1, 2] random dropping has a QoS
#: around zero where the load is high, and gains over it say nothing; figures that tell those use α = 1.
TABLE_1, ONE = (1.0, 2.0), (1.0, 1.0)
ALPHA_NAMES = {TABLE_1: "α ~ U[1, 2]", ONE: "α = 1"}


def taken(one: Measured) -> float:
    """The overall QoS, after the server has dropped what it cannot take."""
    return one.qos


def all_that_passes(one: Measured) -> float:
    """The overall QoS, were the server to take whatever passes."""
    return one.qos_unbounded


@dataclass(frozen=True)
class Position:
    """A place on an axis: what is drawn there, and how sifters are built."""

    at: float
    source: Source
    setting: Setting = field(default_factory=Setting)


def setting_of(options: Options, **changes: Any) -> Setting:
    """Table I, but for these."""
    setting = Setting(fresh_rows=QUICK_FRESH_ROWS) if options.quick else Setting()
    return replace(setting, **changes)


def found(
    positions: Sequence[Position],
    name: str,
    seeds: Sequence[int],
    read: Read = taken,
) -> NDArray[np.float64]:
    """(seed, position) → what is read off, by default the overall QoS."""
    return np.array([[read(at_seed(position, name, seed)) for position in positions] for seed in seeds])


def at_seed(position: Position, name: str, seed: int) -> Measured:
    """One contender at one position."""
    return measured(replace(position.source, seed=seed), position.setting, name)


def run_all(positions: Iterable[Position], names: Sequence[str], seeds: Sequence[int]) -> None:
    """Everything that will be asked for, in an order in which each scene is drawn only once.

    Positions that share a scene should follow each other.
    """
    positions = list(positions)
    for seed in seeds:
        for position in positions:
            for name in names:
                at_seed(position, name, seed)


def with_alphas(position: Position, alphas: tuple[float, float]) -> Position:
    """The same place, other QoS functions."""
    return replace(position, source=replace(position.source, alphas=alphas))


def best_qos(positions: Sequence[Position], seeds: Sequence[int], read: Read = taken) -> NDArray[np.float64]:
    """(seed, position) → the QoS of whichever of the paper's partitioners is best there."""
    return np.asarray(np.max([found(positions, name, seeds, read) for name in PAPER], axis=0))


def best_gains(
    positions: Sequence[Position], seeds: Sequence[int], read: Read = taken
) -> NDArray[np.float64]:
    """(seed, position) → the best of the paper's partitioners over random dropping."""
    return np.asarray(best_qos(positions, seeds, read) / found(positions, RANDOM, seeds, read))


def gains(positions: Sequence[Position], name: str, seeds: Sequence[int]) -> NDArray[np.float64]:
    """(seed, position) → one contender over random dropping."""
    return np.asarray(found(positions, name, seeds) / found(positions, RANDOM, seeds))


def medians(
    positions: Sequence[Position], seeds: Sequence[int], names: Sequence[str] = CONTENDERS
) -> dict[str, NDArray[np.float64]]:
    """Contender → its median QoS at each position."""
    return {name: np.median(found(positions, name, seeds), axis=0) for name in names}


def qos_curves(positions: Sequence[Position], seeds: Sequence[int]) -> list[Curve]:
    """A curve per contender: medians over the seeds."""
    places = [position.at for position in positions]
    return [
        Curve(name.upper(), places, values.tolist(), "points", colour=COLOURS[name])
        for name, values in medians(positions, seeds).items()
    ]


def title(source: Source) -> str:
    """As the paper names combinations, data first; and the reading."""
    if isinstance(source, Workload):
        return f"{kinds((source.data, source.queries))}{named(source)}"
    return f"pick-ups, queries {source.queries}"


def percent(ratios: NDArray[np.float64]) -> list[float]:
    """Medians over the seeds, as a change in per cent."""
    return [float(one) for one in 100 * (np.median(ratios, axis=0) - 1)]


def percents_line(
    figure: str,
    claim: str,
    paper: str,
    changes: Sequence[float],
    *,
    agrees: bool | None = None,
    digits: int = 0,
) -> Line:
    """What a setting does to a change in per cent as it grows."""
    measured = " → ".join(f"{one:+.{digits}f}" for one in changes) + " %"
    return Line(figure, claim, paper, measured, unit="%", samples=tuple(changes), agrees=agrees)
