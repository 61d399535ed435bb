from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation, RateLoad
from tidegate.control.actuators.policy import (
    AgeCounts,
    Decision,
    RandomDropPolicy,
    Telemetry,
    WindowReductionPolicy,
)
from tidegate.errors import FlowError
from tidegate.model.codec import decode, encode_exactly
from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.partial_processing import partial_processing

WINDOWS = Windows((3, 3), 1)
LOAD = RateLoad(offered=100, fetched=50)


def counts(*matches: int) -> AgeCounts:
    return AgeCounts(np.array(matches, np.int64), np.full(len(matches), 100, np.int64))


NOTHING = counts(0, 0, 0, 0)
#: The right window is the better one, and in it ages 2 and 1.
CORRELATED = Telemetry(LOAD, full=(counts(1, 2, 3, 4), counts(1, 5, 9, 2)), chosen=(NOTHING, NOTHING))


def test_random_drop_keeps_the_root_of_the_fraction_and_joins_the_rest_fully() -> None:
    decision = RandomDropPolicy(WINDOWS, FixedRate(0.25)).decision
    assert decision.keep_share == 0.5
    assert [w.fraction for w in decision.windows] == [1.0, 1.0]


def test_window_reduction_shortens_the_windows() -> None:
    policy = WindowReductionPolicy(WINDOWS, RateAdaptation())
    assert policy.decision.reach == 1.0
    assert policy.adapt(CORRELATED).reach == 0.5


def test_partial_processing_takes_the_newest_part_and_samples_nothing() -> None:
    decision = partial_processing(WINDOWS, RateAdaptation()).adapt(CORRELATED)
    assert [w.fraction for w in decision.windows] == [0.5, 0.5]
    assert [w.order for w in decision.windows] == [(0, 1, 2, 3)] * 2
    assert decision.full_share == 0.0


def test_time_correlation_orders_both_windows_by_what_the_sample_found() -> None:
    policy = AdaptiveShedding(WINDOWS, RateAdaptation(), AdaptiveSettings(direction=False))
    decision = policy.adapt(CORRELATED)
    assert [w.order for w in decision.windows] == [(3, 2, 1, 0), (2, 1, 3, 0)]
    assert [w.fraction for w in decision.windows] == [0.5, 0.5]
    assert decision.full_share == pytest.approx(0.05)


def test_direction_alone_prefers_a_window_and_leaves_its_order() -> None:
    policy = AdaptiveShedding(WINDOWS, FixedRate(0.3), AdaptiveSettings(time_correlation=False))
    decision = policy.adapt(CORRELATED)
    assert [w.fraction for w in decision.windows] == pytest.approx([0.0, 0.6])
    assert [w.order for w in decision.windows] == [(0, 1, 2, 3)] * 2
    assert decision.full_share == pytest.approx(0.03)


def test_with_everything_processed_nothing_is_skipped_whatever_was_learnt() -> None:
    decision = AdaptiveShedding(WINDOWS, FixedRate(1.0)).adapt(CORRELATED)
    assert [w.fraction for w in decision.windows] == [1.0, 1.0]


def test_what_chosen_rows_found_teaches_the_papers_policy_nothing() -> None:
    policy = AdaptiveShedding(WINDOWS, FixedRate(0.3))
    before = policy.decision
    unsampled = Telemetry(LOAD, full=(NOTHING, NOTHING), chosen=CORRELATED.full)
    assert policy.adapt(unsampled) == before


def test_a_restored_policy_goes_on_with_the_same_answers() -> None:
    policy = AdaptiveShedding(WINDOWS, RateAdaptation())
    policy.adapt(CORRELATED)
    raw = json.loads(json.dumps(policy.snapshot()))
    restored = AdaptiveShedding.restore(raw, WINDOWS, RateAdaptation.restore(raw["rate"]))
    assert restored.decision == policy.decision
    more = replace(CORRELATED, full=(counts(9, 0, 0, 8), counts(0, 0, 0, 1)))
    assert restored.adapt(more) == policy.adapt(more)


def test_a_decision_comes_back_from_a_plan() -> None:
    decision = AdaptiveShedding(WINDOWS, FixedRate(0.3)).adapt(CORRELATED)
    assert decode(Decision, encode_exactly(decision)) == decision


@pytest.mark.parametrize(("lengths", "slot"), [((0, 0), 1), ((-1, 5), 1), ((5, 5), -1)])
def test_a_join_without_windows_is_refused(lengths: tuple[int, int], slot: int) -> None:
    with pytest.raises(FlowError, match="window on at least one side"):
        Windows(lengths, slot)


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(FlowError, match="SHED_SETTING_INVALID"):
        AdaptiveSettings(sampling=0.0)
