"""What the sift benchmark makes of its rounds."""

from __future__ import annotations

import pytest

from tidegate_lab.bench.sift.bars import sift_bars
from tidegate_lab.bench.sift.run import Measured


def test_a_sifter_is_held_against_the_scan_of_its_own_round() -> None:
    # The machine is half as fast from the third round on; the sifter adds a tenth throughout.
    scan = Measured("scan", 100, [1.0, 1.0, 2.0, 2.0, 2.0])
    sift = Measured("sift-16", 100, [1.1, 1.1, 2.2, 2.2, 9.0])
    (bar,) = sift_bars([scan, sift], [], [])
    assert (bar.id, bar.holds) == ("sift.spark.16.over_scan", True)
    assert bar.value == pytest.approx(0.1)
    (bar,) = sift_bars([scan, Measured("sift-16", 100, [1.3, 1.3, 2.6, 2.6, 2.6])], [], [])
    assert not bar.holds
