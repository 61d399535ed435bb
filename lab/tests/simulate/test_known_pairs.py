"""A condition that only looks matches up finds what comparing would find."""

from __future__ import annotations

import numpy as np

from tidegate.control.actuators.adaptive import AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate
from tidegate.control.actuators.policy import Policy, RandomDropPolicy
from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import item_sets
from tidegate.join.sets.thresholds import Overlap
from tidegate_lab.simulate.join.basic_windows import Ranges, Windows
from tidegate_lab.simulate.join.counted_conditions import Condition, CountedOverlap
from tidegate_lab.simulate.join.known_pairs import KnownPairs, identities
from tidegate_lab.simulate.join.machine import SECOND_US, Machine, Stream, paper_streams
from tidegate_lab.simulate.join.stream_join import StreamJoin
from tidegate_lab.workloads.selective_join import Steps, Workload, draw

STEPS = (Steps(((20.0, 30.0),)), Steps(((20.0, 50.0),)))
WINDOWS = Windows((4 * SECOND_US, 7 * SECOND_US), SECOND_US)
#: Too slow: rows overflow, so that stored rows have gaps.
MACHINE = Machine(3000.0)


def known() -> tuple[tuple[Stream, Stream], Condition]:
    left, right = draw(Workload(), STEPS)
    first, second = (item_sets(rows.bounds, rows.items, 100) for rows in (left, right))
    everywhere = np.zeros(len(first), np.int64), np.full(len(first), len(second))
    chunks = list(InvertedLists(Overlap(2)).prepare(second).find(first, *everywhere, 1_000_000))
    rows, places = (np.concatenate(part) for part in zip(*chunks, strict=True))
    streams = (
        Stream(left.times_us, identities(len(first), 0)),
        Stream(right.times_us, identities(len(second), 1)),
    )
    return streams, KnownPairs(rows, places, (len(first), len(second)))


def outputs(streams: tuple[Stream, Stream], condition: Condition, policy: Policy) -> list[int]:
    trace = StreamJoin(streams, WINDOWS, condition, MACHINE).run(policy, 20)
    return [int(found) for found in trace.ticks("outputs")]


def test_the_same_matches_are_found_as_by_comparing_with_rows_lost_and_parts_skipped() -> None:
    compared = paper_streams(Workload(), STEPS)
    for policy in (RandomDropPolicy, AdaptiveShedding):
        fraction = 1.0 if policy is RandomDropPolicy else 0.4
        mine = outputs(*known(), policy(WINDOWS, FixedRate(fraction)))
        assert mine == outputs(compared, CountedOverlap(2), policy(WINDOWS, FixedRate(fraction)))
        assert sum(mine) > 0


def test_without_rows_or_stored_rows_nothing_is_found() -> None:
    pairs = KnownPairs(np.array([0]), np.array([0]), (1, 1))
    empty = Ranges(np.zeros((1, 3), np.int64), np.zeros((1, 3), np.int64))
    assert pairs.count(identities(1, 0), identities(1, 1), empty).tolist() == [[0, 0, 0]]
    none = Ranges(np.zeros((0, 3), np.int64), np.zeros((0, 3), np.int64))
    assert pairs.count(identities(0, 0), identities(1, 1), none).shape == (0, 3)
