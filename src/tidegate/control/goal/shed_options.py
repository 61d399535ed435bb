"""Shed options: for each mechanism, the work saved and the results lost at each level.

Ours: each paper has one mechanism with its own parameter. Here all have one form, so that `optimiser.py` can
compare them:

    join      probe ratio, from 1 down    cells, least productive first (`join/selective/cells.py`)
    match     admit ratio, from 1 down    regions, least needed first (`sift/construct/configuration.py`)
    window    sample ratio, from 1 down   rows of estimated windows (`control/actuators/sampling.py`)
    windows   drop ratio, from 0 up       whole windows, 𝓑 / (𝓑 + 1) at most (`window/drop/window_drop.py`)
    output    0 or 1                      the output is shut off as a whole: the last resort

An option is a list of breakpoints. Each has a level, the part of every operator's effort that is left
(operators downstream have less work, too), and the share of every output's results that is lost. That share,
times the output's weight, is the common unit of loss.

Guarantee: lost shares and remaining effort are convex in the level, as far as the learnt values are right:
cells, regions and windows are shed in the order of value per cost. Only a random drop in front of a join
saves more by the first rows than by the last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.actuators.paper_rate import FRACTION_MIN
from tidegate.control.goal.control_tuning import TUNING
from tidegate.control.goal.cost_model import PARTS
from tidegate.sift.construct.configuration import configure
from tidegate.window.drop.drop_cost import dropped_rows
from tidegate.window.drop.network import Network
from tidegate.window.drop.placement import DropPlacement
from tidegate.window.drop.window_drop import share_max

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: By shed option: probe, admit, sample or drop ratio, or 1 for an output that is shut off.
Levels = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class ShedOption:
    """What one mechanism can shed, from nothing (first level) to the most it can (last level)."""

    point: str
    #: In the mechanism's own unit, monotone.
    levels: NDArray[np.float64]
    #: By operator: the parts of its rows, comparisons, outputs and bytes that are left, (levels, 4).
    kept: Mapping[str, NDArray[np.float64]]
    #: By output: the share of its results that is lost.
    lost: Mapping[str, NDArray[np.float64]]
    #: All or nothing: there is no level between the first and the last.
    whole: bool = False

    @property
    def nothing(self) -> float:
        """The level at which nothing is shed."""
        return float(self.levels[0])

    def done(self, level: float) -> float:
        """Distance of a level from the deepest one: 1 if nothing is shed."""
        first, last = self.levels[0], self.levels[-1]
        return float((level - last) / (first - last))

    def level(self, done: float) -> float:
        """The level with this `done`."""
        first, last = self.levels[0], self.levels[-1]
        return float(last + done * (first - last))

    def kept_at(self, level: float) -> dict[str, NDArray[np.float64]]:
        step, part = self._place(level)
        return {name: one[step] + part * (one[step + 1] - one[step]) for name, one in self.kept.items()}

    def lost_at(self, level: float) -> dict[str, float]:
        step, part = self._place(level)
        return {
            name: float(one[step] + part * (one[step + 1] - one[step])) for name, one in self.lost.items()
        }

    def _place(self, level: float) -> tuple[int, float]:
        """The breakpoint before a level, and the fraction of the way to the next."""
        falling = self.levels[-1] < self.levels[0]
        rising = -self.levels if falling else self.levels
        at = float(np.interp(-level if falling else level, rising, np.arange(rising.size)))
        step = min(int(at), rising.size - 2)
        return step, at - step


def cells_option(
    point: str,
    outputs: Mapping[str, float],
    values: NDArray[np.float64],
    work: NDArray[np.float64],
    behind: Mapping[str, float] | None = None,
) -> ShedOption:
    """A join that skips cells: `values` are matches per comparison, `work` the cost of each cell.

    `outputs`: the share of each output's results that this join produces; `behind`: of each operator's rows.
    """
    order = np.argsort(-values, kind="stable")
    costs, found = work[order], (values * work)[order]
    if not found.sum() > 0:
        return rate_option(point, outputs, 1.0, behind)
    levels = np.append(1.0, 1 - np.cumsum(costs[::-1]) / costs.sum())
    left = np.append(1.0, 1 - np.cumsum(found[::-1]) / found.sum())
    # The last cell is never skipped as a whole, and cells without work add no breakpoint.
    steps = np.append(True, np.diff(levels) < 0) & (levels > FRACTION_MIN)
    last = float(left[steps][-1] * FRACTION_MIN / levels[steps][-1])
    levels, left = np.append(levels[steps], FRACTION_MIN), np.append(left[steps], last)
    return _join(point, outputs, levels, left, behind or {})


def rate_option(
    point: str,
    outputs: Mapping[str, float],
    bend: float,
    behind: Mapping[str, float] | None = None,
    drops_rows: bool = False,
) -> ShedOption:
    """A join known only by its rate: a probe ratio r finds r ** bend of the matches.

    `drops_rows`: the share √r of the rows enters, so that handling and storing them costs less, too.
    """
    levels = np.geomspace(1.0, FRACTION_MIN, TUNING.level.steps)
    rows = np.sqrt(levels) if drops_rows else None
    return _join(point, outputs, levels, levels ** min(1.0, bend), behind or {}, rows)


def regions_option(
    point: str,
    outputs: Mapping[str, float],
    region_qos: NDArray[np.float64],
    frequencies: NDArray[np.float64],
    nonempty: NDArray[np.bool_],
    fairness: float,
    behind: Mapping[str, float] | None = None,
) -> ShedOption:
    """A match behind a sifter of these regions: the loss is that of QoS at the best thresholds for each
    ratio.
    """
    levels = np.linspace(1.0, FRACTION_MIN, TUNING.level.steps)
    thresholds = [configure(region_qos, frequencies, nonempty, z, fairness) for z in levels.tolist()]
    lost = np.array([float(region_qos @ one) for one in thresholds])
    worth = float(region_qos.sum())
    left = 1 - lost / worth if worth > 0 else levels
    return _match(point, outputs, levels, left, np.minimum(1.0, lost), behind or {})


def even_option(
    point: str, outputs: Mapping[str, float], behind: Mapping[str, float] | None = None
) -> ShedOption:
    """A match without measurements: all rows are alike."""
    levels = np.array([1.0, FRACTION_MIN])
    return _match(point, outputs, levels, levels, 1 - levels, behind or {})


def sample_option(point: str, outputs: Mapping[str, float]) -> ShedOption:
    """Windows estimated from a sample of their rows; the information kept is proportional to the sample
    ratio.

    The variance of an estimate falls with the sample size. All windows are still written, and every row is
    read up to the sampling decision.
    """
    levels, all_of_it = np.array([1.0, FRACTION_MIN]), np.ones(2)
    own = np.stack([all_of_it, levels, all_of_it, all_of_it], axis=1)
    return ShedOption(point, levels, {point: own}, _shares(1 - levels, outputs))


def windows_option(
    point: str, outputs: Collection[str], max_gap: int, going: Mapping[str, float], made: Collection[str] = ()
) -> ShedOption:
    """Windows that may be dropped: `going` is the part of each operator's rows dropped per unit of drop
    ratio.

    `made`: the operators that produce the windows; results of a dropped window are not computed even if its
    rows are needed elsewhere.
    """
    levels = np.array([0.0, share_max(max_gap)])
    kept = {}
    for name, part in going.items():
        left = 1 - part * levels
        kept[name] = np.stack([left, left, 1 - levels if name in made else left, left], axis=1)
    return ShedOption(point, levels, kept, dict.fromkeys(outputs, levels))


def rows_going(network: Network, drop: DropPlacement) -> dict[str, float]:
    """By node: the part of its rows that a drop removes, per unit of drop ratio."""
    going: dict[str, float] = {}
    for arrow in drop.behind:
        part = min(1.0, dropped_rows(arrow.window, network.grid_us(arrow.parent)))
        going[arrow.child] = going.get(arrow.child, 0.0) + part / len(network.by_name[arrow.child].parents)
    return going


def shut_option(output: str, own: Collection[str]) -> ShedOption:
    """An output that may be shut off, with the operators that serve no other output."""
    gone = np.array([[1.0] * PARTS, [0.0] * PARTS])
    levels = np.array([0.0, 1.0])
    return ShedOption(output, levels, dict.fromkeys(own, gone), {output: levels}, whole=True)


def _join(
    point: str,
    outputs: Mapping[str, float],
    levels: NDArray[np.float64],
    left: NDArray[np.float64],
    behind: Mapping[str, float],
    rows: NDArray[np.float64] | None = None,
) -> ShedOption:
    # Every row is stored, whatever is skipped, unless rows are dropped.
    own = np.stack([np.ones_like(levels) if rows is None else rows, levels, left, levels], axis=1)
    return ShedOption(point, levels, {point: own, **_less(left, behind)}, _shares(1 - left, outputs))


def _match(
    point: str,
    outputs: Mapping[str, float],
    levels: NDArray[np.float64],
    left: NDArray[np.float64],
    lost: NDArray[np.float64],
    behind: Mapping[str, float],
) -> ShedOption:
    # The sifter reads every row; those that pass are tried.
    own = np.stack([np.ones_like(levels), levels, left, levels], axis=1)
    return ShedOption(point, levels, {point: own, **_less(left, behind)}, _shares(lost, outputs))


def _less(left: NDArray[np.float64], behind: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """Operators downstream have less work by the share of their rows that is missing."""
    return {
        name: np.repeat((1 - share * (1 - left))[:, None], PARTS, axis=1) for name, share in behind.items()
    }


def _shares(lost: NDArray[np.float64], outputs: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    return {name: share * lost for name, share in outputs.items()}
