"""Stories for a network under one goal: the input rate over time, and disturbances of the machine.

    step     ▁▁▁▁█████████▁▁▁▁     swing   ▁▂▄▆█▆▄▂▁▂▄▆█     slow sink      overhead grows, and stays
    bursts   ▁▁██▁▁▁██▁▁▁██▁▁     steady  █████████████     slow instance  an operator becomes slower
    ramp     ▁▁▂▂▃▃▄▄▅▅▆▆▇▇██                               wrong model    learnt costs are far off

Guarantee: the same seed gives the same story.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tidegate_lab.simulate.goal.goal_network import KINDS

#: How long a story is, how long a jump takes, and how long after it nobody judges.
SECONDS, _JUMP, SETTLING = 120.0, 0.01, 10.0

#: (second, rate), straight in between.
Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Story:
    """One run: rates are multiples of what fits."""

    kind: str
    seed: int
    rates: Line
    #: 0: back to back.
    trigger_seconds: float
    latency_seconds: float = 2.0
    #: Seconds at which something jumps: batches that begin soon after are not judged.
    jumps: tuple[float, ...] = (0.0,)
    #: From this second on: added overhead, and operators that take so many times as long.
    from_second: float = 0.0
    added_overhead: float = 0.0
    slower: Mapping[str, float] = field(default_factory=dict)
    #: By how much costs that were learnt before the run are off; 1: nothing was learnt.
    wrong: float = 1.0
    #: Relative, of times and of arrivals; and how often a batch takes up to twice as long.
    noise: float = 0.03
    jitter: float = 0.03
    outliers: float = 0.004
    #: Overhead of the first batch, in multiples of what it becomes while the machine warms up; how many
    #: batches that takes; and how many of them teach nothing.
    cold: float = 1.0
    warm_after: float = 5.0
    cold_batches: int = 0
    #: Kinds of operators that tell how long they took; of others the controller sees nothing but the rest.
    measured: frozenset[str] = frozenset(KINDS)

    def rate(self, at: float) -> float:
        times, rates = zip(*self.rates, strict=True)
        return float(np.interp(at, times, rates))

    def rows(self, begin: float, end: float) -> float:
        """The rate, integrated: by the corners of the line that lie in between."""
        inside = [time for time, _ in self.rates if begin < time < end]
        at = np.array([begin, *inside, end])
        return float(np.trapezoid([self.rate(time) for time in at], at))

    def coldness(self, batch: int) -> float:
        """What overhead is multiplied by."""
        return 1 + (self.cold - 1) * float(np.exp(-batch / self.warm_after))

    def judged(self, at: float) -> bool:
        return all(not jump <= at < jump + SETTLING for jump in self.jumps)


def story(seed: int, operators: Sequence[str]) -> Story:
    """The story of a seed: kinds take turns."""
    random = np.random.default_rng([seed, 29])
    kind = tuple(_TOLD)[seed % len(_TOLD)]
    trigger = float(random.choice([1.0, 1.0, 0.0]))
    rush = float(random.uniform(1.4, 2.5))
    return _TOLD[kind](Story(kind, seed, _flat(rush), trigger), rush, random, operators)


def _flat(rate: float) -> Line:
    return (0.0, rate), (SECONDS, rate)


def _steady(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    return told


def _step(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    return _rushes(told, float(random.uniform(0.4, 0.8)), rush, [(40.0, 85.0)])


def _bursts(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    lasts = float(random.uniform(14, 18))
    return _rushes(
        told, float(random.uniform(0.4, 0.8)), rush, [(at, at + lasts) for at in (25.0, 58.0, 91.0)]
    )


def _rushes(told: Story, calm: float, rush: float, spans: Sequence[tuple[float, float]]) -> Story:
    rates = [(0.0, calm)]
    for begin, end in spans:
        rates += [(begin, calm), (begin + _JUMP, rush), (end, rush), (end + _JUMP, calm)]
    return replace(told, rates=(*rates, (SECONDS, calm)), jumps=(0.0, *(at for span in spans for at in span)))


def _ramp(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    calm = float(random.uniform(0.4, 0.8))
    return replace(told, rates=((0.0, calm), (20.0, calm), (70.0, rush), (90.0, rush), (SECONDS, calm)))


def _swing(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    at = np.linspace(0, SECONDS, 61)
    rates = rush * (1 + 0.3 * np.sin(2 * np.pi * at / random.uniform(30, 60)))
    return replace(told, rates=tuple(zip(at.tolist(), rates.tolist(), strict=True)))


def _slow_sink(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    return replace(told, jumps=(0.0, 50.0), from_second=50.0, added_overhead=float(random.uniform(0.1, 0.3)))


def _slow_instance(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    slower = {str(random.choice(list(operators))): float(random.uniform(1.5, 2.5))}
    return replace(told, jumps=(0.0, 50.0), from_second=50.0, slower=slower)


def _wrong_model(told: Story, rush: float, random: np.random.Generator, operators: Sequence[str]) -> Story:
    return replace(told, wrong=float(random.choice([0.3, 3.0])))


_TOLD: dict[str, Callable[[Story, float, np.random.Generator, Sequence[str]], Story]] = {
    "steady": _steady,
    "step": _step,
    "bursts": _bursts,
    "ramp": _ramp,
    "swing": _swing,
    "slow sink": _slow_sink,
    "slow instance": _slow_instance,
    "wrong model": _wrong_model,
}
