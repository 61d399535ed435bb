"""A generated network of joins, matches and windows, with true costs and the true loss of shedding.

The controller does not see these. It gets measured work and times, and shed options
(`control/goal/shed_options.py`) with errors as large as those of learnt ones.

    rows ─┬─▶ join     cells of two windows, a few of them productive              probe ratio r
          ├─▶ match    regions of a data space, of different value                 admit ratio z
          └─▶ windows  that slide; at most 𝓑 missing in a row                      drop ratio p

One second of input at rate 1 takes one second of work, overhead included; operators share it at random. Rates
are multiples of that: at 2 a join makes four times the comparisons, once its windows are full.

Guarantee: the same seed gives the same network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.shed_options import ShedOption, cells_option, regions_option, windows_option

if TYPE_CHECKING:
    from numpy.typing import NDArray

JOIN, MATCH, WINDOWS = "join", "match", "windows"
KINDS = (JOIN, MATCH, WINDOWS)
#: Rows a second at a rate of 1.
ROWS = 10_000
#: Basic windows of a side, and regions of a sifter.
_CELLS, _REGIONS = 10, 32
#: By kind: the parts of an operator's time that go to rows, comparisons and outputs.
_PARTS = {JOIN: (0.15, 0.65, 0.2), MATCH: (0.1, 0.8, 0.1), WINDOWS: (0.9, 0.0, 0.1)}


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator, its output of the same name, and its one knob."""

    name: str
    kind: str
    #: Of joins: how long rows are stored. Comparisons grow with what is stored.
    window_seconds: float
    #: Results per row.
    outputs_per_row: float
    #: Seconds per row, comparison, output and byte.
    rates: NDArray[np.float64]
    #: What levels really leave and lose, and what a controller believes of it.
    truth: ShedOption
    believed: ShedOption

    def effort(self, rows: float, stored: float) -> Effort:
        """Of a batch of so many rows, where so many are stored, with nothing left out."""
        if self.kind != JOIN:
            return Effort(rows, rows if self.kind == MATCH else 0.0, rows * self.outputs_per_row)
        full = stored / (ROWS * self.window_seconds)
        return Effort(rows, rows * full * self.window_seconds, rows * full * self.outputs_per_row)


@dataclass(frozen=True)
class GoalNetwork:
    """Operators side by side on one machine."""

    operators: tuple[Operator, ...]
    #: By output.
    weights: dict[str, float]
    overhead: float

    @property
    def offers(self) -> list[ShedOption]:
        """As they are believed."""
        return [operator.believed for operator in self.operators]


def generated(seed: int, belief: float = 0.2) -> GoalNetwork:
    """One or two operators of each kind; `belief`: by how much what is learnt of losses is off."""
    random = np.random.default_rng([seed, 17])
    names = [f"{kind}{number}" for kind in KINDS for number in range(1, 2 + int(random.random() < 0.5))]
    overhead = float(random.uniform(0.1, 0.3))
    shares = random.dirichlet(np.full(len(names), 3.0)) * (1 - overhead)
    operators = tuple(
        _operator(name, name.rstrip("12"), float(share), random, belief)
        for name, share in zip(names, shares, strict=True)
    )
    weights = {
        name: float(weight) for name, weight in zip(names, random.choice([1, 2, 5], len(names)), strict=True)
    }
    return GoalNetwork(operators, weights, overhead)


def _operator(name: str, kind: str, seconds: float, random: np.random.Generator, belief: float) -> Operator:
    window = float(random.choice([5.0, 10.0, 20.0])) if kind == JOIN else 0.0
    per_row = float(random.uniform(0.05, 0.5))
    truth, believed = _OFFERS[kind](name, random, belief)
    made = Effort(ROWS, ROWS * (window or 1.0) if kind != WINDOWS else 0.0, ROWS * per_row).parts
    parts = np.append(_PARTS[kind], 0.0) * seconds
    rates = np.divide(parts, made, out=np.zeros(4), where=made > 0)
    return Operator(name, kind, window, per_row, rates, truth, believed)


def _blurred(values: NDArray[np.float64], random: np.random.Generator, belief: float) -> NDArray[np.float64]:
    return values * np.exp(belief * random.standard_normal(values.size))


def _join(name: str, random: np.random.Generator, belief: float) -> tuple[ShedOption, ShedOption]:
    """Matches lie around one age of each window, and a few everywhere."""
    ages = np.arange(_CELLS)
    peaks = [np.exp(-(((ages - random.uniform(0, _CELLS)) / random.uniform(1, 3)) ** 2)) for _ in range(2)]
    values = np.concatenate(peaks) + random.uniform(0.05, 0.3)
    work = np.ones(values.size)
    believed = _blurred(values, random, belief)
    order = np.argsort(-believed, kind="stable")
    # Cells are chosen by what is believed of them, and find what they really have.
    found = np.append(1.0, 1 - np.cumsum(values[order][::-1]) / values.sum())[:-1]
    offer = cells_option(name, {name: 1.0}, believed, work)
    left = np.append(found, found[-1] * offer.levels[-1] / offer.levels[-2])
    own = np.stack([np.ones_like(left), offer.levels, left, offer.levels], axis=1)
    return ShedOption(name, offer.levels, {name: own}, {name: 1 - left}), offer


def _match(name: str, random: np.random.Generator, belief: float) -> tuple[ShedOption, ShedOption]:
    """Some regions are wanted much and have few rows, some the other way round."""
    rows = random.dirichlet(np.full(_REGIONS, 0.7))
    wanted = rows * np.exp(1.2 * random.standard_normal(_REGIONS))
    nonempty = random.random(_REGIONS) < 0.9
    wanted = np.where(nonempty, wanted, 0.0)
    wanted = wanted / wanted.sum()
    guess = _blurred(wanted, random, belief)
    fairness = float(random.choice([0.5, 1.0]))
    offers = [
        regions_option(name, {name: 1.0}, qos, rows, nonempty, fairness)
        for qos in (wanted, guess / guess.sum())
    ]
    return offers[0], offers[1]


def _windows(name: str, random: np.random.Generator, belief: float) -> tuple[ShedOption, ShedOption]:
    """Windows of a few slides; the longer the gap may be, the more of the rows go."""
    gap, slides = int(random.integers(4, 20)), int(random.integers(1, 4))
    going = max(0, gap + 1 - slides) / gap
    offer = windows_option(name, [name], gap, {name: min(1.0, going)}, [name])
    return offer, offer


_OFFERS = {JOIN: _join, MATCH: _match, WINDOWS: _windows}
