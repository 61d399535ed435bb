"""Decides what a batch does, before it runs, from the last manifest alone, so that the plan can be logged.

An operator is judged by one watermark: the slowest of the streams that meet in it or behind it (as Spark has
one for a query), or the fastest, as the rule says. With the rule "own" it is that of the slowest stream that
it reads. Each batch uses two of these watermarks, as Spark does:

    of the batch before   ──●────────          rows below it are late: they were settled without these
    of this batch         ──────────●          what lies below it is settled at the end, and needed no more

So a row is late only if the state has moved on without it. Rows of windows that are still open are not. With
"own", rows are late by the newest watermark of their own stream, which lies above both.

Watermarks pass through operators as through streams. Rows that leave a join after a batch are no older than
what it settled, except for waiting rows (unmatched rows of an outer join, left rows of a semi join):

    watermark of the batch     W                 ───────────────●
    after it     pairs: W                        ───────────────●
                 waiting rows: W - window        ─────●
                 windows of rows                 ───●        the oldest stored row: it waits for other rows,
                                                             not for time, and gives its window its time

Where rows of a key lie on several instances, an instance learns only with the next batch which of its rows
matched elsewhere. There unmatched rows are settled one batch later.

Guarantee: everything returned is a pure function of the arguments; a plan read back from the log and one that
is decided anew can differ only by the wall clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tidegate.control.merging import choose_merges
from tidegate.control.watermarks import unheard
from tidegate.model.debts import DebtRepair
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import index_of
from tidegate.model.pieces import Piece
from tidegate.model.plan import LateRows, Plan, PlanDecisions, Rewrites
from tidegate.model.routing import Routing
from tidegate.model.times import BEGINNING_US, END_US, LEFT, RIGHT


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
    routing = manifest.routing if decided.routing is None else decided.routing
    lags = set() if decided.spark_batch is None else {n for n in operators if routing[n].scattered}
    passed = _passed(manifest, operators, lags)
    settle_us = {name: one.settle_us for name, one in passed.items()}
    merges = {name: _merges(operators[name], manifest, routing[name], settle_us[name]) for name in operators}
    return Plan(
        batch=batch,
        now_us=now_us,
        awake_us=decided.awake_us,
        late=_late(manifest, operators, {name: one.watermark_us for name, one in passed.items()}),
        settle_us=settle_us,
        routing=routing,
        rewrites=Rewrites({name: groups for name, groups in merges.items() if groups}, decided.cuts),
        flush=decided.flush,
        seed=decided.seed,
        spark_batch=decided.spark_batch,
        shuffles=decided.shuffles,
        balance=decided.balance,
        shed=decided.shed,
        repair=decided.repair,
    )


def settle_plan(plan: Plan, manifest: Manifest, operators: Mapping[str, OperatorTraits]) -> Plan | None:
    """The plan of another pass without rows; None if it would release no waiting row."""
    if not releases(manifest, operators):
        return None
    passed = _passed(manifest, operators)
    return replace(
        plan,
        late=replace(plan.late, next_us={name: one.watermark_us for name, one in passed.items()}),
        settle_us={name: one.settle_us for name, one in passed.items()},
        rewrites=Rewrites(),
        repair=replace(plan.repair, repairs={}),
    )


def releases(manifest: Manifest, operators: Mapping[str, OperatorTraits]) -> bool:
    """Whether a pass without rows after this manifest would emit waiting rows."""
    passed = _passed(manifest, operators).items()
    return any(_frees(operators[name], manifest, one.settle_us) for name, one in passed)


def repair_plan(plan: Plan, manifest: Manifest, repairs: Mapping[str, tuple[DebtRepair, ...]]) -> Plan:
    """The plan of another pass without rows that repairs all debts."""
    return replace(
        plan,
        settle_us=dict(manifest.settled_us),
        rewrites=Rewrites(),
        repair=replace(plan.repair, repairs=repairs),
    )


def late_before_us(operator: OperatorTraits, manifest: Manifest) -> int:
    """Rows that enter the operator in the next batch below this are late, unless each stream has its own
    watermark."""
    return operator.within.late_before(manifest.late_before_us(operator.name))


def output_watermark(operator: OperatorTraits, manifest: Manifest) -> int:
    """No row that the operator emits in the next batch is older than this."""
    name = operator.name
    return _oldest(operator, manifest, manifest.late_before_us(name), manifest.settled_us[name])


@dataclass(frozen=True)
class _Passed:
    """How far a batch moves an operator."""

    #: Of its input: rows of the next batch below this are late.
    watermark_us: int
    settle_us: int


def _passed(
    manifest: Manifest, operators: Mapping[str, OperatorTraits], lags: Collection[str] = ()
) -> dict[str, _Passed]:
    """How far the next batch moves every operator; those that lag settle unmatched rows a batch later."""

    @cache
    def of(name: str) -> _Passed:
        operator, late_us = operators[name], manifest.late_before_us(name)
        limits = [behind(one) for one in operator.inputs if one in operators]
        watermark_us = max(late_us, min([*_clock(operator, manifest), *limits]))
        lagging = name in lags and any(operator.unmatched)
        return _Passed(watermark_us, late_us if lagging else watermark_us)

    def behind(name: str) -> int:
        operator, passed = operators[name], of(name)
        newest_us = manifest.late_before_us(name) if operator.waits_for_rows else passed.watermark_us
        return _oldest(operator, manifest, newest_us, passed.settle_us)

    return {name: of(name) for name in operators}


def _clock(operator: OperatorTraits, manifest: Manifest) -> list[int]:
    """The watermark of the streams by which the operator is judged; nothing if it reads operators only."""
    read = [name for given in operator.inputs for name in operator.unions.get(given, (given,))]
    clocks = manifest.clocks
    found = [clocks[name].watermark_us for name in operator.group or read if name in clocks]
    return [max(found) if operator.rule == "fastest" else min(found)] if found else []


def _oldest(operator: OperatorTraits, manifest: Manifest, watermark_us: int, settled_us: int) -> int:
    """No row is older than this that the operator emits after its input got to this watermark."""
    if operator.waits_for_rows:
        # Some rows of a piece may be consumed already: then this is earlier than necessary, never later.
        return min([watermark_us, *(piece.first_us for piece in _stored(operator, manifest))])
    dead_before, waiting = operator.within.dead_before, operator.waiting
    return min([watermark_us, *(dead_before(side, settled_us) for side in (LEFT, RIGHT) if waiting[side])])


def _late(
    manifest: Manifest, operators: Mapping[str, OperatorTraits], next_us: Mapping[str, int]
) -> LateRows:
    """Which rows of the next batch are late. For outputs and matches of a stream: those that an operator
    with state does not take; if none reads it, those below its own watermark."""
    streams = {name: clock.watermark_us for name, clock in manifest.clocks.items()}
    inputs: dict[str, tuple[int, int]] = {}
    judged: dict[str, list[int]] = {}
    united: dict[str, int] = {}
    for name, operator in operators.items():
        sides = [BEGINNING_US, BEGINNING_US]
        for side, given in enumerate(operator.inputs):
            if operator.rule == "own":
                sides[side] = streams.get(given, BEGINNING_US)
            elif given in streams or given in operator.unions:
                sides[side] = late_before_us(operator, manifest)
                for stream in operator.unions.get(given, (given,)):
                    judged.setdefault(stream, []).append(sides[side])
                if given in operator.unions:
                    united[given] = min(united.get(given, END_US), sides[side])
        inputs[name] = (sides[LEFT], sides[RIGHT])
    inputs |= {name: (edge_us, edge_us) for name, edge_us in united.items()}
    return LateRows(streams | {name: max(edges) for name, edges in judged.items()}, inputs, next_us)


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
        late_before_us(operator, manifest),
        (within.dead_before(LEFT, settle_us), within.dead_before(RIGHT, settle_us)),
    )


def _stored(operator: OperatorTraits, manifest: Manifest) -> list[Piece]:
    return [piece for piece in manifest.pieces if piece.operator == operator.name]
