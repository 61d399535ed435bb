"""Figure 9: latency by skew, 20 instances, α = 1, at 5,000 tuples/s.

Paper: Ls-Stream, section VI-B. "Maximum system latency" is read as the longest that a row takes; the plot has
averages, as the paper's.

At this rate BiStream's busiest instance is busy for a fifth of the time at Zipf 1.0, so most of the latency
is comparing, and Ls-Stream compares with less. What its routing adds is told apart.
"""

from __future__ import annotations

from tidegate_lab.plots.bars import at_most
from tidegate_lab.reproduce.claims import shorter_line
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.ls_stream.measures import longest_ms, mean_ms, ratios
from tidegate_lab.reproduce.ls_stream.skew_runs import (
    BAR_INSTANCES,
    RATE,
    STEEPEST,
    by_skew_plot,
    capacity_of,
    runs,
)
from tidegate_lab.reproduce.ls_stream.streams import FEW_KEYS, many_keys
from tidegate_lab.reproduce.ls_stream.systems import (
    BISTREAM,
    BY_PARTITION,
    CONTRAND,
    FASTJOIN,
    LS_STREAM,
    System,
)


def figure_9(options: Options) -> Outcome:
    """Latency by skew."""
    plot = by_skew_plot(
        "figure-9",
        f"Figure 9: system latency by skew at {RATE:,} tuples/s",
        "average latency (ms of comparing and waiting)",
        options,
        lambda one, keys: mean_ms(one, capacity_of(options, keys)),
    )
    keys = many_keys(options)
    longest = [_longest(BISTREAM, options, keys, number) for number in BAR_INSTANCES]
    against_hash = [
        shorter_line(
            "9",
            f"longest latency, Ls-Stream against BiStream, Zipf 1.0, {number} instances",
            "-49.3 %",
            found,
            most=0.51,
        )
        for number, found in zip(BAR_INSTANCES, longest, strict=True)
    ]
    lines = [
        *against_hash,
        shorter_line(
            "9",
            f"the same with {FEW_KEYS} keys, 20 instances",
            "-49.3 %",
            _longest(BISTREAM, options, FEW_KEYS, 20),
            most=0.51,
        ),
        shorter_line(
            "9",
            "average latency, Ls-Stream against BiStream, Zipf 1.0",
            "-49.3 %",
            _average(BISTREAM, options, keys),
            most=0.51,
        ),
        shorter_line("9", "… against ContRand", "-39.2 %", _average(CONTRAND, options, keys), most=0.61),
        shorter_line("9", "… against FastJoin", "-18.1 %", _average(FASTJOIN, options, keys), most=0.82),
        shorter_line(
            "9", "of it by routing: against BiStream by partition", "-", _average(BY_PARTITION, options, keys)
        ),
    ]
    most = max(against_hash, key=lambda line: line.value or 0.0)
    return Outcome(lines, [at_most("ls_stream.max_latency_over_hash", most.value, "×", 0.51)], [plot])


def _longest(over: System, options: Options, keys: int, instances: int) -> list[float]:
    capacity = capacity_of(options, keys, instances)
    ours, theirs = (runs(system, options, keys, STEEPEST, instances) for system in (LS_STREAM, over))
    return ratios(lambda one: longest_ms(one, capacity), ours, theirs)


def _average(over: System, options: Options, keys: int) -> list[float]:
    capacity = capacity_of(options, keys)
    ours, theirs = (runs(system, options, keys, STEEPEST) for system in (LS_STREAM, over))
    return ratios(lambda one: mean_ms(one, capacity), ours, theirs)
