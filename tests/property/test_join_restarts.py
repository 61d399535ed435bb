"""A join that stops and goes on under other settings: every row is right, and every receipt is true.

Real tasks, plans, manifests and receipts, without Spark. A run may have no goal, skip pairs for good, drop
rows and forget state, or skip and repair; balance by a strategy or have its rows moved at random; judge
lateness otherwise; and begin with a batch that the run before had planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat, is_close
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import Condition
from tests.oracle.stories import HOWS, WITHIN, Batch, Story, stories
from tests.property.test_join_repair import (
    PLENTY,
    join_of,
    keeping_rows,
    repairs,
    restarted,
    without_batches,
)
from tests.property.test_join_routing import KEYS, assignments
from tests.property.test_join_skipping import exact, skippings
from tests.property.test_receipts import readers_of

from tidegate.api.balance import Balance
from tidegate.control.balance.balancing import Balanced, BalanceSettings
from tidegate.control.receipts import completeness
from tidegate.control.receipts.receipts import EXACT, BatchOutcome, receipt_of
from tidegate.join.within import Unbounded
from tidegate.model.graph import Lineage, Outlet
from tidegate.model.skip_plan import Skipping

#: What a run does with pairs: probes all, skips for good, also drops rows and state, or skips and repairs, in
#: some batches or at once.
NO_GOAL, SKIPS, DROPS, REPAIRS, PAYS = "no goal", "skips", "drops", "repairs", "pays"
LOSSY = (NO_GOAL, NO_GOAL, SKIPS, DROPS, DROPS, REPAIRS, REPAIRS, PAYS)
STRATEGIES = (None, None, "auto", "fastjoin", "ls_stream", "hash")


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


@dataclass
class Told:
    """The receipts of a story, batch by batch."""

    exact: set[int] = field(default_factory=set)
    owed: float = 0
    written_off: float = 0


class Query:
    """One checkpoint, and what its runs did."""

    def __init__(self, data: st.DataObject, how: str, within: Condition, story: Story):
        self.data, self.how, self.within, self.story = data, how, within, story
        self.partitions = data.draw(st.integers(4, 6))  # not fewer than instances
        join = replace(join_of(how, within), repaired=how == "inner")
        self.engine = PlainEngine([join], story.lateness, partitions=self.partitions, instances=1)
        self.told = Told()
        #: Batches in which pairs were skipped for good, or whose debts were given up; whether rows were, too.
        self.may_lack: set[int] = set()
        self.dropped = False
        self.kind = NO_GOAL
        self.lines = Lineage(
            ("a", "b"),
            tuple(readers_of(how)),
            (Outlet("out", "join1"),),
            self.engine.operators,
            frozenset({"join1"}),
        )

    def begin_anew(self) -> None:
        """Another run, with other settings."""
        draw, engine = self.data.draw, self.engine
        kinds = {"inner": LOSSY, "left_semi": (NO_GOAL, SKIPS, DROPS, DROPS)}.get(self.how, (NO_GOAL,))
        self.kind = draw(st.sampled_from(kinds), label="settings")
        longer = {name: draw(st.integers(0, 9)) for name in "ab"}
        engine.settings = {
            name: replace(one, lateness_us=self.story.lateness[name] + longer[name])
            for name, one in engine.settings.items()
        }
        strategy: Any = draw(st.sampled_from(STRATEGIES), label="balance")
        balance = Balance(strategy=strategy or "none")
        moving = BalanceSettings(balance, self.partitions, {"join1": Balanced()})
        engine.balance = None if strategy is None else moving

    def run(self, batch: Batch, kind: str, flush: bool = False) -> None:
        """One batch, of a run or as the run before had planned it."""
        draw, engine = self.data.draw, self.engine
        if engine.balance is None and draw(st.booleans(), label="rows move"):
            engine.assign("join1", draw(assignments(self.partitions, (*KEYS,))))
        engine.manifest = restarted(engine.manifest)
        before, first, number = engine.manifest, len(engine.reports), engine.manifest.batch + 1
        pays = kind in (REPAIRS, PAYS)
        engine.run(
            batch,
            flush=flush,
            attempts=draw(st.sampled_from([1, 1, 2])),
            skipping=self._skipping(kind),
            repair_bytes=PLENTY if pays else None,
            repairs=draw(repairs(before.debts, 5)) if pays else {},
            repair_all=kind == PAYS,
        )
        self.may_lack |= {number} if kind in (SKIPS, DROPS) else set()
        self.dropped |= kind == DROPS
        self.may_lack |= {debt.batch for debt in engine.manifest.written_off}
        self._tell(before, first)

    def _skipping(self, kind: str) -> dict[str, Skipping]:
        if kind == NO_GOAL:
            return {}
        drawn = self.data.draw(skippings(self.within))
        return {"join1": drawn if kind == DROPS else keeping_rows(drawn)}

    def _tell(self, before: Any, first: int) -> None:
        engine, plan = self.engine, self.engine.plan
        assert plan is not None
        outcome = BatchOutcome(plan, before, engine.manifest, engine.reports[first:])
        receipt, gaps = receipt_of(self.lines, outcome)
        control = {**engine.manifest.control, completeness.CONTROL: gaps}
        engine.manifest = replace(engine.manifest, control=control)
        (mine,) = (row for row in receipt["rows"] if row["kind"] == "output")
        assert not any(row["rows_unexplained"] for row in receipt["rows"])
        self.told.exact |= {plan.batch} if mine["mode"] == EXACT else set()
        self.told.owed = mine.get("debt_pairs", 0)
        self.told.written_off += mine.get("written_off_pairs", 0)
        assert bool(mine.get("written_off_pairs")) == any(
            round(debt.comparisons) for debt in engine.manifest.written_off
        )


def batch_of(story: Story) -> dict[tuple[str, int], int]:
    """By stream and number of a row: its batch; numbers are unique within a stream."""
    return {
        (stream, row[2]): number
        for number, batch in enumerate(story.batches)
        for stream in "ab"
        for row in batch.get(stream, ())
    }


@given(data=st.data())
@settings(max_examples=5 * settings().max_examples)
def test_rows_are_right_and_receipts_true_through_restarts_with_other_settings(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    hows = ("inner", "left_semi") if isinstance(within, Unbounded) else ("inner", "inner", "left_semi", *HOWS)
    how, story = data.draw(st.sampled_from(hows)), data.draw(stories(ordered=True))
    query = Query(data, how, within, story)
    for batch in story.batches:
        kind = query.kind
        if data.draw(st.booleans(), label="restart"):
            query.begin_anew()
            begun = data.draw(st.booleans(), label="begun")
            kind = kind if begun else query.kind
        query.run(batch, kind if how in ("inner", "left_semi") else NO_GOAL)
    query.run({}, PAYS if how == "inner" and data.draw(st.booleans()) else NO_GOAL, flush=True)
    engine = query.engine
    emitted = engine.emitted["join1"]
    engine.close()
    check(query, without_batches(emitted) if how == "inner" else emitted)


def check(query: Query, emitted: Counter[Flat]) -> None:
    story, told = query.story, query.told
    true = exact(story, query.within, query.how)
    assert emitted <= true
    assert not query.engine.manifest.debts
    for row in true - emitted:
        # (key, number and value of the left row, those of the right row, time)
        assert query.how in ("inner", "left_semi"), "an outer join leaves nothing out"
        batches = met_in(query, row)
        assert not batches & told.exact, "a receipt says EXACT, and a row is missing"
        # Rows that were dropped are missing in later batches, too.
        assert query.dropped or batches <= query.may_lack
    if query.how == "inner" and not told.written_off and told.exact >= query.may_lack:
        assert emitted == true


def met_in(query: Query, row: Flat) -> set[int]:
    """The batches in which a row could have come: a pair with its later row, a left row with any partner."""
    came, numbers = batch_of(query.story), set()
    if query.how == "inner":
        return {max(came["a", row[1]], came["b", row[3]])}  # type: ignore[index]
    for time, key, number, _ in query.story.all_rows("b"):
        if key == row[0] and is_close(query.within, row[-1], time):  # type: ignore[arg-type]
            numbers.add(max(came["a", row[1]], came["b", number]))  # type: ignore[index]
    return numbers
