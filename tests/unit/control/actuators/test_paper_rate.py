from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tidegate.control.actuators.paper_rate import (
    BatchLoad,
    FixedRate,
    RateAdaptation,
    RateLoad,
    RateSettings,
)
from tidegate.errors import FlowError

HALF = RateLoad(offered=1000, fetched=500)
ALL = replace(HALF, fetched=1000)


def test_fewer_rows_fetched_than_offered_lower_the_fraction_by_that_share() -> None:
    rate = RateAdaptation()
    assert rate.adapt(HALF) == 0.5
    assert rate.adapt(replace(HALF, fetched=800)) == pytest.approx(0.4)


def test_the_fraction_is_boosted_when_everything_was_fetched_but_never_above_one() -> None:
    rate = RateAdaptation(fraction=0.8)
    assert rate.adapt(ALL) == pytest.approx(0.96)
    assert rate.adapt(replace(ALL, fetched=1100)) == 1.0


def test_nothing_offered_counts_as_everything_fetched() -> None:
    assert RateAdaptation(fraction=0.5).adapt(replace(HALF, offered=0, fetched=0)) == pytest.approx(0.6)


def test_nothing_fetched_leaves_a_fraction_from_which_there_is_a_way_back() -> None:
    rate = RateAdaptation()
    assert rate.adapt(replace(HALF, fetched=0)) == RateSettings().fraction_min
    assert rate.adapt(ALL) > RateSettings().fraction_min


def test_a_restored_rate_goes_on_with_the_same_answers() -> None:
    rate = RateAdaptation()
    rate.adapt(HALF)
    restored = RateAdaptation.restore(json.loads(json.dumps(rate.snapshot())))
    assert restored.fraction == rate.fraction == 0.5
    assert restored.adapt(ALL) == rate.adapt(ALL)


def test_a_batch_that_took_twice_its_time_fetched_half_of_its_rows() -> None:
    def batch(busy_seconds: float) -> BatchLoad:
        return BatchLoad.of(100, busy_seconds, budget_seconds=1.0)

    assert batch(2.0).fitted == 50
    assert batch(0.5).fitted == batch(0.0).fitted == 100


@pytest.mark.parametrize("batch_seconds", [0.5, 1.0, 1.1, 2.5, 5.0, 12.0])
def test_counts_add_up_over_a_period_whatever_the_length_of_batches(batch_seconds: float) -> None:
    """A period of 5 seconds, and half of the rows fit."""
    rate = RateAdaptation(RateSettings(period_seconds=5.0))
    passed = 0.0
    while rate.fraction == 1.0:
        rate.add(BatchLoad(100, 50, seconds=batch_seconds))
        passed += batch_seconds
    assert rate.fraction == 0.5
    assert abs(passed - 5.0) <= max(batch_seconds / 2, batch_seconds - 5.0)


def test_rows_that_wait_at_the_sources_count_once_a_period() -> None:
    rate = RateAdaptation(RateSettings(period_seconds=2.0))
    rate.add(BatchLoad(100, 100, waiting=100, seconds=1.0))
    assert rate.add(BatchLoad(100, 100, waiting=200, seconds=1.0)) == 0.5


def test_a_restored_period_goes_on_where_it_was() -> None:
    rate = RateAdaptation(RateSettings(period_seconds=3.0))
    rate.add(BatchLoad(100, 20, seconds=1.0))
    restored = RateAdaptation.restore(json.loads(json.dumps(rate.snapshot())), rate.settings)
    for _ in range(2):
        assert restored.add(BatchLoad(100, 20, seconds=1.0)) == rate.add(BatchLoad(100, 20, seconds=1.0))
    assert rate.fraction == pytest.approx(0.2)


def test_a_fixed_rate_does_not_move() -> None:
    assert FixedRate(0.3).adapt(HALF) == FixedRate(0.3).adapt(ALL) == 0.3


@pytest.mark.parametrize("wrong", [{"boost": 1.0}, {"fraction_min": 0.0}])
def test_settings_that_cannot_recover_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(FlowError, match=r"SHED_SETTING_INVALID.*boost above 1"):
        RateSettings(**wrong)


def test_a_fixed_fraction_above_one_is_refused() -> None:
    with pytest.raises(FlowError, match=r"SHED_SETTING_INVALID.*between 0 and 1"):
        FixedRate(1.5)
