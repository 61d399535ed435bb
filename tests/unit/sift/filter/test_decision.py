from __future__ import annotations

import numpy as np
import pytest

from tidegate.sift.filter.decision import DROP, KEEP, SAMPLE, Gate, keep_by_hash
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

HALVES = Regions(
    Domain(np.zeros(1), np.ones(1)),
    np.zeros(1, np.int32),
    np.array([0.5]),
    np.array([[~0, ~1]], np.int32),
)


def sifter(below: float, above: float, sample_share: float = 0.0) -> Sifter:
    return Sifter((Axis("x"),), HALVES, np.array([below, above]), sample_share=sample_share)


def test_one_of_two_rows_of_a_region_with_threshold_one_half_is_dropped() -> None:
    gate = Gate(sifter(0.5, 0.0))
    rows = np.array([0.1, 0.9, 0.1, 0.9, 0.1, 0.1])
    verdicts = gate.decide([rows])
    below = verdicts[rows < 0.5].reshape(-1, 2)
    assert np.sort(below).tolist() == [[DROP, KEEP]] * 2
    assert (verdicts[rows > 0.5] == KEEP).all()
    assert gate.counters.offered.tolist() == [4, 2]
    assert gate.counters.dropped.tolist() == [2, 0]


@pytest.mark.parametrize(("d", "sensors"), [(0.5, 2), (0.25, 4), (0.9, 10), (0.4, 5), (0.6, 5), (0.3, 10)])
def test_sensors_that_take_turns_lose_alike(d: float, sensors: int) -> None:
    verdicts = Gate(sifter(d, 0.0)).decide([np.full(100_000, 0.1)])
    by_sensor = (verdicts == DROP).reshape(-1, sensors).mean(axis=0)
    assert np.abs(by_sensor - d).max() < 0.05


def test_few_rows_of_many_nodes_lose_their_share_on_average() -> None:
    lost = [
        int((Gate(sifter(0.3, 0.0), seed=node << 32).decide([np.full(5, 0.1)]) == DROP).sum())
        for node in range(2000)
    ]
    assert abs(np.mean(lost) - 1.5) < 0.05
    assert set(lost) == {1, 2}


def test_counters_that_were_left_go_on_to_the_same_verdicts() -> None:
    rows = np.random.default_rng(1).random(1000)
    whole, first = Gate(sifter(0.3, 0.7, 0.1), seed=3), Gate(sifter(0.3, 0.7, 0.1), seed=3)
    verdicts = whole.decide([rows])
    first.decide([rows[:500]])
    again = Gate(sifter(0.3, 0.7, 0.1), seed=3, position=500, counters=first.counters)
    assert again.decide([rows[500:]]).tolist() == verdicts[500:].tolist()


def test_counters_go_on_from_batch_to_batch() -> None:
    rows = np.random.default_rng(1).random(1000)
    whole, parts = Gate(sifter(0.3, 0.7, 0.1)), Gate(sifter(0.3, 0.7, 0.1))
    verdicts = whole.decide([rows])
    assert np.concatenate([parts.decide([part]) for part in np.array_split(rows, 37)]).tolist() == (
        verdicts.tolist()
    )


def test_thresholds_of_zero_and_one_are_exact() -> None:
    verdicts = Gate(sifter(0.0, 1.0)).decide([np.tile([0.1, 0.9], 1000)])
    assert verdicts.tolist() == [KEEP, DROP] * 1000


def test_a_row_without_a_value_lies_above_the_cuts() -> None:
    gate = Gate(sifter(0.0, 1.0))
    assert gate.decide([np.array([np.nan, 0.1, np.nan])]).tolist() == [DROP, KEEP, DROP]
    assert gate.counters.offered.tolist() == [1, 2]


def test_samples_bypass_the_thresholds_and_count_as_offered() -> None:
    gate = Gate(sifter(1.0, 0.0, sample_share=0.1))
    verdicts = gate.decide([np.full(10_000, 0.1)])
    sampled = int((verdicts == SAMPLE).sum())
    assert 900 < sampled < 1100
    assert gate.counters.offered[0] == 10_000
    assert gate.counters.sampled[0] == sampled
    assert gate.counters.dropped[0] == 10_000 - sampled


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.25])
def test_a_threshold_is_the_share_of_rows_that_are_no_samples_as_on_a_server(share: float) -> None:
    gate = Gate(sifter(0.5, 0.0, sample_share=share))
    gate.decide([np.full(10_000, 0.1)])
    others = 10_000 - int(gate.counters.sampled[0])
    assert abs(gate.counters.dropped[0] - others / 2) <= 1


def test_samples_hit_sensors_that_take_turns_alike() -> None:
    sensors = 10
    verdicts = Gate(sifter(0.0, 0.0, sample_share=1 / sensors)).decide([np.full(100_000, 0.1)])
    by_sensor = (verdicts == SAMPLE).reshape(-1, sensors).mean(axis=0)
    assert np.abs(by_sensor - 1 / sensors).max() < 0.02


def test_samples_depend_on_position_and_seed_alone() -> None:
    rows = np.full(2000, 0.1)
    first = Gate(sifter(0.9, 0.0, 0.05), seed=2**64 - 3).decide([rows])
    later = Gate(sifter(0.2, 0.0, 0.05), seed=2**64 - 3, position=1000).decide([rows[1000:]])
    assert ((first == SAMPLE)[1000:] == (later == SAMPLE)).all()
    other = Gate(sifter(0.9, 0.0, 0.05), seed=10**9).decide([rows])
    assert ((first == SAMPLE) != (other == SAMPLE)).any()


def test_the_tree_is_walked_to_the_same_verdicts() -> None:
    close = 0.5 + np.arange(6) * 1e-12
    n = len(close) + 2
    tree = Regions(
        Domain(np.zeros(1), np.ones(1)),
        np.zeros(n, np.int32),
        np.array([0.0, *close, 1.0]),
        np.stack([~np.arange(n), np.r_[1:n, ~n]], axis=1).astype(np.int32),
    )
    gate = Gate(Sifter((Axis("x"),), tree, np.full(n + 1, 0.5)))
    assert gate.lookup.exact_walk
    verdicts = gate.decide([np.tile(np.r_[close, np.nan], 2)]).reshape(2, -1)
    assert (np.sort(verdicts, axis=0) == [[DROP], [KEEP]]).all()
    assert gate.counters.offered.tolist() == [0, 0, *[2] * 6, 2]


@pytest.mark.parametrize(("bits", "kept"), [(0, False), (2**62, False), (-(2**63), True), (-1, True)])
def test_the_upper_bits_of_a_hash_decide_on_a_server(bits: int, kept: bool) -> None:
    """0 and 1/4 are below a threshold of one half; the sign bit alone is one half."""
    found = keep_by_hash(np.zeros(1, np.int32), np.array([bits]), np.array([0.5]))
    assert found.tolist() == [kept]


def test_by_hash_thresholds_of_zero_and_one_are_exact() -> None:
    hashed = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, 1000)
    thresholds = np.array([0.0, 1.0])
    for region, kept in ((0, True), (1, False)):
        assert (keep_by_hash(np.full(1000, region, np.int32), hashed, thresholds) == kept).all()
