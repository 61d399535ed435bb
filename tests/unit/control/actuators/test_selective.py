from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tidegate.control.actuators.paper_rate import FixedRate, RateLoad
from tidegate.control.actuators.policy import AgeCounts, Telemetry
from tidegate.control.actuators.selective import SelectivePolicy, SelectiveSettings
from tidegate.errors import FlowError
from tidegate_lab.simulate.join.basic_windows import Windows

WINDOWS = Windows((4, 4), 1)
LOAD = RateLoad(offered=100, fetched=100)
NOTHING = AgeCounts(np.zeros(5, np.int64), np.zeros(5, np.int64))


def found(*matches: int, of: int = 10_000) -> AgeCounts:
    return AgeCounts(np.array(matches, np.int64), np.full(5, of, np.int64))


def explored(left: AgeCounts, right: AgeCounts) -> Telemetry:
    return Telemetry(LOAD, full=(left, right), chosen=(NOTHING, NOTHING))


def used(left: AgeCounts, right: AgeCounts) -> Telemetry:
    return Telemetry(LOAD, full=(NOTHING, NOTHING), chosen=(left, right))


BOTH_GOOD = explored(found(1, 900, 1, 1, 1), found(1, 1, 1, 800, 1))


def test_productive_cells_of_both_windows_are_used_at_once() -> None:
    decision = SelectivePolicy(WINDOWS, FixedRate(0.25)).adapt(BOTH_GOOD)
    left, right = decision.windows
    assert (left.order[0], right.order[0]) == (1, 3)
    assert left.fraction == pytest.approx(0.25)
    assert right.fraction == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.36, 0.7, 0.95])
def test_exploring_is_part_of_the_budget(fraction: float) -> None:
    policy = SelectivePolicy(WINDOWS, FixedRate(fraction))
    for telemetry in (BOTH_GOOD, BOTH_GOOD):
        decision = policy.decision
        chosen = sum(w.fraction for w in decision.windows) / 2
        cost = chosen + decision.full_share * decision.full_depth * (1 - chosen)
        assert cost == pytest.approx(fraction)
        assert 0 < decision.full_share <= 1
        policy.adapt(telemetry)


def test_with_everything_processed_nothing_is_explored() -> None:
    decision = SelectivePolicy(WINDOWS, FixedRate(1.0)).adapt(BOTH_GOOD)
    assert decision.full_share == 0.0
    assert [w.fraction for w in decision.windows] == [1.0, 1.0]


def test_it_searches_first_and_then_only_explores() -> None:
    policy = SelectivePolicy(WINDOWS, FixedRate(0.2))
    first = policy.decision.full_share
    assert policy.adapt(BOTH_GOOD).full_share < first / 5


def test_cells_in_use_that_find_less_than_promised_start_a_search() -> None:
    policy = SelectivePolicy(WINDOWS, FixedRate(0.2))
    calm = policy.adapt(BOTH_GOOD).full_share
    kept_word = AgeCounts(np.array([0, 450, 0, 0, 0]), np.array([0, 5_000, 0, 0, 0]))
    assert policy.adapt(used(kept_word, NOTHING)).full_share == calm
    broke_it = AgeCounts(np.array([0, 20, 0, 0, 0]), np.array([0, 5_000, 0, 0, 0]))
    decision = policy.adapt(used(broke_it, NOTHING))
    assert decision.full_share > 5 * calm
    assert decision.windows[0].fraction < 0.05 < decision.windows[1].fraction


def test_after_a_move_old_counts_are_worth_almost_nothing_in_every_cell() -> None:
    policy = SelectivePolicy(WINDOWS, FixedRate(0.2))
    policy.adapt(BOTH_GOOD)
    broke_it = AgeCounts(np.array([0, 20, 0, 0, 0]), np.array([0, 5_000, 0, 0, 0]))
    policy.adapt(used(broke_it, NOTHING))
    left, right = (counts["comparisons"] for counts in policy.snapshot()["evidence"])
    assert left == pytest.approx([100, 5_100, 100, 100, 100])
    assert right == pytest.approx([100] * 5)


def test_a_cell_that_turns_productive_is_used_after_one_period() -> None:
    policy = SelectivePolicy(WINDOWS, FixedRate(0.2))
    for _ in range(10):
        policy.adapt(BOTH_GOOD)
    turned = explored(found(1, 900, 1, 1, 700, of=10_000), found(1, 1, 1, 800, 1))
    assert policy.adapt(turned).windows[0].order[:2] == (1, 4)
    values = policy.snapshot()["evidence"][0]
    assert values["matches"][4] / values["comparisons"][4] > 0.06


def test_chance_alone_changes_little() -> None:
    policy, random = SelectivePolicy(WINDOWS, FixedRate(0.2)), np.random.default_rng(3)
    shares = set()
    for _ in range(50):
        left, right = (AgeCounts(random.poisson(5.0, 5), np.full(5, 1000)) for _ in range(2))
        shares.add(round(policy.adapt(explored(left, right)).full_share, 6))
    assert len(shares) == 1


def test_a_restored_policy_goes_on_with_the_same_answers() -> None:
    policy = SelectivePolicy(WINDOWS, FixedRate(0.2))
    policy.adapt(BOTH_GOOD)
    raw = json.loads(json.dumps(policy.snapshot()))
    restored = SelectivePolicy.restore(raw, WINDOWS, FixedRate(0.2))
    assert restored.decision == policy.decision
    more = explored(found(5, 4, 900, 2, 1), found(1, 700, 3, 4, 5))
    assert restored.adapt(more) == policy.adapt(more)


@pytest.mark.parametrize(
    "wrong", [{"exploring": 0.0}, {"exploring": 0.5}, {"searching": 1.0}, {"memory": 1.0}, {"depth": 0.0}]
)
def test_settings_that_cannot_learn_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(FlowError, match="SHED_SETTING_INVALID"):
        SelectiveSettings(**wrong)
