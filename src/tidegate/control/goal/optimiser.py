"""Where to leave work out: so many seconds are to be saved with the least weighted loss, over all offers.

Ours. Every offer is a convex curve, seconds saved against weighted loss. All curves together are one list of
straight pieces; taking them by slope, the flattest first, is the optimum for curves that add up:

    loss ▲   a        ▲   b                      pieces by slope:  a₁ b₁ a₂ b₂ …
         │      ╱     │     ╱                    taken until enough is saved, the last one in part
         │   _╱a₂     │   ╱b₂
         │_-‾ a₁      │_╱b₁
         └──────▶     └──────▶ seconds saved

Pieces that lose nothing (regions that no query asks about, cells without a match) come first by themselves:
what cannot matter is skipped before anything is shed. A piece ends where an output that it costs has lost as
much as it may.

Guarantee: without bounds on losses, and with bounds where no output is fed by two offers of which one feeds
others too, the least weighted loss (checked against a linear program). In all cases: no bound is broken, and
as much is saved as was asked or `short` says what is missing. Losses of one output by several offers are
added up, which is never less than what is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
from tidegate.control.convex_hull import hull

#: Less than this part of a bound is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Curve:
    """An offer in seconds: what is saved at each breakpoint, from 0 upwards, and what each output loses."""

    point: str
    saved: NDArray[np.float64]
    lost: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Allocation:
    """Seconds to save at each point, the share that each output loses by it, and the seconds missing."""

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
    #: What each output loses per second.
    lost: Mapping[str, float]

    def slope(self, weights: Mapping[str, float]) -> float:
        return sum(weights.get(output, 1.0) * share for output, share in self.lost.items())


def allocate(
    curves: Sequence[Curve], weights: Mapping[str, float], loss_max: Mapping[str, float], seconds: float
) -> Allocation:
    """Save so many seconds; outputs without a weight count 1, those without a bound may lose everything."""
    cheapest = _taken(curves, weights, loss_max, seconds)
    if cheapest.short <= 0 or not loss_max:
        return cheapest
    # Bounds are in the way. Whoever uses them least for what it saves may save more than the cheapest.
    outputs = {output for curve in curves for output in curve.lost}
    tightness = {output: 1 / max(loss_max.get(output, np.inf), _ROUNDING) for output in outputs}
    frugal = _taken(curves, tightness, loss_max, np.inf)
    missing, more = cheapest.short, frugal.total - cheapest.total
    # Both keep the bounds, so everything between them does; go no further than must be.
    return _between(cheapest, frugal, min(1.0, missing / more), missing - more) if more > 0 else cheapest


def _taken(
    curves: Sequence[Curve], weights: Mapping[str, float], loss_max: Mapping[str, float], seconds: float
) -> Allocation:
    """The flattest pieces first."""
    pieces = [piece for curve in curves for piece in _pieces(curve, weights)]
    saved = {curve.point: 0.0 for curve in curves}
    lost = {output: 0.0 for curve in curves for output in curve.lost}
    room = {output: loss_max.get(output, np.inf) for output in lost}
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
    """The pieces of a curve; where it is not convex, those of its hull from below."""
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
