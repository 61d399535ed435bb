from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate.sift.construction import Constructed
from tidegate.sift.partition.partitioners import PARTITIONERS
from tidegate_lab.reproduce.sifters.runs import combinations
from tidegate_lab.reproduce.sifters.runs.combinations import (
    RANDOM,
    SIFTERS,
    Setting,
    build,
    compare,
    measured,
)
from tidegate_lab.reproduce.sifters.runs.scene import Scene, scene
from tidegate_lab.workloads.sifters import Workload

WORKLOAD = Workload("skew", "skew", seed=3)
SETTING = Setting(fresh_rows=10_000)


def test_a_contender_is_a_function_of_source_setting_and_name() -> None:
    first = compare(WORKLOAD, SETTING)
    measured.cache_clear()
    scene.cache_clear()
    assert compare(WORKLOAD, SETTING) == first
    assert list(first) == [RANDOM, *SIFTERS]
    assert compare(replace(WORKLOAD, seed=4), SETTING) != first


def test_random_dropping_gives_queries_with_data_the_share_z_and_leaves_others_complete() -> None:
    one = replace(WORKLOAD, alphas=(1.0, 1.0))
    there = scene(one, SETTING.sample_rows, SETTING.fresh_rows)
    share = there.has_data.mean()
    assert 0.3 < share < 0.95
    assert measured(one, replace(SETTING, z=0.3), RANDOM).qos == pytest.approx(1 - 0.7 * share)


def test_scenes_that_differ_in_alphas_alone_share_their_rows() -> None:
    one, other = (
        scene(replace(WORKLOAD, alphas=alphas), 1000, 10_000) for alphas in ((1.0, 1.0), (1.0, 2.0))
    )
    assert one.fresh is other.fresh
    assert one.answers is other.answers
    assert (one.queries.alphas == 1).all()
    assert (other.queries.alphas > 1).all()
    assert (one.queries.boxes.low == other.queries.boxes.low).all()


def test_what_passes_beyond_z_is_dropped_by_the_server_and_wins_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sifter that drops nothing is as good as random dropping."""

    def open_gate(there: Scene, setting: Setting, name: str) -> Constructed:
        sifter = build(there, setting, name)
        return replace(sifter, thresholds=np.zeros(sifter.regions.count))

    monkeypatch.setattr(combinations, "build", open_gate)
    measured.cache_clear()
    found = measured(WORKLOAD, SETTING, "dedp")
    measured.cache_clear()
    assert found.passed == 1
    assert found.qos_unbounded == pytest.approx(1)
    assert found.qos == pytest.approx(measured(WORKLOAD, SETTING, RANDOM).qos)


def test_auto_is_told_what_queries_are_worth_and_how_high_the_load_is() -> None:
    # Wide apart: with those of Table I the same cuts may be the best by chance.
    there = scene(replace(WORKLOAD, alphas=(0.0, 4.0)), 1000, 10_000)
    heavy, light = (build(there, Setting(z=z), "auto").regions.to_json() for z in (0.1, 0.9))
    assert heavy != light
    deaf = PARTITIONERS["auto"](
        there.domain, there.sample.rows, there.sample.hits, there.queries.boxes, 16
    ).to_json()
    assert build(there, Setting(), "auto").regions.to_json() != deaf


@pytest.mark.parametrize("name", SIFTERS)
def test_with_foresight_a_sifter_passes_exactly_z_and_its_regions_give_no_less(name: str) -> None:
    plain, known = (measured(WORKLOAD, replace(SETTING, known=known), name) for known in (False, True))
    assert known.passed == pytest.approx(SETTING.z)
    assert known.qos > plain.qos


def test_a_setting_that_is_not_shrunk_passes_the_sample_in_exactly_the_share_z() -> None:
    there = scene(WORKLOAD, 1000, 10_000)
    printed = build(there, Setting(shrink=False), "dedp")
    shares = printed.frequencies @ (1 - printed.thresholds)
    assert shares == pytest.approx(0.5)
    assert (printed.frequencies != build(there, Setting(), "dedp").frequencies).any()
