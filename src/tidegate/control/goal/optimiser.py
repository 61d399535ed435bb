"""Optimiser: the levels with the least weighted loss at which the next batch fits its time budget.

Ours. Every shed option is a convex curve, seconds saved against weighted loss (`shed_options.py`, costs from
`load_model.py`). All curves together are one list of straight pieces; taking them by slope, the flattest
first, is optimal for curves that add up (`allocate`):

    loss ▲   a        ▲   b                      pieces by slope:  a₁ b₁ a₂ b₂ …
         │      ╱     │     ╱                    taken until enough is saved, the last one in part
         │   _╱a₂     │   ╱b₂
         │_-‾ a₁      │_╱b₁
         └──────▶     └──────▶ seconds saved

Pieces without loss (regions that no query covers, cells without a match) come first. A piece ends where an
output that it affects reaches its bound on loss.

Options in sequence (a drop in front of a join) save less together than the sum. So `PlanForecast.fit` chooses
levels as if savings added up, predicts the batch with them, and asks for the missing seconds again until it
fits.

Guarantee of `allocate`: without bounds on losses, and with bounds where no output is fed by two options of
which one feeds others too, the least weighted loss (checked against a linear program). Always: no bound is
broken, and the seconds asked for are saved or `short` says how many are missing. Losses of one output by
several options are summed, an upper bound. Guarantee of `fit`: a function of its arguments; with `deeper` no
option eases, with `easier` none deepens, so that a slightly slow batch does not shift work between options.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from sys import float_info
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.convex_hull import hull
from tidegate.control.goal.control_tuning import TUNING, LevelTuning
from tidegate.control.goal.cost_model import PARTS, Effort
from tidegate.control.goal.load_model import LoadModel
from tidegate.control.goal.shed_options import Levels, ShedOption

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Fit:
    """Levels, and the seconds by which the batch is still too long."""

    levels: dict[str, float]
    short: float


class PlanForecast:
    """Predicts one batch under any levels."""

    def __init__(
        self,
        model: LoadModel,
        ahead: Mapping[str, Effort],
        options: Sequence[ShedOption],
        weights: Mapping[str, float],
        max_loss: Mapping[str, float],
        tuning: LevelTuning = TUNING.level,
    ) -> None:
        self.options: dict[str, ShedOption] = {option.point: option for option in options}
        self.weights, self.max_loss, self.tuning = weights, max_loss, tuning
        self.fixed: float = model.fixed
        #: By operator: seconds for its rows, comparisons, outputs and bytes without shedding.
        self._full = {name: model.rates(name) * effort.parts for name, effort in ahead.items()}
        self._saved = {point: self._savings(option) for point, option in self.options.items()}

    def times(self, part: float) -> PlanForecast:
        """The same for a batch with this multiple of the rows."""
        other = copy(self)
        other._full = {name: part * one for name, one in self._full.items()}
        other._saved = {point: part * one for point, one in self._saved.items()}
        return other

    @property
    def nothing(self) -> dict[str, float]:
        """The levels at which nothing is shed."""
        return {point: option.nothing for point, option in self.options.items()}

    @property
    def deepest(self) -> dict[str, float]:
        """The deepest level of every option, whatever is lost; outputs that allow it are shut off."""
        return {
            point: option.nothing if option.whole and self._bounded(option) else float(option.levels[-1])
            for point, option in self.options.items()
        }

    def seconds(self, levels: Levels) -> float:
        """Predicted time of the batch."""
        return self.fixed + self.spent(levels, self._full)

    def spent(self, levels: Levels, operators: Collection[str]) -> float:
        """Row-dependent seconds of some of its operators."""
        left = {name: np.ones(PARTS) for name in self._full}
        for point, option in self.options.items():
            for name, kept in option.kept_at(levels[point]).items():
                if name in left:
                    left[name] = left[name] * kept
        return sum(float(self._full[name] @ left[name]) for name in left if name in operators)

    @property
    def operators(self) -> frozenset[str]:
        """All operators with work to do."""
        return frozenset(self._full)

    def lost(self, levels: Levels) -> dict[str, float]:
        """Upper bound of the share of each output's results that is lost."""
        lost: dict[str, float] = {}
        for point, option in self.options.items():
            for output, share in option.lost_at(levels[point]).items():
                lost[output] = min(1.0, lost.get(output, 0.0) + share)
        return lost

    def loss(self, levels: Levels) -> float:
        """The weighted loss."""
        return sum(self.weights.get(output, 1.0) * share for output, share in self.lost(levels).items())

    def saved(self, point: str, level: float) -> float:
        """Seconds that one option saves if it is the only one."""
        option = self.options[point]
        rising = option.levels if option.levels[-1] > option.levels[0] else -option.levels
        at = level if option.levels[-1] > option.levels[0] else -level
        return float(np.interp(at, rising, self._saved[point]))

    def level(self, point: str, saved: float) -> float:
        """The level at which one option saves this many seconds."""
        seconds, levels = self._saved[point], self.options[point].levels
        rises = np.append(True, np.diff(seconds) > 0)
        return float(np.interp(saved, seconds[rises], levels[rises]))

    def fit(self, target: float, deeper: Levels | None = None, easier: Levels | None = None) -> Fit:
        """The levels with the least loss at which the batch fits the target."""
        found = self._fit(target, deeper, easier)
        shut: dict[str, float] = {}
        while found.short > self.tuning.close * target:
            output = self._cheapest_to_shut(found.levels, shut)
            if output is None:
                break
            shut[output] = 1.0
            found = self._fit(target, deeper, easier, shut)
        return found

    def _fit(
        self, target: float, deeper: Levels | None, easier: Levels | None, shut: Levels | None = None
    ) -> Fit:
        start = {**self.nothing, **(deeper or {}), **(shut or {})}
        begun = {point: self.saved(point, level) for point, level in start.items()}
        curves = [
            self._curve(point, begun[point], self.saved(point, easier[point]) if easier else np.inf)
            for point, option in self.options.items()
            if not option.whole
        ]
        lost = self.lost(start)
        room = {output: max(0.0, most - lost.get(output, 0.0)) for output, most in self.max_loss.items()}
        levels, needed = start, self.seconds(start) - target
        for _ in range(self.tuning.steps):
            found = allocate(curves, self.weights, room, needed)
            levels = {
                **start,
                **{
                    point: self.level(point, begun[point] + more)
                    for point, more in found.saved.items()
                    if more > 0
                },
            }
            over = self.seconds(levels) - target
            if over <= self.tuning.close * target or found.short > 0:
                break
            needed += over
        return Fit(levels, max(0.0, self.seconds(levels) - target))

    def _curve(self, point: str, begin: float, end: float) -> Curve:
        """What an option can still save, between the first and the last level allowed."""
        seconds, option = self._saved[point], self.options[point]
        end = max(begin, min(end, float(seconds[-1])))
        at = np.unique(np.concatenate(([begin], seconds[(seconds > begin) & (seconds < end)], [end])))
        rises = np.append(True, np.diff(seconds) > 0)
        lost = {
            output: np.interp(at, seconds[rises], shares[rises]) for output, shares in option.lost.items()
        }
        return Curve(point, at - at[0], {output: shares - shares[0] for output, shares in lost.items()})

    def _savings(self, option: ShedOption) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        saved = np.zeros(option.levels.size)
        for name, kept in option.kept.items():
            if name in self._full:
                saved = saved + (1 - kept) @ self._full[name]
        return np.maximum.accumulate(saved)

    def _cheapest_to_shut(self, levels: Levels, shut: Levels) -> str | None:
        """Of the outputs that may be shut off, the one with the least loss per second saved."""
        best, price = None, np.inf
        for point, option in self.options.items():
            if not option.whole or point in shut or self._bounded(option):
                continue
            gained = self.seconds(levels) - self.seconds({**levels, point: float(option.levels[-1])})
            asked = sum(self.weights.get(output, 1.0) for output in option.lost)
            if gained > 0 and asked / gained < price:
                best, price = point, asked / gained
        return best

    def _bounded(self, option: ShedOption) -> bool:
        return any(self.max_loss.get(output, 1.0) < 1 for output in option.lost)


