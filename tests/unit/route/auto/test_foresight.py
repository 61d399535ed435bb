"""The price of pairs while windows fill, against pairs counted."""

from __future__ import annotations

import pytest

from tidegate.route.auto.work_costs import BATCHES, COUNTED, MATCH, prices_ahead


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_pairs_are_foreseen_exactly_while_a_steady_stream_fills_its_windows(batch: int) -> None:
    """n new rows a side: batch b finds new × stored pairs both ways, and new × new: (2b + 1) n²."""
    n = 1000
    ahead = prices_ahead(COUNTED, stored=2 * n * (batch + 1), before=2 * n * batch, new=2 * n)
    later = batch + BATCHES
    assert ahead[MATCH] / COUNTED[MATCH] == pytest.approx((2 * later + 1) / (2 * batch + 1))
    assert ahead[:MATCH].tolist() == COUNTED[:MATCH].tolist()


@pytest.mark.parametrize("before", [100, 200])
def test_full_windows_change_nothing(before: int) -> None:
    assert prices_ahead(COUNTED, stored=100, before=before, new=10).tolist() == COUNTED.tolist()
