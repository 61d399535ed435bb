from __future__ import annotations

import numpy as np
import pytest

from tidegate.join.selective.kept_rows import KeptRows


def test_shares_add_up_by_basic_window_and_old_ones_are_forgotten() -> None:
    kept = KeptRows().after(3, 100, 100, 0).after(3, 100, 50, 0).after(5, 100, 10, 0)
    assert kept.shares(np.array([2, 3, 4, 5, 9])) == pytest.approx([0.75, 0.75, 0.1, 0.1, 0.1])
    assert kept.after(6, 10, 10, oldest=4).slots == (5, 6)


def test_nothing_known_means_that_nothing_is_missing() -> None:
    assert KeptRows().shares(np.array([1, 2])).tolist() == [1.0, 1.0]
    assert not KeptRows().at_random
    assert not KeptRows().after(1, 10, 10, 0).at_random
    assert KeptRows().after(1, 10, 9, 0).at_random


def test_rows_that_were_lost_otherwise_are_remembered_as_long_as_they_could_match() -> None:
    kept = KeptRows().after(1, 10, 5, 0, lost=True).after(4, 10, 5, 1)
    assert not kept.at_random
    assert kept.after(9, 10, 5, oldest=5).at_random


def test_a_batch_that_is_older_than_the_last_counts_with_it() -> None:
    assert KeptRows().after(5, 10, 5, 0).after(4, 10, 10, 0).slots == (5,)
    assert KeptRows().after(5, 0, 0, 0).slots == ()
