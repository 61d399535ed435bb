"""What balancing is told, what it refuses, and how many instances it asks for."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from tidegate.api.balance import Balance
from tidegate.control.balance import balancing
from tidegate.control.balance.balancing import Balanced, BalanceSettings
from tidegate.control.balance.loads import loads_of
from tidegate.errors import FlowError, StateError
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import KeyLoad, PartitionLoad, TaskReport, TaskSeconds
from tidegate.model.routing import Place, Placement, Routing
from tidegate.policies import LsStream
from tidegate.route.assignment import Assignment
from tidegate.route.load import Load, no_work
from tidegate.route.strategy import Memory

KEY = 3 << 62  # In the last of four partitions.


def report(
    instance: int, partitions: tuple[PartitionLoad, ...], keys: tuple[KeyLoad, ...] = ()
) -> TaskReport:
    return TaskReport("near", instance, seconds=TaskSeconds(0.5), partitions=partitions, keys=keys)


def piece(side: int, partitions: tuple[int, ...], bounds: tuple[int, ...]) -> Piece:
    data = ByteRange(f"s/{side}", 0, 100, "x")
    return Piece("near", side, 0, 0, bounds[-1], 0, 9, (0, 0), False, partitions, bounds, data)


def manifest(routing: Routing, *pieces: Piece) -> Manifest:
    return Manifest(5, {}, {}, {}, {"near": routing}, pieces)


def test_a_key_with_a_place_of_its_own_is_not_counted_in_its_partition() -> None:
    placement = Placement((0, 0, 1, 1, 0), keys={KEY: Place((4,), (4,))})
    state = manifest(
        Routing(1, 2, placement), piece(0, (0, 3, 4), (0, 2, 2, 7, 7, 17)), piece(1, (3, 4), (0, 1, 1, 4))
    )
    reports = [
        report(0, (PartitionLoad(0, (2, 0)), PartitionLoad(3, (6, 1), comparisons=30)),
               (KeyLoad(KEY, (10, 3), (6, 1), 30),)),
        report(1, (PartitionLoad(3, (4, 5), comparisons=9),)),
    ]  # fmt: skip
    (load,) = loads_of("near", reports, state, 4)
    assert load.partitions.stored.tolist() == [[2, 0, 0, 5], [0, 0, 0, 1]]
    # New right rows look at stored left ones, and the other way round.
    assert load.partitions.probes.tolist() == [[0, 0, 0, 5], [2, 0, 0, 4]]
    assert load.partitions.matches.tolist() == [0, 0, 0, 9]
    assert load.codes.tolist() == [KEY]
    assert load.homes.tolist() == [3]
    assert (load.keys.stored.tolist(), load.keys.probes.tolist()) == ([[10], [3]], [[1], [6]])
    assert load.seconds.tolist() == [0.5, 0.5]


def test_in_the_biclique_each_side_has_a_load_of_its_own() -> None:
    routing = Routing(0, 3, Placement((0, 0, 1, 1)), Placement((2, 2, 2, 2)))
    state = manifest(routing, piece(0, (1,), (0, 4)), piece(1, (2,), (0, 6)))
    reports = [
        report(0, (PartitionLoad(1, (4, 0), comparisons=8),)),
        report(1, ()),
        report(2, (PartitionLoad(2, (0, 6), comparisons=5),)),
    ]
    left, right = loads_of("near", reports, state, 4)
    assert left.partitions.stored.tolist() == [[0, 4, 0, 0], [0] * 4]
    assert right.partitions.stored.tolist() == [[0] * 4, [0, 0, 6, 0]]
    assert left.partitions.probes.tolist() == [[0, 0, 6, 0], [0] * 4]
    assert (left.partitions.matches.sum(), right.partitions.matches.sum()) == (8, 5)
    assert (len(left.seconds), len(right.seconds)) == (2, 1)


def settings(balance: Balance, seconds: float | None = None, **join: bool) -> BalanceSettings:
    return BalanceSettings(balance, 8, {"near": Balanced(**join)}, seconds)


@pytest.mark.parametrize(
    ("asked", "instances", "told"),
    [
        (settings(Balance(topology="biclique")), 1, "BALANCE_INSTANCES_INVALID.*biclique"),
        (settings(Balance(topology="biclique"), scatters=False), 4, "BALANCE_STRATEGY_UNSUPPORTED.*near"),
        (settings(Balance(strategy="random"), scatters=False), 4, "BALANCE_STRATEGY_UNSUPPORTED.*near"),
        (settings(Balance(scale=(1, 4))), 2, "BALANCE_SCALE_WITHOUT_BUDGET.*trigger="),
        (settings(Balance(scale=(1, 9)), 1.0), 2, "BALANCE_INSTANCES_INVALID.*9 instances, 8 partitions"),
        (settings(Balance()), 9, "BALANCE_INSTANCES_INVALID.*9 instances, 8 partitions"),
        (settings(Balance(topology="biclique")), 17, "BALANCE_INSTANCES_INVALID.*9 instances, 8 partitions"),
        (
            settings(Balance(strategy=LsStream(speeds=(1.0, 2.0)))),
            3,
            "BALANCE_SETTING_INVALID.*one weight per instance",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_at_the_start(
    asked: BalanceSettings, instances: int, told: str
) -> None:
    with pytest.raises(FlowError, match=told):
        balancing.check(asked, instances)


def test_a_join_without_a_key_lies_together_whatever_is_asked() -> None:
    asked = settings(Balance(strategy="random", topology="biclique"), keyed=False, scatters=False)
    balancing.check(asked, 2)
    routing = balancing.first(asked, 2)["near"]
    assert routing.apart is None
    assert not routing.scattered


def test_more_instances_are_asked_for_at_once_where_the_heaviest_takes_too_long() -> None:
    asked = settings(Balance(scale=(1, 8)), 1.0)
    loads = {"near": (Load(3, no_work(8), np.array([1.5, 1.5])),)}
    count, _ = balancing.scaled(asked, loads, {})
    assert count is not None
    assert count > 2
    assert balancing.scaled(settings(Balance()), loads, {}) == (None, {})


def test_another_topology_than_the_checkpoint_has_is_refused() -> None:
    apart = balancing.first(settings(Balance(topology="biclique")), 4)["near"]
    state = manifest(apart, piece(0, (1,), (0, 4)))
    with pytest.raises(StateError, match="BALANCE_TOPOLOGY_CHANGED"):
        balancing.reroute(settings(Balance()), state, 2, {})


class Rotating:
    """A strategy of one's own: every batch moves all partitions one instance on."""

    name = "rotating"

    def first(self, partitions: int, instances: int) -> Assignment:
        return Assignment(instances, tuple(number % instances for number in range(partitions)))

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        table = tuple((one + 1) % current.instances for one in current.table)
        return Assignment(current.instances, table), {"turns": memory.get("turns", 0) + 1}

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        return self.first(len(current.table), instances)


