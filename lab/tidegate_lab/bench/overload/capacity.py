"""Measures the machine, to choose the rate at which a burst exceeds its capacity by a given factor.

A short burst at a guessed rate runs under a policy that only sheds; its comparisons per second are the
capacity. Candidate pairs grow with the square of the rate, which gives the rate for the benchmark.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import sqrt
from statistics import median

from tidegate_lab.bench.overload.feed import Story
from tidegate_lab.bench.overload.run import WINDOW_SECONDS, play

#: More than any machine of today can join in full with two cores.
GUESSED_RATE = 6000.0
CALM_SECONDS, RUSH_SECONDS = 5.0, 35.0
#: What is looked at from here on, when the window is full and the policy has settled.
SETTLED_SECONDS = 25.0


def rush_rate(arguments: argparse.Namespace, say: Callable[[str], None]) -> float:
    """Rows a second of each stream whose join is `--times` as much work as fits."""
    say("measuring what fits …")
    times = arguments.times
    story = Story(
        GUESSED_RATE,
        GUESSED_RATE,
        CALM_SECONDS,
        RUSH_SECONDS,
        seed=arguments.seed,
        join=arguments.join,
        correlated=not arguments.uncorrelated,
    )
    run = play(story, ["partial"], "2 seconds", arguments.temp, say)["partial"]
    held = run.rush(SETTLED_SECONDS - CALM_SECONDS)
    fits = median(b.probed_pairs / max(1.0, b.seconds) for b in held)
    rate = sqrt(times * fits / (2 * WINDOW_SECONDS))
    say(f"{fits / 1e6:,.0f} M pairs a second fit; {times:g} times as many: {rate:,.0f} rows/s of each stream")
    return rate
