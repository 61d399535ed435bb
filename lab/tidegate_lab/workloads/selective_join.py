"""The workload of the selective join paper: two streams whose popular items rotate, one behind the other.

Paper: selective join, experiments: the setup.

Items are the numbers 0 … items - 1. Popularity is Zipf(skew) over ranks, and the ranks rotate: at time T the
most popular item is ⌊items · ((T − shift) mod period) / period⌋, the next popular one is the item after it,
and so on around the circle. Only the right stream is shifted:

    popular item  ▲   ╱ left   ╱ right     A right row meets left rows that are `shift` older. The circle
                  │  ╱        ╱            closes after `period`, so a left row meets right rows that are
                  │ ╱        ╱             `period − shift` older. Both directions have a peak; the one inside
                  └────────────────▶ T     the window is the productive one.

A row is a set (size normal with `size_mean` and `size_deviation`, rounded, at least one item) or, with
`single_values()`, one item. The items of a set are drawn one after the other without repetition: each is
Zipf among those not yet in the set. The paper does not say how repeated draws are treated; this way a set
has the size that was drawn for it.

Arrivals: the number of rows of each step of the rate is exact, their moments are uniform within the step.
Guarantee: the same settings give the same rows; the two streams draw from generators of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError

SECOND_US = 1_000_000
#: Rows times items that are drawn at a time: some tens of megabytes.
_DRAWN_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Steps:
    """A number that changes in steps: pairs (seconds, value), one after the other; the last value stays."""

    levels: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.levels or any(not seconds > 0 for seconds, _ in self.levels):
            raise FlowError(
                "Steps need at least one level, and each must last longer than zero seconds",
                code="LAB_STEPS_INVALID",
                got=self.levels,
                do="Give pairs such as ((60, 100), (15, 500))",
            )

    @property
    def seconds(self) -> float:
        return sum(seconds for seconds, _ in self.levels)

    def at(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value at each of these moments."""
        ends = np.cumsum([lasts for lasts, _ in self.levels])[:-1]
        values: NDArray[np.float64] = np.array([value for _, value in self.levels], np.float64)
        return values[np.searchsorted(ends, seconds, side="right")]


def bursts(*, seconds: float, every: float, lasting: float, calm: float, burst: float) -> Steps:
    """A rate of `calm` that rises to `burst` for `lasting` seconds at the end of every `every` seconds."""
    rounds = max(1, round(seconds / every))
    return Steps(((every - lasting, calm), (lasting, burst)) * rounds)


@dataclass(frozen=True)
class Workload:
    """What the rows look like; more `skew` makes matches depend more on the time between rows."""

    items: int = 100
    skew: float = 0.8
    #: The ranks are back where they were after this time: twice the window of 20 s, as in the paper.
    period_seconds: float = 40.0
    #: How far the right stream is behind; 5/8 of the period in the paper. Steps move the correlation.
    shift_seconds: Steps = Steps(((1.0, 25.0),))
    size_mean: float = 5.0
    size_deviation: float = 1.0
    seed: int = 7

    def __post_init__(self) -> None:
        for name, good in (
            ("items", self.items >= 1),
            ("skew", self.skew >= 0),
            ("period_seconds", self.period_seconds > 0),
            ("size_mean", self.size_mean >= 1),
            ("size_deviation", self.size_deviation >= 0),
            ("seed", self.seed >= 0),
        ):
            if not good:
                raise FlowError(
                    f"Workload({name}=…) is too small",
                    code="LAB_WORKLOAD_INVALID",
                    got=getattr(self, name),
                    do="At least one item and sets of one; skew, deviation and seed from 0 on",
                )


def single_values(*, skew: float = 0.8, seed: int = 7, shift_seconds: Steps | None = None) -> Workload:
    """The paper's workload for equality joins: one value a row out of 5000."""
    shift = shift_seconds or Workload.shift_seconds
    return Workload(5000, skew, shift_seconds=shift, size_mean=1.0, size_deviation=0.0, seed=seed)


@dataclass(frozen=True)
class Rows:
    """One stream: ascending times, and the items of row k at items[bounds[k]:bounds[k + 1]]."""

    times_us: NDArray[np.int64]
    bounds: NDArray[np.int64]
    items: NDArray[np.int64]


def draw(workload: Workload, rates: tuple[Steps, Steps]) -> tuple[Rows, Rows]:
    """The left and the right stream, for as long as their rates say."""
    left, right = (
        _draw_side(workload, steps, side, np.random.default_rng([workload.seed, side]))
        for side, steps in enumerate(rates)
    )
    return left, right


def top_item(workload: Workload, side: int, seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """The most popular item of the left (0) or right (1) stream at each of these moments."""
    behind = workload.shift_seconds.at(seconds) if side == 1 else 0.0
    turn = np.mod(seconds - behind, workload.period_seconds) / workload.period_seconds
    # A turn of almost one, times the number of items, may round up to it.
    return np.minimum((turn * workload.items).astype(np.int64), workload.items - 1)


def _draw_side(workload: Workload, rate: Steps, side: int, random: np.random.Generator) -> Rows:
    seconds = _arrivals(rate, random)
    sizes = np.rint(random.normal(workload.size_mean, workload.size_deviation, seconds.size))
    sizes = np.clip(sizes, 1, workload.items).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ranks = _single_ranks if sizes.max(initial=1) == 1 else _set_ranks
    turned = ranks(workload, sizes, random) + np.repeat(top_item(workload, side, seconds), sizes)
    return Rows((seconds * SECOND_US).astype(np.int64), bounds, turned % workload.items)


def _arrivals(rate: Steps, random: np.random.Generator) -> NDArray[np.float64]:
    edges = np.concatenate([[0.0], np.cumsum([seconds for seconds, _ in rate.levels])])
    parts = [
        np.sort(random.uniform(begin, end, round((end - begin) * level)))
        for (begin, end), (_, level) in zip(pairwise(edges), rate.levels, strict=True)
    ]
    return np.concatenate(parts)


def _popularity(workload: Workload) -> NDArray[np.float64]:
    shares = np.arange(1, workload.items + 1, dtype=np.float64) ** -workload.skew
    return np.asarray(shares / shares.sum())


def _single_ranks(
    workload: Workload, sizes: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    ladder = np.cumsum(_popularity(workload))
    ladder[-1] = 1.0
    return np.searchsorted(ladder, random.random(sizes.size), side="right").astype(np.int64)


def _set_ranks(
    workload: Workload, sizes: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """A race: every item finishes after an exponential time with its popularity as rate; the first ones win.

    That is the same as drawing one after the other without repetition, and needs no loop over draws.
    """
    popularity = _popularity(workload).astype(np.float32)
    most = int(sizes.max())
    rows_at_once = max(1, _DRAWN_AT_ONCE // workload.items)
    winners = []
    for begin in range(0, sizes.size, rows_at_once):
        part = sizes[begin : begin + rows_at_once]
        finish = random.standard_exponential((part.size, workload.items), np.float32) / popularity
        first = np.argpartition(finish, min(most, workload.items) - 1, axis=1)[:, :most]
        order = np.argsort(np.take_along_axis(finish, first, axis=1), axis=1)
        first = np.take_along_axis(first, order, axis=1)
        winners.append(first[np.arange(most) < part[:, None]])
    return np.concatenate(winners).astype(np.int64)
