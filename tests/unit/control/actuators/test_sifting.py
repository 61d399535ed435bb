from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate.api.goal import Shed
from tidegate.api.range_queries import RangeQuery
from tidegate.control import planning
from tidegate.control.actuators.sifting import CONTROL, Offered, SiftSettings, decide, learn
from tidegate.model.manifest import Manifest
from tidegate.model.plan import PlanDecisions, ShedPlan
from tidegate.model.reports import MatchReport
from tidegate.model.samples import Sampled
from tidegate.sift.filter.decision import DROP, Counters, Gate
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.placing import frequencies, region_of
from tidegate.sift.queries.query_set import QuerySet

QUERIES = QuerySet.of(
    [RangeQuery("left", "x < 0.2"), RangeQuery("low", "y < 0.5 and s > 3")],
    dict.fromkeys("xys", "number"),
)
AXES = len(QUERIES.boxes.axes)


def draw(rows: int, seed: int = 1, nulls: float = 0.9) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    drawn = rng.random((rows, AXES))
    drawn[:, 2] = np.where(rng.random(rows) < nulls, np.nan, 10 * drawn[:, 2])
    return drawn


class Query:
    """A match whose rows are dropped at the sources."""

    def __init__(self) -> None:
        self.settings = SiftSettings(Shed(), {"m": QUERIES}, 1.0, 1.0)
        self.manifest: Manifest = planning.first_manifest({}, ["s"], {}, 0)

    @property
    def sifter(self) -> Sifter:
        return Sifter.from_json(decide(self.settings, self.manifest)["m"])

    def learn(self, z: float, rows: int, counters: Counters, samples: int = 500) -> Sifter:
        sample = draw(samples)
        report = MatchReport(
            "m",
            0,
            0,
            0,
            None,
            0,
            0,
            0.0,
            sampled=samples,
            sample=Sampled(sample, np.zeros(samples, np.int32)),
        )
        plan = planning.next_plan(
            self.manifest.batch + 1,
            self.manifest,
            {},
            10**6 * (self.manifest.batch + 2),
            PlanDecisions(shed=ShedPlan(sifters=decide(self.settings, self.manifest))),
        )
        offered = Offered({"m": rows}, 1.0, False, {"m": counters})
        learnt = learn(self.settings, self.manifest, plan, [report], offered, {"m": z})
        self.manifest = replace(self.manifest, batch=plan.batch, control={CONTROL: learnt})
        return self.sifter


def passing(sifter: Sifter, rows: int = 100_000) -> float:
    """The share of fresh rows that pass at the edge."""
    gate = Gate(sifter)
    return float((gate.decide(list(draw(rows, seed=2).T)) != DROP).mean())


@pytest.mark.parametrize("rows", [500, 2_000, 10_000, 10**6])
@pytest.mark.parametrize("z", [0.05, 0.2, 0.5, 0.9])
def test_z_of_the_rows_pass_at_every_share_of_samples_and_with_many_nulls(z: float, rows: int) -> None:
    query = Query()
    sifter = query.learn(z, rows, Counters.zero(1))
    assert sifter.sample_share == pytest.approx(min(0.25, z / 2, 250 / rows))
    region = region_of(sifter.regions, draw(200_000, seed=3))
    counted = Counters.zero(sifter.regions.count)
    counted.offered[:] = np.bincount(region, minlength=sifter.regions.count)
    corrected = query.learn(z, rows, counted)
    assert passing(corrected) == pytest.approx(z, abs=0.01 * max(z, 0.2))


def test_the_sources_counts_by_region_correct_the_thresholds() -> None:
    query = Query()
    sifter = query.learn(0.5, 10_000, Counters.zero(1))
    rows = draw(300_000, seed=3, nulls=0.6)
    rows[:, :2] **= 2
    gate = Gate(sifter)
    verdicts = gate.decide(list(rows.T))
    assert abs((verdicts != DROP).mean() - 0.5) > 0.01, "the sample was of other rows"
    corrected = query.learn(0.5, 10_000, gate.counters)
    assert corrected.version == sifter.version + 1
    shares = frequencies(sifter.regions, rows)
    dropped = shares @ corrected.thresholds * (1 - corrected.sample_share)
    assert dropped == pytest.approx(0.5)


def test_few_rows_correct_nothing() -> None:
    query = Query()
    sifter = query.learn(0.5, 10_000, Counters.zero(1))
    gate = Gate(sifter)
    gate.decide(list(draw(200, seed=3).T))
    assert query.learn(0.5, 10_000, gate.counters) == sifter


def test_counts_under_another_sifter_are_not_used() -> None:
    query = Query()
    sifter = query.learn(0.5, 10_000, Counters.zero(1))
    other = Counters(*(np.full(3, 10**6) for _ in range(3)))
    assert query.learn(0.5, 10_000, other) == sifter


def test_the_share_of_samples_changes_with_the_version_alone() -> None:
    query = Query()
    first = query.learn(0.5, 10_000, Counters.zero(1))
    assert query.learn(0.5, 15_000, Counters.zero(0)) == first, "not by much"
    assert query.learn(0.5, 0, Counters.zero(0)) == first, "nothing came in between"
    fewer = query.learn(0.5, 100_000, Counters.zero(0))
    assert (fewer.version, fewer.sample_share) == (first.version + 1, 0.0025)
    assert passing(fewer) == pytest.approx(passing(first), abs=0.002)
