"""The machine of a scenario: what work costs at a moment, beside what it costs on average.

    batch = (fixed + sinks + work) · speed · coldness · noise,  and the pauses that it runs into

    coldness  █▆▅▄▃▃▂▂▁▁▁▁▁▁    3 to 30 s until a new process is warm
    speed     ▁▁▁▁▁▁▁▁████████    from a moment on everything takes half or twice as long
    pauses    ▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁    0.2 to 3 s during which nothing runs

Guarantee: a function of the seed, the moment and the number of the batch. Two controllers meet the same
pauses, and the same noise in batches of equal number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: A process counts as cold where it takes this much longer than a warm one.
COLD = 1.1
#: A process is warm when it is slower than a warm one by less than this part.
_WARM = 0.05
#: The quantile of a standard normal variable that one batch in a hundred exceeds.
_OF_99 = 2.3263
#: Noise of a single operator relative to that of the batch.
_OWN_NOISE = 0.3


@dataclass(frozen=True)
class Machine:
    """Costs of a batch that do not depend on its work, and disturbances."""

    seed: int
    fixed_seconds: float
    #: Standard deviation of the logarithm of a batch's time.
    noise: float = 0.03
    #: Multiple of a warm batch's time at the start, seconds until the process is warm, and when it started.
    cold_times: float = 1.0
    cold_seconds: float = 3.0
    started: float = 0.0
    #: (moment, seconds).
    pauses: tuple[tuple[float, float], ...] = ()
    #: From a moment on: everything takes so many times as long; and so many seconds are added by a sink.
    slower: tuple[float, float] = (np.inf, 1.0)
    sink: tuple[float, float] = (np.inf, 0.0)
    #: The part of the batches whose overhead is longer, and by how many seconds: a commit that merges files,
    #: a collection of garbage.
    hiccups: tuple[float, float] = (0.0, 0.0)
    #: The part of the work that goes on beside the overhead: shedding it does not shorten a batch.
    beside: float = 0.0
    cores: int = 4

    def coldness(self, now: float) -> float:
        """What times are multiplied by because the process is cold."""
        if self.cold_times <= 1:
            return 1.0
        # `_WARM` above a warm one after `cold_seconds`.
        falls = np.log((self.cold_times - 1) / _WARM) / self.cold_seconds
        return float(1 + (self.cold_times - 1) * np.exp(-falls * max(0.0, now - self.started)))

    def speed(self, now: float) -> float:
        """What times are multiplied by because the machine has become slower or faster."""
        return self.slower[1] if now >= self.slower[0] else 1.0

    def overhead(self, now: float) -> float:
        """Seconds of a batch without rows on a warm machine."""
        return self.speed(now) * (self.fixed_seconds + (self.sink[1] if now >= self.sink[0] else 0.0))

    def chance(
        self, number: int, operators: int
    ) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]]]:
        """The noise of a batch, and of each operator in it."""
        random = np.random.default_rng([self.seed, 101, number])
        common = float(np.exp(self.noise * random.standard_normal()))
        return common, np.exp(_OWN_NOISE * self.noise * random.standard_normal(operators))

    def hiccup(self, number: int) -> float:
        """Seconds by which the overhead of a batch is longer than usual."""
        share, seconds = self.hiccups
        return seconds * float(np.random.default_rng([self.seed, 103, number]).random() < share)

    def together(self, overhead: float, work: float) -> float:
        """Seconds of a batch with this overhead and this work."""
        return overhead + work - min(overhead, self.beside * work)

    @property
    def noise_99(self) -> float:
        """The noise that one batch in a hundred exceeds."""
        return float(np.exp(_OF_99 * self.noise))

    def end(self, begin: float, seconds: float) -> float:
        """When work that begins at a moment is over."""
        end = begin + seconds
        for at, lasts in self.pauses:
            if begin <= at < end:
                end += lasts
        return end

    def awake(self, since: float, until: float) -> float:
        """The moment from `until` on at which a batch can begin, where nothing ran since a moment."""
        return max([until, *(at + lasts for at, lasts in self.pauses if since <= at < until)])

    def paused(self, begin: float, end: float) -> float:
        """Seconds of a span during which the machine stood still."""
        return sum(max(0.0, min(end, at + lasts) - max(begin, at)) for at, lasts in self.pauses)

    @property
    def jumps(self) -> tuple[float, ...]:
        """Moments at which costs change for good."""
        return tuple(at for at in (self.slower[0], self.sink[0]) if np.isfinite(at))
