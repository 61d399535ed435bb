"""What the keys of a first batch let foresee, and where its rows go for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.balance import BICLIQUE, Balance
from tidegate.control.balance import balancing
from tidegate.control.balance.balancing import Balanced, BalanceSettings
from tidegate.control.balance.skew_scan import FULL_MOST, load_ahead, loads_ahead
from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.route.assignment import Assignment
from tidegate.route.auto.strategy import Auto
from tidegate.route.auto.work_costs import price
from tidegate.route.hash_routing import partition_of
from tidegate.route.key_counts import SideSeen

PARTITIONS, INSTANCES = 16, 4
HOT = 5 << 60  # In partition 5.
SECOND = 1_000_000
NEAR = Within(-3 * SECOND, 3 * SECOND)


def side(rows: int, hot: int, span_us: tuple[int, int] | None = (0, SECOND)) -> SideSeen:
    """So many rows in every partition, and so many more of one key."""
    partitions = np.full(PARTITIONS, rows, np.int64)
    partitions[partition_of(np.array([HOT], np.uint64), PARTITIONS)[0]] += hot
    return SideSeen(partitions, {HOT: hot} if hot else {}, span_us)


@pytest.mark.parametrize(
    ("within", "pairs"),
    [
        (NEAR, 6 * 20 * 10),
        (Within(0, SECOND), 20 * 10),
        (Tumbling(2 * SECOND), 2 * 20 * 10),
        (Within(-SECOND // 10, 0), 20),
        (Within(0, 3600 * SECOND), FULL_MOST * 20 * 10),
        (Unbounded(), FULL_MOST * 20 * 10),
    ],
)
def test_a_key_finds_as_many_pairs_as_full_windows_will_hold(
    within: Within | Tumbling | Unbounded, pairs: float
) -> None:
    load = load_ahead((side(0, 20), side(0, 10)), within)
    assert load.keys.matches.tolist() == [pytest.approx(pairs, abs=1)]
    assert load.partitions.matches.sum() == load.keys.matches.sum()


def test_a_key_that_only_one_side_tells_is_taken_to_be_usual_on_the_other() -> None:
    hot, others = side(0, 500), replace(side(30, 0), usual=0.5)
    assert load_ahead((hot, others), NEAR).keys.matches.tolist() == [6 * 250]
    assert load_ahead((hot, replace(others, usual=0.0)), NEAR).keys.matches.tolist() == [0]


@pytest.mark.parametrize("usual", [0.2, 4.0])
def test_it_is_foreseen_how_far_the_work_of_a_key_swings(usual: float) -> None:
    """Four rows of one side, by chance, meet thousands of the other: four give or take two."""
    hot, others = side(0, 1500), replace(side(30, 0), usual=usual)
    load = load_ahead((hot, others), NEAR)
    costs = price(load.keys, np.array([0.0, 0.0, 1.0, 0.0, 0.0]), both=True)
    # In stored rows of three seconds, and as many again that come while the four are stored.
    drawn = np.random.default_rng(3).poisson(usual, 50_000) * 3 * 1500
    assert costs.whole.tolist() == [pytest.approx(2 * drawn.mean(), rel=0.05)]
    assert costs.chance.tolist() == [pytest.approx(drawn.var(), rel=0.05)]


def test_a_side_that_is_not_kept_is_not_stored() -> None:
    load = load_ahead((side(0, 20), side(0, 10)), Within(-6 * SECOND, 0))
    assert load.keys.stored.tolist() == [[pytest.approx(0, abs=0.01)], [pytest.approx(60)]]
    assert load.keys.matches.tolist() == [6 * 20 * 10]


def test_a_long_backlog_finds_no_more_than_windows_hold() -> None:
    day = side(0, 1000, (0, 86_400 * SECOND))
    assert load_ahead((day, day), NEAR).keys.matches.tolist() == [round(1000 * 1000 * 6 / 86_400)]


def test_new_rows_of_one_side_look_at_the_other() -> None:
    load = load_ahead((side(2, 20), side(3, 10)), NEAR)
    rows = [2 * PARTITIONS + 20, 3 * PARTITIONS + 10]
    assert load.partitions.probes.sum(axis=1).tolist() == rows[::-1]
    assert load.keys.probes.tolist() == [[10], [20]]
    # A row stays for three seconds, and the batch covers one.
    assert load.partitions.stored.sum(axis=1).tolist() == pytest.approx([3 * one for one in rows], rel=1e-3)
    assert load.keys.stored[:, 0].tolist() == pytest.approx([60, 30], rel=1e-3)
    assert load.homes.tolist() == [5]


def test_in_the_biclique_each_side_finds_half_of_the_pairs() -> None:
    left, right = loads_ahead((side(2, 20), side(3, 10)), NEAR, groups=2)
    assert left.keys.matches.sum() == right.keys.matches.sum() == 600
    assert (left.partitions.stored[1].sum(), right.partitions.stored[0].sum()) == (0, 0)
    assert left.partitions.stored[0].sum() == pytest.approx(3 * (2 * PARTITIONS + 20), rel=1e-3)


def test_a_hot_key_is_split_at_first_even_where_chance_might_explain_it() -> None:
    """Nothing has to move for it. Sixty left rows of a key meet six right ones, give or take two."""
    left, _ = loads_ahead((side(2, 60), side(2, 6)), NEAR, groups=2)
    auto = Auto(scattering=0.0)
    assert auto.begin(left, auto.first(PARTITIONS, 2)).keys == {HOT: (0, 1)}


def test_a_batch_without_rows_foresees_nothing() -> None:
    first = Auto().first(PARTITIONS, INSTANCES)
    assert Auto().begin(load_ahead((side(0, 0, None), side(0, 0, None)), NEAR), first) is first


def begun(left: SideSeen, right: SideSeen, **knobs: float) -> Assignment:
    auto = Auto(**knobs)  # type: ignore[arg-type]
    return auto.begin(load_ahead((left, right), NEAR), auto.first(PARTITIONS, INSTANCES))


def test_a_key_heavier_than_a_share_is_split_before_it_is_stored() -> None:
    assert len(begun(side(100, 2000), side(100, 2000)).keys[HOT]) == INSTANCES


def test_even_keys_stay_where_hashing_puts_them() -> None:
    assert begun(side(1000, 0), side(1000, 0)) == Auto().first(PARTITIONS, INSTANCES)


def test_work_too_short_to_scatter_is_left_whole() -> None:
    assert not begun(side(10, 100), side(10, 100)).keys
    assert begun(side(10, 100), side(10, 100), scattering=0.0).keys


@given(st.lists(st.integers(0, 5000), min_size=PARTITIONS, max_size=PARTITIONS), st.integers(0, 20_000))
def test_what_is_begun_with_is_never_worse_than_hashing(rows: list[int], hot: int) -> None:
    made = SideSeen(
        np.array(rows, np.int64) + side(0, hot).partitions, {HOT: hot} if hot else {}, (0, SECOND)
    )
    load, first = load_ahead((made, made), NEAR), Auto().first(PARTITIONS, INSTANCES)
    begin = Auto().begin(load, first)
    assert heaviest(begin, rows, hot) <= heaviest(first, rows, hot)


def heaviest(assignment: Assignment, rows: list[int], hot: int) -> float:
    """Work of the heaviest instance, counted anew: 8 for a row of either side, 1 for a pair."""
    places = assignment.keys.get(HOT, (assignment.table[5],))
    columns = assignment.columns.get(HOT, 1)
    loads = np.zeros(INSTANCES)
    for partition, owner in enumerate(assignment.table):
        loads[owner] += 16 * rows[partition]
    if hot:
        lines = len(places) // columns
        whole = 6 * hot * hot + 8 * hot
        loads[list(places)] += whole / len(places) + 4 * hot / lines + 4 * hot / columns
    return float(loads.max())


SETTINGS = BalanceSettings(Balance(), PARTITIONS, {"near": Balanced(), "whole": Balanced(scatters=False)})


def empty(settings: BalanceSettings = SETTINGS, *pieces: Piece) -> Manifest:
    return Manifest(-1, {}, {}, {}, balancing.first(settings, INSTANCES), pieces)


def test_the_routing_of_the_first_plan_is_what_the_keys_ask_for() -> None:
    ahead = loads_ahead((side(100, 2000), side(100, 2000)), NEAR, 1)
    after = balancing.begun(SETTINGS, empty(), {"near": ahead, "whole": ahead})
    assert len(after.routing["near"].left.keys[HOT].stores) == INSTANCES
    # Who may not have copies is not split.
    assert len(after.routing["whole"].left.keys[HOT].stores) == 1
    routing, cuts, known = balancing.reroute(SETTINGS, after, None, {})
    assert (routing, cuts) == (after.routing, {})
    assert known["near"]["wanted"][0]["keys"]
    # Nothing moved, so nobody is told of a migration.
    assert after.routing["near"].version == empty().routing["near"].version


def test_only_who_balances_by_cost_and_has_no_rows_looks_first() -> None:
    assert balancing.scans_keys_first(SETTINGS, empty()) == ("near", "whole")
    held = Piece("near", 0, 0, 0, 1, 0, 9, (0, 0), False, (0,), (0, 1), ByteRange("s/0", 0, 100, "x"))
    assert balancing.scans_keys_first(SETTINGS, empty(SETTINGS, held)) == ("whole",)
    for name in ("hash", "fastjoin", "ls_stream"):
        other = BalanceSettings(Balance(strategy=name), PARTITIONS, {"near": Balanced()})
        assert balancing.scans_keys_first(other, empty(other)) == ()
    keyless = BalanceSettings(Balance(), PARTITIONS, {"near": Balanced(keyed=False)})
    assert balancing.scans_keys_first(keyless, empty(keyless)) == ()


def test_the_biclique_begins_with_a_place_for_each_side() -> None:
    settings = BalanceSettings(Balance(topology=BICLIQUE), PARTITIONS, {"near": Balanced()})
    ahead = loads_ahead((side(100, 2000), side(100, 2000)), NEAR, 2)
    routing = balancing.begun(settings, empty(settings), {"near": ahead}).routing["near"]
    assert routing.apart is not None
    assert {len(one.keys[HOT].stores) for one in routing.sides} == {INSTANCES // 2}
