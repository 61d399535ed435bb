"""auto beside the papers' strategies on their streams, with an index: never worse than the better one."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.route.auto.strategy import Auto
from tidegate.route.baselines import HashOnly
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate.route.ls_stream.strategy import LsStreamStrategy
from tidegate.route.strategy import Strategy
from tidegate_lab.simulate.balance.key_counts import count_arrivals
from tidegate_lab.simulate.balance.skewed_join import SkewedJoin, simulate
from tidegate_lab.workloads.skew import GROUPS, ZipfStreams, city_streams, zipf_batches

WARM = 4
#: Rows that keep the pairs of a batch below 20 million, by the sum of both exponents.
ROWS = {0: 4_000, 1: 4_000, 2: 2_500, 3: 2_000, 4: 1_000}
STREAMS = {
    **{
        name: ZipfStreams(group, keys=5_000, rows=(ROWS[round(sum(group))],) * 2, batches=14)
        for name, group in GROUPS.items()
    },
    "city": city_streams((500, 4_500), batches=14),
    "ls-stream 0.6": ZipfStreams((0.6, 0.6), keys=5_000, rows=(3_000, 3_000), batches=14),
}


@pytest.mark.parametrize("name", list(STREAMS))
def test_auto_is_at_least_as_good_as_the_better_of_both_papers(name: str) -> None:
    arrivals = count_arrivals(zipf_batches(STREAMS[name]))

    def makespan(strategy: Strategy, watch_share: float = 0.0) -> float:
        trace = simulate(arrivals, strategy, SkewedJoin(16, 256, (8, 8), watch_share=watch_share))
        assert trace.batches[-1].pairs <= 20_000_000
        return float(np.mean(trace.series("makespan")[WARM:]))

    others = min(makespan(FastJoinStrategy()), makespan(LsStreamStrategy()), makespan(HashOnly()))
    assert makespan(Auto(), 5e-4) <= others


@pytest.mark.parametrize("name", ["G02", "G20"])
def test_a_key_that_is_hot_on_one_side_only_is_divided(name: str) -> None:
    """It has three fifths of one stream and next to nothing of the other: rows, not pairs, are the work."""
    arrivals = count_arrivals(zipf_batches(STREAMS[name]))
    trace = simulate(arrivals, Auto(), SkewedJoin(16, 256, (8, 8), watch_share=5e-4))
    # With all its rows sent to all its instances it was 2.3.
    assert np.mean(trace.series("overload")[WARM:]) <= 1.5


@pytest.mark.parametrize("name", ["G02", "G11", "G12", "G20", "G21", "G22"])
def test_a_first_look_splits_hot_keys_before_they_are_stored(name: str) -> None:
    """Also those that are hot on one side only, of which the other side says nothing."""
    arrivals = count_arrivals(zipf_batches(STREAMS[name]))
    join = SkewedJoin(16, 256, (8, 8), watch_share=5e-4, first_look=True)
    trace = simulate(arrivals, Auto(scattering=0.0), join)
    assert trace.series("overload")[0] <= 1.2
    assert np.mean(trace.series("overload")) <= 1.15
    # Without the look, the hot key moves once: a tenth of the state and more where it is hot on both sides.
    if name not in ("G02", "G20"):
        assert not trace.series("moved_rows").any()


def test_the_biclique_has_a_first_look_for_each_side() -> None:
    arrivals = count_arrivals(zipf_batches(STREAMS["G22"]))
    looked, hashed = (
        simulate(arrivals, Auto(scattering=0.0), SkewedJoin(16, 256, (8, 8), biclique=True, first_look=first))
        for first in (True, False)
    )
    # Before windows are full, more pairs are found where right rows lie: those of new rows with new rows.
    assert looked.series("overload")[0] <= 2 < 6 < hashed.series("overload")[0]
    assert looked.series("overload")[1] <= 1.4 < 4 < hashed.series("overload")[1]