@dataclass(frozen=True, eq=False)
class Curve:
    """A shed option in seconds: the saving at each breakpoint, from 0 upwards, and each output's loss."""

    point: str
    saved: NDArray[np.float64]
    lost: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Allocation:
    """Seconds to save by each option, the share that each output loses, and the seconds missing."""

    saved: Mapping[str, float]
    lost: Mapping[str, float]
    short: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.saved.values())


@dataclass(frozen=True)
class _Piece:
    """A straight piece of a curve."""

    point: str
    seconds: float
    #: Loss of each output per second saved.
    lost: Mapping[str, float]

    def slope(self, weights: Mapping[str, float]) -> float:
        return sum(weights.get(output, 1.0) * share for output, share in self.lost.items())


def allocate(
    curves: Sequence[Curve], weights: Mapping[str, float], max_loss: Mapping[str, float], seconds: float
) -> Allocation:
    """Save this many seconds. Outputs without a weight count 1; those without a bound may lose everything."""
    cheapest = _taken(curves, weights, max_loss, seconds)
    if cheapest.short <= 0 or not max_loss:
        return cheapest
    # Bounds stop the cheapest order. The order that uses the bounds least per second may save more.
    outputs = {output for curve in curves for output in curve.lost}
    tightness = {output: 1 / max(max_loss.get(output, np.inf), float_info.epsilon) for output in outputs}
    frugal = _taken(curves, tightness, max_loss, np.inf)
    missing, more = cheapest.short, frugal.total - cheapest.total
    # Both keep the bounds, so every mixture does; take the one nearest to the cheapest that suffices.
    return _between(cheapest, frugal, min(1.0, missing / more), missing - more) if more > 0 else cheapest


