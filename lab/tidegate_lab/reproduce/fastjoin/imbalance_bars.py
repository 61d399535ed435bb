"""LI of FastJoin at Zipf 1.0: what each batch saw, and what its decision made of it.

LI is judged once settled, and where no key prevents balance: batches do not count whose heaviest instance
would exceed Θ with nothing but the keys that are too large for its gap to the lightest (equation 9 forbids to
move them). Co-located, the most popular key alone (8 % of the rows) prevents it in almost all batches, so the
bars are those of the biclique:

    imbalance        the median of what was seen
    imbalance_held   the most that was left behind: the same batch under the assignment that follows from it

The most that was seen is above Θ by nature, if anything moves once settled: it is told, and is no bar.

The paper (figure 11) says that LI "remains less than 2.2 from then on" and that "several migration operations
are triggered". A migration is triggered by an LI above Θ alone, so both are true only of LI after it: "our
scheme can quickly reduce the degree of load imbalance once it reaches the threshold", within the second that
the figure reports. Here a batch is that second. What was left behind counts the rows that the choice was made
on; that it lasts is told by how many batches in a row are seen above Θ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from tidegate.observe.json_frame import Bar
from tidegate.route.fastjoin.imbalance import imbalance
from tidegate_lab.plots.bars import at_most
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.experiment import Line
from tidegate_lab.reproduce.fastjoin.scenarios import THETA, Run
from tidegate_lab.simulate.balance.recorded import Decision


def free_imbalances(one: Run) -> list[float]:
    """LI of the settled batches in which no key prevents balance, of all groups of instances."""
    return [imbalance(decision.work.loads) for decision in _free(one)]


def held_imbalances(one: Run) -> list[float]:
    """The same batches, had they run under the assignments that follow from them."""
    return [imbalance(decision.loads_after) for decision in _free(one)]


def longest_above(one: Run) -> int:
    """The most batches in a row, of one group, in which LI is above Θ though no key prevents balance."""
    longest = 0
    for group in one.decisions:
        row = 0
        for decision in group[one.scenario.settled :]:
            row = row + 1 if _is_free(decision) and imbalance(decision.work.loads) > THETA else 0
            longest = max(longest, row)
    return longest


def imbalance_lines(runs: Sequence[Run], topology: str) -> list[Line]:
    every = [float(one.trace.ratios()[one.scenario.settled :].mean()) for one in runs]
    free = [ratio for one in runs for ratio in free_imbalances(one)]
    batches = sum(len(group[one.scenario.settled :]) for one in runs for group in one.decisions)
    lines = [
        number_line("beyond", f"{topology}: mean LI, once settled", f"≤ {THETA:g}", every),
        number_line("beyond", f"{topology}: batches in which no key prevents it", "-", [len(free) / batches]),
    ]
    if free:
        above = float(np.mean(np.array(free) > THETA))
        rows = [float(longest_above(one)) for one in runs]
        lines += [
            number_line("beyond", f"{topology}: of these, the most that was seen", "-", [max(free)]),
            number_line("beyond", f"{topology}: of these, above Θ", "none", [above]),
            number_line("beyond", f"{topology}: of these, above Θ one after the other", "-", [max(rows)]),
        ]
    return lines


def imbalance_bars(runs: Sequence[Run]) -> list[Bar]:
    free = [ratio for one in runs for ratio in free_imbalances(one)]
    held = [ratio for one in runs for ratio in held_imbalances(one)]
    return [
        at_most("fastjoin.imbalance", median(free) if free else None, "", THETA),
        at_most("fastjoin.imbalance_held", max(held) if held else None, "", THETA),
    ]


def _free(one: Run) -> Iterator[Decision]:
    for group in one.decisions:
        yield from filter(_is_free, group[one.scenario.settled :])


def _is_free(decision: Decision) -> bool:
    return bool(decision.unmovable <= THETA * decision.work.loads.min())
