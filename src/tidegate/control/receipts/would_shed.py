"""What a batch under a goal that only observes would have left out: levels, and estimated losses.

    the plan that would have run ─┐
    reports of the batch in full  ├─▶ WouldShed      nothing was shed, so losses can be counted
    forecast of the goal loop    ─┘

Joins count pairs and matches by basic window, so what a plan would have skipped and missed is a sum over
basic windows: of one that would have been probed in part, this part. Rows that choose by content, and
sifters, leave no such counts: there the loss is the one that the goal loop expected, or where it decided
nothing (a rate of the user's own), the share of pairs and rows. Windows that would have been dropped are
known exactly. Losses along a way multiply.

Guarantee: pure; a batch under any other plan gives None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidegate.control.observing import FORGET, as_if
from tidegate.control.receipts.ledger import given_up
from tidegate.control.receipts.receipts import STREAM, BatchOutcome
from tidegate.model.graph import Lineage, Outlet, Reader
from tidegate.model.json_values import Json
from tidegate.model.plan import ShedPlan
from tidegate.model.progress import WouldShed, WouldShedInput, WouldShedOperator, WouldShedOutput
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US, SIDES
from tidegate.sift.filter.sifter import Sifter


@dataclass(frozen=True)
class WouldBe:
    """What is known besides the batch: windows that would be missing with it, and what was expected."""

    missing: Mapping[str, int]
    #: By output: the drop ratio that would hold; and the loss that the goal loop expected.
    drop_ratios: Mapping[str, float]
    expected_losses: Mapping[str, float]


class _Lost(NamedTuple):
    """Results that would be missing, of how many."""

    results: float
    of: float

    @property
    def ratio(self) -> float:
        return self.results / self.of if self.of else 0.0


class _Pairs(NamedTuple):
    """Pairs of a join: candidates, those that would be probed, and their matches; None: not known."""

    candidates: float
    probed: float
    matches: float
    found: float | None


def add_would_shed(receipt: Json, ways: Lineage, outcome: BatchOutcome, known: WouldBe) -> WouldShed | None:
    """What would have been left out; its figures are added to the rows of the receipt."""
    would = outcome.plan.shed.would
    if would is None:
        return None
    batch = _Batch(ways, outcome, would, known)
    losses = {outlet.name: batch.lost(outlet) for outlet in ways.outputs}
    found = WouldShed(
        {name: batch.input(name) for name in ways.streams},
        {name: batch.operator(name) for name in batch.shedding},
        {outlet.name: batch.output(outlet, losses[outlet.name]) for outlet in ways.outputs},
    )
    shown = {outlet.name: outlet.source for outlet in ways.outputs}
    for row in receipt["rows"]:
        name = row["name"]
        if row["kind"] == STREAM:
            row["would_rows_shed"] = found.inputs[name].rows_shed
            continue
        output, operator = found.outputs[name], found.operators.get(shown[name], WouldShedOperator())
        row |= {
            "would_pairs_skipped": operator.pairs_skipped,
            "would_windows_missing": output.windows_missing,
            "would_loss_ratio": output.loss_ratio,
            "would_recall": output.recall,
            # For adding up.
            "would_lost": [*losses[name]],
        }
    return found


class _Batch:
    """One batch, and the plan that would have run."""

    def __init__(self, ways: Lineage, outcome: BatchOutcome, would: ShedPlan, known: WouldBe) -> None:
        self._ways, self._outcome, self._would, self._known = ways, outcome, would, known

    @cached_property
    def shedding(self) -> list[str]:
        """Operators that may leave something out, in the order of the flow."""
        shown = {one.source for one in self._ways.outputs if one.name in self._known.drop_ratios}
        would = self._would
        may = {*would.skipping, *would.sifters, *would.estimating, *shown}
        return [name for name in dict.fromkeys(one.operator for one in self._ways.readers) if name in may]

    @cached_property
    def _joins(self) -> dict[str, _Pairs]:
        return {name: self._pairs(name, one) for name, one in self._would.skipping.items()}

    def input(self, stream: str) -> WouldShedInput:
        """What a stream would have lost: the rows of the reader that would have left out most."""
        mine = [one for one in self._ways.readers if one.source == stream]
        shed = max((self._rows_shed(one) for one in mine), default=0.0)
        return WouldShedInput(round(shed), sum(self._evicted(one) for one in mine))

    def operator(self, name: str) -> WouldShedOperator:
        mine = [one for one in self._ways.readers if one.operator == name]
        offered = sum(self._offered(one) for one in mine)
        kept = max(0.0, 1 - sum(map(self._rows_shed, mine)) / offered) if offered else None
        pairs, sampled = self._joins.get(name), name in self._would.estimating
        shown = [one.name for one in self._ways.outputs if one.source == name]
        drops = [self._known.drop_ratios[one] for one in shown if one in self._known.drop_ratios]
        return WouldShedOperator(
            probe_ratio=None if pairs is None or not pairs.candidates else pairs.probed / pairs.candidates,
            admit_ratio=None if sampled or drops else kept,
            drop_ratio=max(drops, default=None),
            sample_ratio=kept if sampled else None,
            pairs_skipped=None if pairs is None else round(pairs.candidates - pairs.probed),
        )

    def output(self, outlet: Outlet, lost: _Lost) -> WouldShedOutput:
        ratio, above = lost.ratio, self._above(outlet.source)
        pairing = bool(above & {*self._would.skipping, *self._would.sifters})
        whole = outlet.name not in self._known.drop_ratios and not above & {*self._would.estimating}
        recall = 1 - ratio if pairing and whole else None
        return WouldShedOutput(ratio, recall, self._missing(outlet))

    def lost(self, outlet: Outlet) -> _Lost:
        """What an output would have lost."""
        above = self._above(outlet.source)
        if outlet.name in self._known.drop_ratios:
            closed = self._outcome.closed.get(outlet.name) or 0
            return _Lost(min(self._missing(outlet), closed), closed)
        sampled = [one for one in self._ways.readers if one.operator in above & {*self._would.estimating}]
        if sampled:
            rows = sum(map(self._offered, sampled))
            return _Lost(sum(map(self._rows_shed, sampled)), rows)
        written = sum(one.emitted for one in self._reports(outlet.source))
        return _Lost((1 - self._found(outlet.name, above)) * written, written)

    def _found(self, output: str, above: set[str]) -> float:
        """The share of its results that an output behind joins and matches would have."""
        joins = [one for name, one in self._joins.items() if name in above]
        sifted = [one for one in self._ways.readers if one.operator in above & {*self._would.sifters}]
        lost_rows = {one: self._rows_shed(one) / max(1, self._offered(one)) for one in sifted}
        counted = all(one.found is not None for one in joins) and not any(lost_rows.values())
        if not counted and output in self._known.expected_losses:
            return 1 - self._known.expected_losses[output]
        found = 1.0
        for pairs in joins:
            of, kept = (
                (pairs.candidates, pairs.probed) if pairs.found is None else (pairs.matches, pairs.found)
            )
            found *= kept / of if of else 1.0
        for share in lost_rows.values():
            found *= 1 - share
        return found

    def _above(self, name: str) -> set[str]:
        """The operator itself and all that it reads, directly or not."""
        sources = [one.source for one in self._ways.readers if one.operator == name]
        return {name}.union(*map(self._above, sources)) if sources else {name}

    def _missing(self, outlet: Outlet) -> int:
        """Windows that would be missing, besides those that earlier batches dropped."""
        would, gone = self._known.missing, self._outcome.missing_count
        return max(0, would.get(outlet.name, 0) - gone.get(outlet.name, 0))

    def _reports(self, name: str) -> list[TaskReport | MatchReport]:
        every: list[TaskReport | MatchReport] = [*self._outcome.reports, *self._outcome.matched]
        return [one for one in every if one.operator == name]

    def _tasks(self, name: str) -> list[TaskReport]:
        return [one for one in self._outcome.reports if one.operator == name]

    def _offered(self, reader: Reader) -> int:
        if reader.operator in self._would.sifters:
            tried = sum(one.received for one in self._outcome.matched if one.operator == reader.operator)
            return self._outcome.counted.entered.get(reader.operator, tried)
        return sum(one.rows.offered[reader.side] for one in self._tasks(reader.operator))

    def _rows_shed(self, reader: Reader) -> float:
        """Rows that would not have passed this reader."""
        name, would = reader.operator, self._would
        if name in would.sifters:
            return self._sifted(Sifter.from_json(would.sifters[name]), name, self._offered(reader))
        if name in would.estimating:
            left = 1 - np.array(would.estimating[name]["shares"])
            return float(sum(left @ np.array(one.strata) for one in self._tasks(name) if one.strata))
        if name not in would.skipping:
            return 0.0
        one, offered = would.skipping[name], self._offered(reader)
        return offered * (1 - one.keep_share * (1 - self._stale_share(name, reader.side, one)))

    def _sifted(self, sifter: Sifter, name: str, offered: int) -> float:
        kept = [one.kept for one in self._outcome.matched if one.operator == name and one.kept]
        if all(len(one) == sifter.regions.count for one in kept) and kept:
            return float(np.sum(kept, axis=0) @ sifter.thresholds)
        return offered * (1 - sifter.z)

    def _stale_share(self, name: str, side: int, skipping: Skipping) -> float:
        """The share of the new rows of a side that would have been stale, if even within their runs."""
        fresh_us, batch = skipping.fresh_us[side], self._outcome.plan.batch
        if fresh_us == BEGINNING_US:
            return 0.0
        added = [piece for one in self._tasks(name) for piece in one.state.added]
        mine = [one for one in added if one.side == side and one.first_batch == batch and not one.marks]
        rows = np.array([(one.first_us, one.last_us + 1, one.rows) for one in mine], float).reshape(-1, 3)
        below = np.clip((fresh_us - rows[:, 0]) / np.maximum(rows[:, 1] - rows[:, 0], 1), 0, 1)
        return float(below @ rows[:, 2] / max(rows[:, 2].sum(), 1))

    def _pairs(self, name: str, one: Skipping) -> _Pairs:
        """The pairs that a join probed, and those that it would have probed."""
        candidates = probed = matches = found = 0.0
        for window in range(len(SIDES)):
            counts = [task.probes[window] for task in self._tasks(name) if task.probes]
            if not counts:
                continue
            seen = np.sum([np.add(count.chosen, count.explored) for count in counts], axis=0)
            hits = np.sum([np.add(count.chosen_matches, count.explored_matches) for count in counts], axis=0)
            shares = np.full(seen.size, one.content) if one.content is not None else one.shares[window]
            part = (1 - one.explore_share) * np.asarray(shares) + one.explore_share * one.explore_depth
            # With a share of the rows of both sides, its square of the pairs is left.
            part = part * one.keep_share**2 * (1 - self._stale_share(name, 1 - window, one))
            candidates, probed = candidates + float(seen.sum()), probed + float(part @ seen)
            matches, found = matches + float(hits.sum()), found + float(part @ hits)
        return _Pairs(candidates, probed, matches, None if one.content is not None else found)

    def _evicted(self, reader: Reader) -> int:
        """Stored rows that this batch would have given up, and no batch before it."""
        name, side, outcome = reader.operator, reader.side, self._outcome
        if name not in self._would.skipping:
            return 0
        within, settle_us = self._ways.operators[name].within, outcome.plan.settle_us[name]
        before: Any = outcome.before.control.get(FORGET, {}).get(name)
        gone_us = outcome.plan.shed.skipping[name].forget_us if before is None else before
        alive_us = max(within.dead_before(side, settle_us), gone_us[side])
        return given_up(name, side, outcome.before, as_if(outcome.plan), alive_us)
