"""Early drops: which rows can go before anything is done with them, because no kept window needs them.

Paper: window drop, section 3.4, definition 1 and rule 1: a row that lies in k windows can go early if and
only if all k are dropped.

    windows, kept   [───────────)                                   size 3 slides
    dropped               ░───────────░
                                ░───────────░
                                      ░───────────░
    kept                                    [───────────)
    rows            keep        │ drop      │ keep                  (𝓑 + 1) · slide − size, per gap of 𝓑

Rows between the end of one kept window and the start of the next one go. Over a nest of windows, "needs" is
answered exactly by `source_range.py`; several outputs keep what any of them needs. The result is a few
stretches of event time, so the test costs a row one binary search, right after it was read.

Guarantee: kept are exactly the rows that can influence a kept window of an output.

Where we differ: a decision is looked up by window, so no row has to carry one, and none is kept for its mark
alone (the paper's "fake tuples").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.model.times import BEGINNING_US, END_US
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.intervals import Intervals, always, merged, union
from tidegate.window.drop.source_range import Step, source_range
from tidegate.window.spec import WindowSpec

if TYPE_CHECKING:
    pass


def kept_times(decisions: Decisions, paths: Sequence[Sequence[Step]]) -> Intervals:
    """Times of rows that kept windows need, seen from where these paths of steps (output first) begin."""
    if not decisions.dropped:
        return always()
    return union([_kept_on(decisions, path) for path in paths])


def _kept_on(decisions: Decisions, path: Sequence[Step]) -> Intervals:
    first, end = (side * decisions.slide_us for side in decisions.runs)
    # Before the first dropped run and behind the last one all is kept. So far from it, all windows are whole.
    far = 2 * sum(step.size_us for step in path if isinstance(step, WindowSpec)) + decisions.slide_us
    wanted_low = np.concatenate((first[:1] - far, end))
    wanted_high = np.concatenate((first, end[-1:] + far))
    low, high = source_range(path, wanted_low, wanted_high)
    low[0], high[-1] = BEGINNING_US, END_US
    return merged(low, high)
