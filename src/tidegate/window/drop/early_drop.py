"""Early drops: finds the rows that no kept window needs, so that they are dropped before any work is done.

Paper: window drop, section 3.4, definition 1 and rule 1: a row that lies in k windows can be dropped early
if and only if all k are dropped.

    windows, kept   [───────────)                                   size 3 slides
    dropped               ░───────────░
                                ░───────────░
                                      ░───────────░
    kept                                    [───────────)
    rows            keep        │ drop      │ keep                  (𝓑 + 1) · slide − size, per gap of 𝓑

Rows between the end of one kept window and the start of the next one are dropped. Over nested windows,
`source_range.py` computes exactly which times are needed; with several outputs, rows that any of them needs
are kept. The result is a few intervals of event time, so the test is one binary search per row, right after
it was read.

Guarantee: the kept rows are exactly those that can influence a kept window of an output.

Where we differ: a decision is looked up by window, so no row has to carry one, and none is kept for its mark
alone (the paper's "fake tuples").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.model.times import BEGINNING_US, END_US
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.intervals import Intervals, always, merged, union
from tidegate.window.drop.source_range import Step, source_range
from tidegate.window.spec import WindowSpec


def kept_times(decisions: Decisions, paths: Sequence[Sequence[Step]]) -> Intervals:
    """Times of rows that kept windows need, at the start of these paths of steps (output first)."""
    return kept_beside(Intervals(*decisions.dropped_times), paths, decisions.slide_us)


def kept_beside(dropped: Intervals, paths: Sequence[Sequence[Step]], slide_us: int) -> Intervals:
    """The same for windows that are dropped if they start in one of these intervals."""
    if not dropped.low.size:
        return always()
    return union([_kept_on(dropped, path, slide_us) for path in paths])


def _kept_on(dropped: Intervals, path: Sequence[Step], slide_us: int) -> Intervals:
    first, end = dropped.low, dropped.high
    # Everything before the first and after the last dropped run is kept. At this distance windows are whole.
    far = 2 * sum(step.size_us for step in path if isinstance(step, WindowSpec)) + slide_us
    wanted_low = np.concatenate((first[:1] - far, end))
    wanted_high = np.concatenate((first, end[-1:] + far))
    low, high = source_range(path, wanted_low, wanted_high)
    low[0], high[-1] = BEGINNING_US, END_US
    return merged(low, high)
