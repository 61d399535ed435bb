#!/usr/bin/env python3
"""Measures how well one goal is kept over networks of joins, matches and windows, on a simulated clock.

    lab/scripts/goal_bars.py [--stories 50] [--networks 20] [--first 0]

Bars are those of `tidegate/sim/goal_bars.py`. All repeats exactly; `--first` is the first seed, so that
other seeds than those that settings were chosen with can be tried.
"""

from __future__ import annotations

import argparse
from statistics import median

from tidegate_lab.simulate.goal.goal_bars import ON_TIME, Kept, Together, kept, together

#: Changes of direction per 10 batches, weighted recall over the best fixed plan's, and over one mechanism's.
TURNS, OF_FIXED, GAIN = 1.0, 0.95, 1.15


def tell_stories(told: list[Kept]) -> None:
    for one in told:
        turns = "" if one.turns is None else f"  turns {one.turns:.2f}"
        print(
            f"{one.seed:4} {one.kind:14} on time {one.on_time:.3f} of {one.judged:4}  recall {one.recall:.3f}"
            f"  of the best fixed plan's {one.of_fixed:.3f}{turns}"
        )
    judged = sum(one.judged for one in told)
    on_time = sum(one.on_time * one.judged for one in told) / judged
    of_fixed = [one.of_fixed for one in told if one.of_fixed is not None]
    turns_most = max((one.turns for one in told if one.turns is not None), default=0.0)
    print(f"on time {on_time:.4f} (bar {ON_TIME}), the worst story {min(one.on_time for one in told):.3f}")
    print(f"turns per 10 batches of steady input {turns_most:.2f} at most (bar {TURNS})")
    print(
        f"recall of the best fixed plan's: median {median(of_fixed):.3f}, least {min(of_fixed):.3f}, "
        f"{sum(one >= OF_FIXED for one in of_fixed)} of {len(of_fixed)} at the bar of {OF_FIXED}"
    )


def tell_networks(told: list[Together]) -> None:
    for one in told:
        alone = ", ".join(f"{name} {recall:.3f}" for name, recall in one.alone.items())
        print(f"{one.seed:4} together {one.recall:.3f}, alone: {alone}; gain {one.gain:.2f}")
    gains = [one.gain for one in told]
    print(
        f"gain over the best mechanism alone: median {median(gains):.2f} (bar {GAIN}), least {min(gains):.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stories", type=int, default=50)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.stories:
        tell_stories([kept(given.first + number) for number in range(given.stories)])
    if given.networks:
        tell_networks([together(given.first + number) for number in range(given.networks)])


if __name__ == "__main__":
    main()
