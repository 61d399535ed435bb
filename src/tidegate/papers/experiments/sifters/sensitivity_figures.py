"""Figures 9 and 10: gains over random dropping by fairness threshold and by side of queries.

Paper: sifters, section VI-B.3. As in Table I, the shortest side is half of the longest, which is on the axis.

What we see differently: with larger queries the gain at high load grows far more than slightly. Queries of
0.01 are often without data, and complete whatever is dropped; larger ones are not, and random dropping loses
most of them.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.papers.experiments.experiment import Options, Outcome
from tidegate.papers.experiments.sifters.combinations import AUTO
from tidegate.papers.experiments.sifters.gains_by_throttler import (
    DEDP,
    LITTLE,
    THROTTLERS,
    default_workload,
    measure,
    plot,
    told,
)
from tidegate.papers.experiments.sifters.sweep import Position, percents_line, setting_of

FAIRNESS, QUICK_FAIRNESS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9), (0.1, 0.8, 0.9)
SIDES, QUICK_SIDES = (0.01, 0.02, 0.03, 0.04, 0.05), (0.01, 0.05)
#: "Slightly", in points of per cent.
SLIGHTLY = 20.0


def figure_9(options: Options) -> Outcome:
    """By fairness threshold."""
    places = QUICK_FAIRNESS if options.quick else FAIRNESS
    found = measure(
        options,
        list(THROTTLERS),
        lambda z: [Position(d, default_workload(), setting_of(options, z=z, fairness=d)) for d in places],
    )
    heavy, third, light = (found[DEDP][z] for z in (0.1, 0.3, 0.9))
    span = f"Δ = {places[0]:g} to {places[-1]:g}"
    lines = [
        percents_line(
            "9",
            f"DEDP, z = 0.3: over random, {span}",
            "+5 % to +40 %",
            third,
            agrees=third[0] >= 5 and third[-1] >= 40,
        ),
        percents_line(
            "9",
            f"DEDP, z = 0.9: over random, {span}",
            "almost flat",
            light,
            agrees=max(light) - min(light) <= LITTLE,
        ),
        percents_line(
            "9",
            f"DEDP, z = 0.1: over random, {span}",
            "rises, then stays",
            heavy,
            agrees=max(heavy) - heavy[0] > LITTLE > abs(heavy[-1] - heavy[-2]),
        ),
        *told("9", span, found, [AUTO]),
    ]
    return Outcome(lines, plots=[plot(options, "9", "fairness threshold, Δ", places, found)])


def figure_10(options: Options) -> Outcome:
    """By side of queries."""
    places = QUICK_SIDES if options.quick else SIDES
    found = measure(
        options,
        [z for z in THROTTLERS if z < 0.9],
        lambda z: [
            Position(
                side, replace(default_workload(), query_sides=(side / 2, side)), setting_of(options, z=z)
            )
            for side in places
        ],
    )
    span = f"sides {places[0]:g} to {places[-1]:g}"
    lines = [
        percents_line(
            "10",
            f"DEDP, z = {z:g}: over random, {span}",
            "grows slightly" + (", by around 15 %" if z == 0.1 else ""),
            changes,
            agrees=0 <= changes[-1] - changes[0] <= SLIGHTLY,
        )
        for z, changes in found[DEDP].items()
    ]
    lines += told("10", span, found, [AUTO])
    return Outcome(lines, plots=[plot(options, "10", "query side length", places, found)])
