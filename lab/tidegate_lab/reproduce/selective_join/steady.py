"""Steady input at a fixed r: what a choice of basic windows is worth, with no rate rule in between.

Paper: selective join, experiments. The machine has no limit here; what is compared is output per comparison,
after the windows have filled and the order of basic windows has been learnt.
"""

from __future__ import annotations

from functools import lru_cache

from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate
from tidegate.control.actuators.policy import Policy
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.selective_join.scenarios import both_windows
from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.counted_conditions import CountedOverlap
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, Stream, paper_streams
from tidegate_lab.simulate.join.stream_join import StreamJoin
from tidegate_lab.simulate.join.trace import Trace
from tidegate_lab.workloads.selective_join import Steps, Workload

MATCH = CountedOverlap(3)
WINDOWS = both_windows()
#: Windows are full after 20 s, and what was learnt from full ones counts from the next period on.
SETTLED_SECONDS = 30.0


@lru_cache(maxsize=16)
def streams(workload: Workload, seconds: float, rate: float) -> tuple[Stream, Stream]:
    """Both streams at the same steady rate."""
    steps = Steps(((seconds, rate),))
    return paper_streams(workload, (steps, steps))


def steady_run(
    workload: Workload, policy: Policy, *, seconds: float, rate: float, windows: Windows = WINDOWS
) -> Trace:
    """One run without a limit; the seed of the workload is also the machine's."""
    machine = Machine(tick_us=SECOND_US // 2, seed=workload.seed)
    return StreamJoin(streams(workload, seconds, rate), windows, MATCH, machine).run(policy, seconds)


def per_comparison(trace: Trace, begin: float = SETTLED_SECONDS) -> float:
    """Output tuples per comparison, from a moment on."""
    return trace.total("outputs", begin) / max(1, trace.total("comparisons", begin))


def direction_gains(skew: float, fraction: float, options: Options) -> tuple[float, ...]:
    """Output per comparison with direction adaptation over that without it, seed by seed."""
    rate, seconds = (100.0, 40.0) if options.quick else (250.0, 50.0)
    gains = []
    for seed in options.seeds:
        with_it, without = (
            per_comparison(
                steady_run(
                    Workload(skew=skew, seed=seed),
                    AdaptiveShedding(WINDOWS, FixedRate(fraction), AdaptiveSettings(direction=direction)),
                    seconds=seconds,
                    rate=rate,
                )
            )
            for direction in (True, False)
        )
        gains.append(with_it / without)
    return tuple(gains)
