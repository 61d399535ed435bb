"""Decides what a batch does, before it runs, from the last manifest alone, so that the plan can be logged.

Watermarks pass through operators as through streams. Rows that enter a join are no older than the slower of
its two inputs. Rows that leave it are no older than that, except for waiting rows (unmatched rows of an outer
join, left rows of a semi join): these may be as old as the oldest row that is not settled yet.

    input watermark   W                         ───────────────●
    output watermark  pairs: W                  ───────────────●
                      waiting rows: W - window  ─────●
                      windows of rows           ───●        the oldest stored row: it waits for other rows,
                                                            not for time, and gives its window its time

A union passes rows on as they come: its watermark is that of its slowest stream. A row that is not late in
its own stream is never older than that.

Guarantee: everything returned is a pure function of the arguments; a plan read back from the log and one that
is decided anew can differ only by the wall clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.control.merging import choose_merges
from tidegate.control.watermarks import unheard
from tidegate.model.debts import DebtRepair
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import index_of
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan, PlanDecisions, Rewrites
from tidegate.model.routing import Routing
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT


def first_manifest(
    flow: Mapping[str, Any],
    streams: Sequence[str],
    routing: Mapping[str, Routing],
    now_us: int,
) -> Manifest:
    """The state before batch 0."""
    return Manifest(
        batch=-1,
        flow=flow,
        clocks={name: unheard(now_us) for name in streams},
        settled_us=dict.fromkeys(routing, BEGINNING_US),
        routing=routing,
    )


def next_plan(
    batch: int,
    manifest: Manifest,
    operators: Mapping[str, OperatorTraits],
    now_us: int,
    decided: PlanDecisions | None = None,
) -> Plan:
    """The plan of a batch: the decisions, and what follows from the last manifest."""
    decided = decided or PlanDecisions()
    settle_us = _settle(manifest, operators)
    routing = manifest.routing if decided.routing is None else decided.routing
    merges = {name: _merges(operators[name], manifest, routing[name], settle_us[name]) for name in operators}
    return Plan(
        batch=batch,
        now_us=now_us,
        awake_us=decided.awake_us,
        watermarks_us={name: clock.watermark_us for name, clock in manifest.clocks.items()},
        settle_us=settle_us,
        routing=routing,
        rewrites=Rewrites({name: groups for name, groups in merges.items() if groups}, decided.cuts),
        flush=decided.flush,
        seed=decided.seed,
        spark_batch=decided.spark_batch,
        by_row=decided.by_row,
        balance=decided.balance,
        shed=decided.shed,
        repair=decided.repair,
    )


def settle_plan(plan: Plan, manifest: Manifest, operators: Mapping[str, OperatorTraits]) -> Plan | None:
    """The plan of another pass without rows; None if it would release no waiting row."""
    if not releases(manifest, operators):
        return None
    settle_us = _settle(manifest, operators)
    return replace(plan, settle_us=settle_us, rewrites=Rewrites(), repair=replace(plan.repair, repairs={}))


def releases(manifest: Manifest, operators: Mapping[str, OperatorTraits]) -> bool:
    """Whether a pass without rows after this manifest would emit waiting rows."""
    settle_us = _settle(manifest, operators)
    return any(_frees(operators[name], manifest, at_us) for name, at_us in settle_us.items())


def repair_plan(plan: Plan, manifest: Manifest, repairs: Mapping[str, tuple[DebtRepair, ...]]) -> Plan:
    """The plan of another pass without rows that repairs all debts."""
    return replace(
        plan,
        settle_us=dict(manifest.settled_us),
        rewrites=Rewrites(),
        repair=replace(plan.repair, repairs=repairs),
    )


def output_watermark(
    operator: OperatorTraits, manifest: Manifest, operators: Mapping[str, OperatorTraits]
) -> int:
    """No row that the operator emits in the next batch is older than this."""
    oldest = [input_watermark(operator, manifest, operators)]
    if operator.waits_for_rows:
        # Some rows of a piece may be consumed already: then this is earlier than necessary, never later.
        return min([*oldest, *(piece.first_us for piece in _stored(operator, manifest))])
    settled_us = manifest.settled_us[operator.name]
    oldest += [
        operator.within.dead_before(side, settled_us) for side in (LEFT, RIGHT) if operator.waiting[side]
    ]
    return min(oldest)


def input_watermark(
    operator: OperatorTraits, manifest: Manifest, operators: Mapping[str, OperatorTraits]
) -> int:
    """No row that enters the operator in the next batch is older than this."""
    return min(
        output_watermark(operators[name], manifest, operators)
        if name in operators
        else manifest.clocks[name].watermark_us
        for given in operator.inputs
        for name in operator.unions.get(given, (given,))
    )


def _settle(manifest: Manifest, operators: Mapping[str, OperatorTraits]) -> dict[str, int]:
    return {
        name: max(manifest.settled_us[name], input_watermark(operator, manifest, operators))
        for name, operator in operators.items()
    }


def _frees(operator: OperatorTraits, manifest: Manifest, settle_us: int) -> bool:
    # Time can advance without releasing a row: inside a tumbling window, or where rows never expire.
    settled_us, dead_before = manifest.settled_us[operator.name], operator.within.dead_before
    if operator.waits_for_rows:
        return any(
            max(piece.first_us, settled_us) < min(piece.last_us + 1, settle_us)
            for piece in _stored(operator, manifest)
        )
    return any(
        operator.unmatched[side] and dead_before(side, settle_us) > dead_before(side, settled_us)
        for side in (LEFT, RIGHT)
    )


def _merges(
    operator: OperatorTraits, manifest: Manifest, routing: Routing, settle_us: int
) -> dict[str, tuple[tuple[str, ...], ...]]:
    within = operator.within
    return choose_merges(
        index_of(manifest.pieces).groups(operator.name, routing),
        (within.slot_us(LEFT), within.slot_us(RIGHT)),
        settle_us,
        (within.dead_before(LEFT, settle_us), within.dead_before(RIGHT, settle_us)),
    )


def _stored(operator: OperatorTraits, manifest: Manifest) -> list[Piece]:
    return [piece for piece in manifest.pieces if piece.operator == operator.name]