def test_a_strategy_of_ones_own_decides_and_remembers() -> None:
    settings = BalanceSettings(Balance(strategy=Rotating()), 4, {"near": Balanced()})
    balancing.check(settings, 2)
    routing = balancing.first(settings, 2)["near"]
    assert settings.moves
    assert routing.left.table == (0, 1, 0, 1)
    plan, load = PlainPlan(), Load(0, no_work(4))
    learnt = balancing.learn(settings, plan, {"near": (load,)}, manifest(routing))  # type: ignore[arg-type]
    assert learnt["near"]["wanted"][0]["table"] == (1, 0, 1, 0)
    assert learnt["near"]["memories"][0] == {"turns": 1}
    assert learnt["near"]["strategy"] == "rotating"


class PlainPlan:
    """A plan that remembers nothing yet."""

    balance: ClassVar[dict[str, dict[str, str]]] = {}


def test_keys_are_watched_only_where_something_could_move() -> None:
    even, uneven = (Load(0, no_work(8), unevenness=value) for value in (1.01, 1.2))
    empty = manifest(Routing(0, 2, Placement((0,) * 4 + (1,) * 4)))
    placed = manifest(Routing(1, 2, Placement((0,) * 4 + (1,) * 5, keys={KEY: Place((8,), (8,))})))
    for state, load, watched in ((empty, even, False), (empty, uneven, True), (placed, even, True)):
        assert balancing.watches_keys(settings(Balance()), state, {"near": (load,)}) is watched
    assert not balancing.watches_keys(settings(Balance(strategy="hash")), empty, {"near": (uneven,)})
