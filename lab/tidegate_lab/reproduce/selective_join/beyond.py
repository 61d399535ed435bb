"""Beyond the paper: our `selective` policy against one who knows, where nothing can be learnt, after a move.

No figure of the paper, but the bars that our policy (`control/actuators/selective.py`) must reach on its
workload:

1. Steady input, fixed r: output against the clairvoyant choice of cells
(`lab/tidegate_lab/simulate/join/clairvoyant.py`), equal cost. 2. No correlation at all (ranks stand still): a
comparison must be worth what it is worth to random drop. What
   random drop finds per comparison is, on average, what joining everything finds; a single run of it
   scatters by some 3 % (whose rows are kept is luck), so joining everything is the yardstick.
3. The correlation moves by half a window at 60 s. Until 75 s rows of the old correlation are still in
   their most productive place, so both moments count; output is judged in the third period after either:

        moves at 60 s ──▶ the old peak (age 15 s) lives on, the new one grows ──▶ 75 s: only the new
"""

from __future__ import annotations

from functools import lru_cache
from statistics import median

from tidegate.control.actuators.paper_rate import FixedRate
from tidegate.control.actuators.policy import RandomDropPolicy
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.reproduce.claims import bar, told
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.selective_join.steady import (
    MATCH,
    SETTLED_SECONDS,
    WINDOWS,
    per_comparison,
    steady_run,
    streams,
)
from tidegate_lab.simulate.join.clairvoyant import Clairvoyant, Counts, together, true_counts
from tidegate_lab.simulate.join.machine import SECOND_US, Machine
from tidegate_lab.workloads.selective_join import Steps, Workload

SKEWS, FRACTIONS = (0.6, 0.8, 1.0), (0.1, 0.2, 0.36, 0.5, 0.7)
#: The right stream is 25 s behind at first, then half a window less or more.
SHIFT_SECONDS, MOVED_SECONDS, MOVES_AT = 25.0, (15.0, 35.0), 60.0


@lru_cache(maxsize=16)
def _truth(workload: Workload, seconds: float, rate: float) -> Counts:
    """What every cell is really worth, once windows are full."""
    machine = Machine(tick_us=SECOND_US // 2, seed=workload.seed)
    counts = true_counts(streams(workload, seconds, rate), WINDOWS, MATCH, machine, seconds)
    return together(counts[round(SETTLED_SECONDS / 5) :])


@lru_cache(maxsize=16)
def _worth_of_everything(workload: Workload, seconds: float, rate: float) -> float:
    everything = RandomDropPolicy(WINDOWS, FixedRate(1.0))
    return per_comparison(steady_run(workload, everything, seconds=seconds, rate=rate), 20.0)


def shares_of_clairvoyant(
    skew: float, fraction: float, seed: int, *, seconds: float = 80.0, rate: float = 250.0
) -> tuple[float, float]:
    """Output and cost of the selective policy, over those of the clairvoyant choice."""
    workload = Workload(skew=skew, seed=seed)
    best, ours = (
        steady_run(workload, policy, seconds=seconds, rate=rate)
        for policy in (
            Clairvoyant(WINDOWS, fraction, [_truth(workload, seconds, rate)]),
            SelectivePolicy(WINDOWS, FixedRate(fraction)),
        )
    )
    output, cost = (
        ours.total(name, SETTLED_SECONDS) / best.total(name, SETTLED_SECONDS)
        for name in ("outputs", "comparisons")
    )
    return output, cost


def share_of_random_drop(fraction: float, seed: int, *, seconds: float = 45.0, rate: float = 150.0) -> float:
    """Without correlation: what a comparison is worth, over what it is worth when everything is joined."""
    still = Workload(period_seconds=1e9, shift_seconds=Steps(((1.0, 0.0),)), seed=seed)
    ours = steady_run(still, SelectivePolicy(WINDOWS, FixedRate(fraction)), seconds=seconds, rate=rate)
    return per_comparison(ours, 20.0) / _worth_of_everything(still, seconds, rate)


def shares_after_a_move(
    shift: float, seed: int, *, rate: float = 250.0, fraction: float = 0.2
) -> tuple[float, float]:
    """Output over that of the new steady state, in the third period after the move and after 75 s."""
    moving = Workload(shift_seconds=Steps(((MOVES_AT, SHIFT_SECONDS), (MOVES_AT, shift))), seed=seed)
    trace = steady_run(moving, SelectivePolicy(WINDOWS, FixedRate(fraction)), seconds=115.0, rate=rate)
    steady = trace.total("outputs", 95, 115) / 4
    first, second = (trace.total("outputs", begin, begin + 5) / steady for begin in (70, 85))
    return first, second


def beyond(options: Options) -> Outcome:
    """All three."""
    lines: list[Line] = []
    bars = []
    curves = []
    skews, fractions = (SKEWS[1:2], (0.2,)) if options.quick else (SKEWS, FRACTIONS)
    rate = 100.0 if options.quick else 250.0
    for colour, skew in enumerate(skews):
        middles = []
        for fraction in fractions:
            found = [shares_of_clairvoyant(skew, fraction, seed, rate=rate)[0] for seed in options.seeds]
            lines.append(_share(f"κ = {skew:g}, r = {fraction:g}: of the clairvoyant choice", found))
            bars.append(bar(lines[-1], f"selective-clairvoyant-k{skew:g}-r{fraction:g}", 0.95))
            middles.append(median(found))
        curves.append(Curve(f"κ = {skew:g}", fractions, middles, "points", colour=colour))
    for fraction in fractions:
        found = [share_of_random_drop(fraction, seed) for seed in options.seeds]
        lines.append(_share(f"no correlation, r = {fraction:g}: a comparison, of random drop's", found))
        bars.append(bar(lines[-1], f"no-correlation-r{fraction:g}", 0.97))
    for shift in MOVED_SECONDS:
        both = [shares_after_a_move(shift, seed, rate=rate) for seed in options.seeds]
        # The worse of the two moments, by its median.
        found = min((list(moment) for moment in zip(*both, strict=True)), key=median)
        lines.append(_share(f"lag moves from 25 to {shift:g} s: third period, of steady output", found))
        bars.append(bar(lines[-1], f"recovery-to-{shift:g}s", 0.9))
    goal = Curve("bar", fractions, [0.95] * len(fractions), colour=7)
    plot = Plot(
        "beyond-clairvoyant",
        "The selective policy, as a share of the clairvoyant choice",
        f"output at equal cost, exploring included; {rate:g} tuples/s, 20 s windows\n{options.seeds_text}",
        [Panel("fraction r", "share of clairvoyant output", [*curves, goal], y_from=0.9)],
    )
    return Outcome(lines, bars, [plot])


def _share(claim: str, found: list[float]) -> Line:
    return Line("beyond", claim, "-", told(found, "{:.3f}".format), median(found), "x", tuple(found))
