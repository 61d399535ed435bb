from __future__ import annotations

import numpy as np
from tests.unit.route.loads import load_of, mixed_codes, one_sided, zipf_counts

from tidegate.route.baselines import ContRandStrategy, HashOnly
from tidegate.route.fastjoin.imbalance import imbalance, instance_work
from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate_lab.simulate.balance.recorded import Recorded

CODES = mixed_codes(400)
STORED, PROBES = (one_sided(zipf_counts(400, 0.9, 20_000, seed).tolist()) for seed in (1, 2))


def test_loads_after_a_decision_are_those_of_the_same_rows_counted_anew() -> None:
    recorded = Recorded(FastJoinStrategy(1.1), detailed=True)
    current = recorded.first(64, 8)
    for batch in range(6):
        load = load_of(CODES, STORED, PROBES, current, batch)
        following, _ = recorded.decide(load, current, {})
        anew = instance_work(load_of(CODES, STORED, PROBES, following), following).loads
        np.testing.assert_allclose(recorded.decisions[-1].loads_after, anew)
        assert imbalance(anew) < imbalance(recorded.decisions[-1].work.loads)
        current = following


def test_loads_stay_as_they_are_where_nothing_moves() -> None:
    for strategy in (HashOnly(), ContRandStrategy(2)):
        recorded = Recorded(strategy, detailed=True)
        current = recorded.first(64, 8)
        recorded.decide(load_of(CODES, STORED, PROBES, current), current, {})
        (decision,) = recorded.decisions
        assert decision.moved_work is None
        assert decision.loads_after.tolist() == decision.work.loads.tolist()
