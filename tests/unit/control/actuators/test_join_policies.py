"""Join policies by name, in the windows of a real join; and one of the user's own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate import policies
from tidegate.api.goal import Shed
from tidegate.control import planning
from tidegate.control.actuators import join_shedding
from tidegate.control.actuators.join_policies import OrderedShape, kind_of, policy_of, shape_of
from tidegate.control.actuators.join_shedding import BatchTime, FromGoal, OverloadSettings
from tidegate.control.actuators.paper_rate import RateLoad
from tidegate.control.actuators.policy import AgeCounts, Decision, ProbeOrder, Telemetry
from tidegate.control.levels import CONTROL
from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.reports import ProbeCounts, SideRows, TaskReport
from tidegate.model.skip_plan import Skipping

SECOND = 1_000_000
#: The left window has 20 seconds in basic windows of 2, the right one 2 seconds in basic windows of 0.2.
UNEVEN = OperatorTraits("near", ("a", "b"), Within(-2 * SECOND, 20 * SECOND), (False, False), (False, False))
EVEN = replace(UNEVEN, within=Within(-10 * SECOND, 10 * SECOND))
LOAD = RateLoad(100, 100)


def counts(operator: OperatorTraits, values: tuple[float, float]) -> tuple[AgeCounts, AgeCounts]:
    """Rows that come in order: nothing lies ahead of them. Matches per comparison of both windows."""
    found = []
    for side, value in zip(OrderedShape(operator).sides, values, strict=True):
        comparisons = np.where(np.arange(side.count) >= side.ahead, 1000.0, 0.0)
        found.append(AgeCounts(value * comparisons, comparisons))
    return found[0], found[1]


def none(operator: OperatorTraits) -> tuple[AgeCounts, AgeCounts]:
    left, right = (AgeCounts(*np.zeros((2, side.count))) for side in OrderedShape(operator).sides)
    return left, right


@pytest.mark.parametrize(("values", "preferred"), [((0.01, 0.015), 1), ((0.015, 0.01), 0)])
def test_the_more_productive_window_is_preferred_however_long_it_is(
    values: tuple[float, float], preferred: int
) -> None:
    shed, shape = Shed(join="adaptive"), shape_of(Shed(join="adaptive"), UNEVEN)
    policy = policy_of(shed, shape, 0.3, None)
    told = Telemetry(LOAD, counts(UNEVEN, values), none(UNEVEN), seconds=5.0)
    decision = policy.adapt(shape.seen(told))
    assert decision.windows[preferred].fraction > decision.windows[1 - preferred].fraction
    left, right = (w * one.fraction for w, one in zip((20, 2), decision.windows, strict=True))
    assert left + right == pytest.approx(0.3 * 22)


def test_pairs_with_newer_right_rows_count_for_the_left_window_and_are_probed_like_it() -> None:
    """Left rows that probe right rows ahead of them: the right rows come a basic window later."""
    shape = shape_of(Shed(join="adaptive"), EVEN)
    ahead = shape.sides[1].ahead
    found, probed = np.zeros((2, shape.sides[1].count))
    found[ahead - 1], probed[ahead - 1] = 30, 100
    right = AgeCounts(found, probed)
    seen = shape.seen(Telemetry(LOAD, (none(EVEN)[0], right), none(EVEN)))
    assert seen.full[0].matches.tolist() == [0, 30, *[0] * (shape.ages[0] - 2)]
    assert seen.full[1].comparisons.sum() == 0
    decision = Decision((ProbeOrder(1.0, tuple(range(11))), ProbeOrder(0.0, ())))
    _, shares = shape.shares(decision, (np.ones(21), np.ones(21)))
    assert shares == (1.0,) * ahead + (0.0,) * (21 - ahead)


@pytest.mark.parametrize(
    "within",
    [
        Within(4 * SECOND, 8 * SECOND),
        Within(-8 * SECOND, -4 * SECOND),
        Within(0, SECOND),
        Within(-SECOND, 0),
        Within(-2 * SECOND, 20 * SECOND),
        Within(0, 0),
        Tumbling(SECOND),
        Unbounded(),
    ],
)
def test_every_basic_window_counts_for_one_age_and_costs_add_up(within: Any) -> None:
    shape = shape_of(Shed(join="adaptive"), replace(EVEN, within=within))
    work = tuple(np.random.default_rng(3).uniform(1, 9, side.count) for side in shape.sides)
    seen = shape.seen(Telemetry(LOAD, none(shape_traits(within)), none(shape_traits(within)), work=work))  # type: ignore[arg-type]
    assert seen.work is not None
    assert [one.size for one in seen.work] == list(shape.ages)
    assert sum(one.sum() for one in seen.work) == pytest.approx(sum(one.sum() for one in work))
    orders = tuple(ProbeOrder(0.4, tuple(range(ages))) for ages in shape.ages)
    shares = shape.shares(Decision(orders), work)  # type: ignore[arg-type]
    done = sum(float(np.dot(part, cost)) for part, cost in zip(shares, work, strict=True))
    assert done == pytest.approx(0.4 * sum(one.sum() for one in work))


def shape_traits(within: Any) -> OperatorTraits:
    return replace(EVEN, within=within)


def manifest(shed: Shed, learnt: dict[str, Any] | None = None) -> Manifest:
    empty = planning.first_manifest({}, ["a", "b"], {}, 0)
    return replace(empty, control=learnt or {"kind": kind_of(shed)})


def batch(skipping: Skipping, best: int, explored: bool) -> TaskReport:
    """A batch in which one age of the left window has all the matches."""
    shape = OrderedShape(EVEN)
    probes = []
    for window, side in enumerate(shape.sides):
        seen = [100 if number >= side.ahead else 0 for number in range(side.count)]
        found = [50.0 * (window == 0 and number == best) for number in range(side.count)]
        counted, nothing = (tuple(seen), tuple(found)), ((0,) * side.count, (0.0,) * side.count)
        chosen, full = (nothing, counted) if explored else (counted, nothing)
        probes.append(ProbeCounts(tuple(seen), *chosen, *full))
    return TaskReport("near", 0, SideRows(offered=(100, 100)), probes=tuple(probes))


def learnt(
    settings: OverloadSettings, before: Manifest, best: int, level: float, batch_number: int
) -> Manifest:
    skipping = join_shedding.decide(settings, before, {"near": EVEN})
    plan = Plan(batch_number, batch_number * SECOND, LateRows({}), {}, {}, shed=ShedPlan(skipping))
    report = batch(skipping["near"], best, explored=skipping["near"].fraction < 1)
    work = np.ones(OrderedShape(EVEN).sides[0].count), np.ones(OrderedShape(EVEN).sides[1].count)
    given, time = FromGoal({}, {"near": level}, {"near": work}), BatchTime(0.5)
    operators = {"near": EVEN}
    control = join_shedding.learn(settings, before, plan, [report], before, operators, time, given)
    return replace(before, control={**control, CONTROL: {"levels": given.levels}})


def test_adaptive_enters_a_burst_with_the_order_that_it_learnt_before() -> None:
    shed = Shed(join=policies.Adaptive(correlation_period="2 seconds"))
    settings = OverloadSettings(shed, ("near",), 1.0, 1.0)
    now = manifest(shed)
    best = OrderedShape(EVEN).sides[0].ahead + 6
    for number in range(3):
        now = learnt(settings, now, best, 1.0, number)
    burst = learnt(settings, now, best, 0.1, 3)
    shares = join_shedding.decide(settings, burst, {"near": EVEN})["near"].shares[0]
    assert shares[best] == 1.0
    assert sorted(shares)[-4] < 1.0


@pytest.mark.parametrize(("period", "changes"), [("1 second", 1), ("3 seconds", 3)])
def test_the_order_changes_once_a_period(period: str, changes: int) -> None:
    shed = Shed(join=policies.Adaptive(correlation_period=period, direction=False))
    settings = OverloadSettings(shed, ("near",), 1.0, 1.0)
    now, first = manifest(shed), OrderedShape(EVEN).sides[0].ahead
    for number in range(changes):
        order = join_shedding.decide(settings, now, {"near": EVEN})["near"].orders[0]
        assert order[0] == 0, "nothing has changed yet"
        now = learnt(settings, now, first + 6, 0.3, number)
    assert join_shedding.decide(settings, now, {"near": EVEN})["near"].orders[0][0] == 6


DOCS = Path(__file__).parents[4] / "docs" / "overload.md"


def example() -> Shed:
    """The policy in the documentation."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "class Fading" in block)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(DOCS), "exec", dont_inherit=True), names)
    shed = names["shed"]
    assert isinstance(shed, Shed)
    return shed


