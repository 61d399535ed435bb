"""SAFit: the same choice as GreedyFit by simulated annealing; slower, for comparison.

Paper: FastJoin, section IV-A, equations 10 and 11 and algorithm 3. It starts from a random set of keys
whose benefits fit into the gap, then flips one random key at a time. A set that does not fit is rejected, a
better one accepted, a worse one accepted with probability exp(change of value / T). T falls by a factor
after a fixed number of flips. Two values to anneal on:

    "factor"    ΣF / Σ|R|, the paper's equation 10. A mean of ratios is largest for the single best key, so
                this finds keys with a high benefit per row and may leave most of the gap open.
    "benefit"   ΣF, which is what balance needs.

What the paper leaves open: T, T_min, the factor and the number of flips (defaults below; values are divided
by their largest possible value, so that one T serves any load); the value of the empty set (zero); and keys
without rows (Σ|R| counts as at least one, or the value would be infinite).

Guarantee: ΣF of the chosen keys is at most the gap; the same generator gives the same choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.kernels import compiled
from tidegate.route.fastjoin.greedy_fit import Candidates

FACTOR, BENEFIT = "factor", "benefit"


@dataclass(frozen=True)
class KeyAnnealing:
    """A higher start, a lower end, a cooling factor nearer to one and more flips search longer."""

    start: float = 1.0
    end: float = 1e-4
    cooling: float = 0.9
    #: Flips at each temperature; None: as many as there are keys.
    flips: int | None = None
    value: str = FACTOR

    def __post_init__(self) -> None:
        good = 0 < self.end < self.start and 0 < self.cooling < 1 and (self.flips is None or self.flips >= 1)
        if not good or self.value not in (FACTOR, BENEFIT):
            raise FlowError(
                "A setting of simulated annealing is out of range",
                code="BALANCE_SETTING_INVALID",
                got=self,
                do=f"Give 0 < end < start, 0 < cooling < 1, flips >= 1 and value {FACTOR!r} or {BENEFIT!r}",
            )


def sa_fit(keys: Candidates, settings: KeyAnnealing, random: np.random.Generator) -> NDArray[np.int64]:
    """Positions of the keys to move, ascending."""
    able = np.flatnonzero(keys.benefits > 0)
    if able.size == 0 or keys.gap <= 0:
        return able[:0]
    benefits, rows = keys.benefits[able], keys.rows[able]
    by_factor = settings.value == FACTOR
    scale = float((benefits / np.maximum(rows, 1.0)).max()) if by_factor else keys.gap
    flips = able.size if settings.flips is None else settings.flips
    flags = _anneal(
        benefits,
        rows,
        keys.gap,
        scale,
        by_factor,
        (settings.start, settings.end, settings.cooling),
        flips,
        random,
    )
    return np.asarray(able[flags])


@compiled
def _value(benefit: float, rows: float, scale: float, by_factor: bool) -> float:
    return benefit / (max(rows, 1.0) * scale) if by_factor else benefit / scale


@compiled
def _anneal(
    benefits: NDArray[np.float64],
    rows: NDArray[np.float64],
    gap: float,
    scale: float,
    by_factor: bool,
    temperatures: tuple[float, float, float],
    flips: int,
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """Algorithm 3, with its line numbers."""
    count = benefits.size
    flags = np.zeros(count, np.bool_)
    benefit = moved = 0.0
    for k in range(count):  # 4 to 14: a random start, up to the first key that does not fit
        if random.random() < 0.5:
            if benefit + benefits[k] > gap:
                break
            flags[k] = True
            benefit += benefits[k]
            moved += rows[k]
    best = flags.copy()
    old = best_value = _value(benefit, moved, scale, by_factor)
    # Flips since the best set, because copying all flags at every improvement would be slow.
    since = [0 for _ in range(0)]
    temperature, end, cooling = temperatures
    while temperature > end:  # 17
        for _ in range(flips):
            k = int(random.random() * count)
            sign = -1.0 if flags[k] else 1.0
            new_benefit = benefit + sign * benefits[k]
            if new_benefit > gap:  # 22, 34
                continue
            new = _value(new_benefit, moved + sign * rows[k], scale, by_factor)
            # 23 to 33; a rejected flip is not applied.
            if new > old or random.random() <= np.exp((new - old) / temperature):
                flags[k] = not flags[k]
                benefit, moved, old = new_benefit, moved + sign * rows[k], new
                since.append(k)
                if new > best_value:
                    best_value = new
                    for flipped in since:
                        best[flipped] = not best[flipped]
                    since.clear()
        temperature *= cooling  # 39
    return best
