"""Which operators may lack results: in the batch of the loss, downstream, and while a lost row is missed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.control.test_outcome import a_report

from tidegate.control.planning import first_manifest, next_plan
from tidegate.control.receipts.completeness import (
    CONTROL,
    EARLIER,
    SKIPPED_PAIRS,
    UPSTREAM,
    WINDOW_REDUCTION,
    Losses,
    losses_of,
)
from tidegate.control.receipts.ledger import RANDOM_DROP, SAMPLING, SIFTER, LedgerLine
from tidegate.join.within import Unbounded, Within
from tidegate.model.graph import OperatorTraits, Reader
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.reports import WorkCounts
from tidegate.model.routing import together
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US

NO = (False, False)
OPERATORS = {
    "near": OperatorTraits("near", ("a", "b"), Within(-10, 10), NO, NO),
    "far": OperatorTraits("far", ("near", "b"), Within(-100, 100), NO, NO),
}
READERS = (
    Reader("match", 0, "a", SIFTER, whole=True),
    Reader("near", 0, "match", RANDOM_DROP, whole=True, joins=True),
    Reader("near", 1, "b", RANDOM_DROP, whole=True, joins=True),
    Reader("far", 0, "near", RANDOM_DROP, whole=True, joins=True),
    Reader("far", 1, "b", RANDOM_DROP, whole=True, joins=True),
)
ALL = Skipping(1.0, ((1.0, 1.0), (1.0, 1.0)))


def state(gaps_us: dict[str, int] | None = None, seen_us: int = 1000) -> Manifest:
    first = first_manifest({}, ["a", "b"], dict.fromkeys(OPERATORS, together(0, 1, (0,))), now_us=0)
    clock = StreamClock(seen_us, seen_us, 0)
    return replace(first, clocks={"a": clock, "b": clock}, control={CONTROL: gaps_us or {}})


def lost(
    skipping: Skipping = ALL,
    *,
    before: Manifest | None = None,
    settle_us: int = 1000,
    shed: dict[Reader, dict[str, int]] | None = None,
    operators: dict[str, OperatorTraits] = OPERATORS,
    estimated: tuple[str, ...] = (),
) -> Losses:
    before = replace(before or state(), late_us=dict.fromkeys(operators, settle_us))
    plan = replace(
        next_plan(1, before, operators, now_us=0),
        settle_us=dict.fromkeys(operators, settle_us),
        shed=replace(next_plan(1, before, operators, now_us=0).shed, skipping={"near": skipping}),
    )
    lines = {reader: LedgerLine(shed=(shed or {}).get(reader, {})) for reader in READERS}
    reports = [replace(a_report("near"), work=WorkCounts(probed=3))]
    return losses_of(plan, before, state(), reports, lines, operators, estimated)


def test_nothing_left_out_is_nothing_lost() -> None:
    assert lost() == Losses({}, {})


def test_skipped_pairs_are_missing_once_there_and_for_longer_in_the_state_behind() -> None:
    losses = lost(replace(ALL, shares=((1.0, 0.5), (1.0, 1.0))))
    assert losses.why == {"near": {SKIPPED_PAIRS}, "far": {UPSTREAM}}
    assert losses.gaps_us == {"far": 1000}


def test_dropped_rows_are_missed_by_later_rows_until_their_window_is_over() -> None:
    losses = lost(shed={READERS[2]: {RANDOM_DROP: 1}})
    assert losses.why["near"] == {RANDOM_DROP}
    assert losses.gaps_us == {"near": 1000, "far": 1000}
    later = state(dict(losses.gaps_us))
    assert lost(before=later, settle_us=1010).why == {"near": {EARLIER}, "far": {UPSTREAM, EARLIER}}
    assert lost(before=later, settle_us=1011).why == {"far": {EARLIER}}
    assert lost(before=later, settle_us=1101) == Losses({}, {})


def test_what_a_sifter_dropped_is_missing_behind_it() -> None:
    losses = lost(shed={READERS[0]: {SIFTER: 7}})
    assert losses.why == {"match": {SIFTER}, "near": {UPSTREAM}, "far": {UPSTREAM}}


def test_of_sampled_rows_nothing_is_missing_and_all_that_is_computed_of_them_is_estimated() -> None:
    assert lost(shed={READERS[0]: {SAMPLING: 7}}) == Losses({}, {})
    assert lost(estimated=("near",)) == Losses({}, {}, frozenset({"near", "far"}))


def test_rows_that_were_given_up_are_missing() -> None:
    losses = lost(replace(ALL, forget_us=(900, BEGINNING_US)))
    assert losses.why["near"] == {WINDOW_REDUCTION}
    assert losses.gaps_us["near"] == 1000


def test_over_the_full_history_a_dropped_row_is_missed_for_ever() -> None:
    operators = {**OPERATORS, "near": replace(OPERATORS["near"], within=Unbounded())}
    before = state({"near": 5})
    assert EARLIER in lost(before=before, settle_us=10**15, operators=operators).why["near"]


@pytest.mark.parametrize("probed", [0, 3])
def test_a_batch_without_rows_skips_nothing_whatever_its_plan_says(probed: int) -> None:
    before = state()
    plan = replace(
        next_plan(1, before, OPERATORS, now_us=0),
        shed=replace(
            next_plan(1, before, OPERATORS, now_us=0).shed,
            skipping={"near": replace(ALL, shares=((0.0,), (0.0,)))},
        ),
    )
    lines = {reader: LedgerLine() for reader in READERS}
    found = losses_of(
        plan, before, before, [replace(a_report("near"), work=WorkCounts(probed=probed))], lines, OPERATORS
    )
    assert bool(found.why) == bool(probed)