def test_the_documented_policy_of_ones_own_learns_and_goes_on_from_its_snapshot() -> None:
    shed = example()
    settings = OverloadSettings(shed, ("near",), 1.0, 1.0)
    now = manifest(shed)
    best = OrderedShape(EVEN).sides[0].ahead + 6
    for number in range(2):
        now = learnt(settings, now, best, 0.3, number)
    skipping = join_shedding.decide(settings, now, {"near": EVEN})["near"]
    assert skipping.orders[0][0] == 6
    assert skipping.shares[0][best] == 1.0
    assert skipping.explore_share == pytest.approx(0.05 * 0.3)
    assert now.control["policies"]["near"]["own"]["matches"][0][6] > 0


class Broken:
    word = "broken"

    def __init__(self, decision: Any, snapshot: Any) -> None:
        self._decision, self._snapshot = decision, snapshot

    def build(self, windows: policies.Shape, snapshot: Any) -> Broken:
        return self

    def decide(self, ratio: float) -> Any:
        return self._decision

    def learn(self, telemetry: Telemetry) -> None:
        """Nothing."""

    def snapshot(self) -> Any:
        return self._snapshot


GOOD = ProbeOrder(0.5, (0, 1))


@pytest.mark.parametrize(
    "decision",
    [
        None,
        Decision((ProbeOrder(1.5, (0,)), GOOD)),
        Decision((ProbeOrder(0.5, (99,)), GOOD)),
        Decision((GOOD, GOOD), full_share=2.0),
        Decision((GOOD, GOOD), keep_share=0.5),
    ],
)
def test_a_decision_that_no_join_can_do_is_refused(decision: Any) -> None:
    shed = Shed(join=Broken(decision, {}))
    with pytest.raises(FlowError, match=r"JOIN_POLICY_DECISION.*'broken'.*fractions and full_share in 0"):
        _ = policy_of(shed, shape_of(shed, EVEN), 0.5, None).decision


@pytest.mark.parametrize("snapshot", [{"a": float("nan")}, {"a": np.zeros(2)}])
def test_a_snapshot_that_is_not_json_is_refused(snapshot: Any) -> None:
    shed = Shed(join=Broken(Decision((GOOD, GOOD)), snapshot))
    with pytest.raises(FlowError, match=r"JOIN_POLICY_SNAPSHOT.*'broken'.*Return dicts"):
        policy_of(shed, shape_of(shed, EVEN), 0.5, None).snapshot()