def _taken(
    curves: Sequence[Curve], weights: Mapping[str, float], max_loss: Mapping[str, float], seconds: float
) -> Allocation:
    """Take the flattest pieces first."""
    pieces = [piece for curve in curves for piece in _pieces(curve, weights)]
    saved = {curve.point: 0.0 for curve in curves}
    lost = {output: 0.0 for curve in curves for output in curve.lost}
    room = {output: max_loss.get(output, np.inf) for output in lost}
    ended: set[str] = set()
    needed = max(0.0, seconds)
    for piece in sorted(pieces, key=lambda piece: piece.slope(weights)):
        if needed <= 0:
            break
        if piece.point in ended:
            continue
        most = min(
            (room[output] / share for output, share in piece.lost.items() if share > 0), default=np.inf
        )
        taken = min(piece.seconds, needed, max(0.0, most))
        if most <= piece.seconds:
            ended.add(piece.point)
        needed -= taken
        saved[piece.point] += taken
        for output, share in piece.lost.items():
            lost[output] += taken * share
            room[output] -= taken * share
    return Allocation(saved, lost, max(0.0, needed))


def _pieces(curve: Curve, weights: Mapping[str, float]) -> list[_Piece]:
    """The pieces of a curve; if it is not convex, those of its lower hull."""
    total = np.zeros(curve.saved.size)
    for output, lost in curve.lost.items():
        total += weights.get(output, 1.0) * lost
    corners = hull(curve.saved, total)
    found = []
    for here, there in pairwise(corners):
        seconds = float(curve.saved[there] - curve.saved[here])
        rises = {output: float(one[there] - one[here]) / seconds for output, one in curve.lost.items()}
        found.append(_Piece(curve.point, seconds, rises))
    return found


def _between(one: Allocation, other: Allocation, part: float, short: float) -> Allocation:
    def mixed(a: Mapping[str, float], b: Mapping[str, float]) -> dict[str, float]:
        return {name: a[name] + part * (b[name] - a[name]) for name in a}

    return Allocation(mixed(one.saved, other.saved), mixed(one.lost, other.lost), max(0.0, short))
