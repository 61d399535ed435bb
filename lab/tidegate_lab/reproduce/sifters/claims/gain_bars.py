"""Gains that were asked for, judged twice: as the paper measures, and after the server has dropped the rest.

Paper: sifters, sections III and VI-A. It measures the overall QoS of equation 2. Completeness in there
(equation 1) knows of the filter alone: all that it lets pass is answered from, even if that is more than the
share z. And the constraint that z should pass (equation 3) is met on the frequencies of the sample. So

    as the paper measures     sifters built as printed; whatever they let pass counts
    bounded                   sifters built as ours are (`construction.py`); what passes beyond z is more than
                              the server can take, and dropped at random

The second is stricter: no gain in it comes out of rows that nobody could have processed, and what passes too
little is not made up for. Where there is skew they differ by one to four points of per cent, with a hundred
regions at high load by up to ten. Where data and queries go together, printed sifters let 1.0 to 1.7 % of all
rows too many pass, and half of what they gain is that.

Both under both readings of the skew (`readings.py`); who calls says which.

How much better thresholds could be is told by sifters whose thresholds are made from the rows that they are
judged by. What those do not reach, no estimate from a sample will: it would take other regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidegate.observe.json_frame import Bar
from tidegate_lab.reproduce.claims import bar, percent_line
from tidegate_lab.reproduce.sifters.runs.combinations import PAPER, RANDOM
from tidegate_lab.reproduce.sifters.runs.sweep import Position, all_that_passes, best_gains, run_all

BOUNDED = ".bounded"


def gain_bars(figure: str, id: str, point: Position, target: float, seeds: Sequence[int]) -> list[Bar]:
    """The best of the four over random dropping, in per cent: as the paper measures it, and bounded."""
    judged = {id: printed_gains([point], seeds), f"{id}{BOUNDED}": best_gains([point], seeds)}
    return [
        bar(percent_line(figure, "the best over random", "", ratios[:, 0].tolist()), one, target)
        for one, ratios in judged.items()
    ]


def printed_gains(points: Sequence[Position], seeds: Sequence[int]) -> NDArray[np.float64]:
    """(seed, position) → the best of the paper's partitioners over random dropping, as the paper measures."""
    printed = [replace(point, setting=replace(point.setting, shrink=False)) for point in points]
    run_all(printed, (RANDOM, *PAPER), seeds)
    return best_gains(printed, seeds, all_that_passes)


def known_gains(points: Sequence[Position], seeds: Sequence[int]) -> NDArray[np.float64]:
    """(seed, position) → the best of the paper's partitioners, were fresh rows known when it was built."""
    known = [replace(point, setting=replace(point.setting, known=True)) for point in points]
    run_all(known, (RANDOM, *PAPER), seeds)
    return best_gains(known, seeds)
