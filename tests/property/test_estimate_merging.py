"""An estimate does not depend on how kept rows were cut into batches' panes, runs or instances."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.window.estimate.horvitz_thompson import bounds, estimate
from tidegate_lab.simulate.windows.estimated_windows import AGGREGATES, merged

#: So many rows can be cut evenly into one to four batches.
ROWS = 120


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=ROWS, max_size=ROWS),
    kept=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    share=st.floats(0.05, 0.95),
    batches=st.integers(2, 4),
)
def test_the_cut_plays_no_role(values: list[float], kept: list[bool], share: float, batches: int) -> None:
    x, there = np.array([values]), np.array([kept])
    whole = merged(x, there, [share])
    parts = merged(x, there, [share] * batches)
    scale = max(1.0, float(np.abs(x).max())) / share
    for name in AGGREGATES:
        for one, other in zip(
            (estimate(name, whole[name]), *bounds(name, whole[name])),
            (estimate(name, parts[name]), *bounds(name, parts[name])),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * scale * ROWS)
