"""Decides what a pass leaves behind: the next manifest, from its plan and its tasks' reports alone.

    manifest b-1 ─┐
    plan b        ├─▶ manifest b: clocks advanced; pieces added, merged, expired; debts
    reports of b ─┘

Guarantee: a pure function, testable without files. An engine without Spark and one on Spark agree on every
byte of the state, and a replay under the same plan gives the same manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tidegate.control.repair.debts import Needs, debts_after, within_limit, without_given_up
from tidegate.control.watermarks import ClockSettings, advance
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import PieceIndex, Pieces, taken
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.routing import Routing
from tidegate.model.times import END_US, LEFT, RIGHT

#: What a manifest says of the state itself, and not of the batch that left it behind.
_STATE = ("clocks", "settled_us", "late_us", "routing", "pieces", "debts")


def after_batch(
    pieces: Iterable[Piece],
    reports: Iterable[TaskReport],
    routing: Mapping[str, Routing],
    is_dead: Callable[[Piece], bool],
    alive_from_us: int = END_US,
) -> Pieces:
    """The pieces that a batch leaves behind; none whose last row is of `alive_from_us` or later is dead.

    1. Rows that were cut out are in other partitions. 2. Merged rows leave the pieces they came from. 3. New
    and merged pieces join the list. 4. Matched bits replace what the same instance wrote before. 5. Pieces
    without a row that can still match are dropped.
    """
    reports, pieces = list(reports), pieces if isinstance(pieces, Pieces) else tuple(pieces)
    index = taken(pieces)
    index.count_files()
    alive = index.named
    for report in reports:
        # Several instances may report one piece, with equal values.
        for name, ranges in report.state.recut.items():
            index.put(alive[name].with_ranges(ranges))
    for report in reports:
        _merge(index, report, routing[report.operator])
        for piece in report.state.added:
            index.put(piece)
    for report in reports:
        for name, blob in report.state.matched.items():
            if name in alive:
                index.put(_with_bits(alive[name], report.instance, blob))
    old = [piece for piece in alive.values() if piece.last_us < alive_from_us]
    for piece in old if alive_from_us < END_US else list(alive.values()):
        if is_dead(piece):
            index.pop(piece.name)
    return Pieces.after(pieces, index)


def _merge(index: PieceIndex, report: TaskReport, routing: Routing) -> None:
    """Take what an instance rewrote out of the pieces that it came from."""
    if not report.state.merged:
        return
    owned = [placement.owned_by(report.instance) for placement in routing.sides]
    for name in report.state.merged:
        piece = index.pop(name)
        rest = piece.without(owned[piece.side])
        if rest is not None:
            index.put(rest)


def _with_bits(piece: Piece, instance: int, blob: ByteRange) -> Piece:
    return replace(piece, matched={**piece.matched, str(instance): blob})


def newest_seen(reports: Sequence[TaskReport], operators: Mapping[str, OperatorTraits]) -> dict[str, int]:
    """The newest time of each stream that the tasks of a pass saw."""
    newest: dict[str, int] = {}
    for report in reports:
        for name, at_us in zip(operators[report.operator].inputs, report.rows.seen_us, strict=True):
            if name not in operators and at_us is not None:
                newest[name] = max(at_us, newest.get(name, at_us))
    return newest


def out_of_reach(plan: Plan, operators: Mapping[str, OperatorTraits]) -> Callable[[Piece], bool]:
    """Names of pieces without a row that a later batch can match."""

    dead = dead_before(plan, operators)

    def is_dead(piece: Piece) -> bool:
        return piece.last_us < dead[piece.operator, piece.side]

    return (lambda piece: True) if plan.flush else is_dead


def dead_before(plan: Plan, operators: Mapping[str, OperatorTraits]) -> dict[tuple[str, int], int]:
    """By operator and side: no later batch can match rows before this."""
    dead = {}
    for name, operator in operators.items():
        forget = plan.shed.skipping[name].forget_us if name in plan.shed.skipping else None
        for side in (LEFT, RIGHT):
            dead_us = operator.within.dead_before(side, plan.settle_us[name])
            dead[name, side] = dead_us if forget is None else max(dead_us, forget[side])
    return dead


def changes_nothing(
    before: Manifest,
    plan: Plan,
    clocks: Mapping[str, ClockSettings],
    operators: Mapping[str, OperatorTraits],
) -> bool:
    """Whether a batch without rows would leave the state as it is: such a batch need not run."""
    rewrites, repair = plan.rewrites, plan.repair
    works = rewrites.merges or rewrites.cuts or repair.repairs or (repair.repair_all and before.debts)
    if plan.flush or works:
        return False
    after = manifest_after(before, plan, (), {}, clocks, operators)
    same = all(getattr(after, name) == getattr(before, name) for name in _STATE)
    return same and not after.written_off


def manifest_after(
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    seen_us: Mapping[str, int | None],
    clocks: Mapping[str, ClockSettings],
    operators: Mapping[str, OperatorTraits],
) -> Manifest:
    """The state after a pass that saw these newest times (None: no row of that stream).

    A plan that settles moves no clock: what it releases does not depend on when it runs.
    """
    is_dead = out_of_reach(plan, operators)
    # 1. Debts. 2. All pieces that can still match or that a debt needs. 3. Write-offs to fit the byte limit.
    ledger = without_given_up(
        debts_after(before, plan, reports, operators), before.pieces, plan.shed.skipping
    )
    needs = Needs(ledger.debts)
    alive_from_us = END_US if plan.flush else max(dead_before(plan, operators).values(), default=END_US)
    pieces: tuple[Piece, ...] = after_batch(
        before.pieces,
        reports,
        plan.routing,
        lambda piece: is_dead(piece) and not needs.has(piece),
        alive_from_us,
    )
    if ledger.debts and plan.repair.bytes_max is not None:
        ledger = within_limit(ledger, pieces, is_dead, plan.repair.bytes_max)
        needs = Needs(ledger.debts)
        kept = tuple(piece for piece in pieces if needs.has(piece) or not is_dead(piece))
        pieces = pieces if len(kept) == len(pieces) else kept
    moved = advance(before.clocks, seen_us, clocks, plan.now_us, plan.awake_us)
    return Manifest(
        batch=plan.batch,
        flow=before.flow,
        clocks=before.clocks if plan.settles else moved,
        settled_us=dict.fromkeys(before.settled_us, END_US) if plan.flush else dict(plan.settle_us),
        routing=plan.routing,
        pieces=pieces,
        control=before.control,
        debts=ledger.debts,
        written_off=ledger.written_off,
        receipts_from=before.receipts_from,
        spark_batch=plan.spark_batch or before.spark_batch,
        late_us={} if plan.flush else dict(plan.late.next_us),
        begins_us={
            name: begins_us
            for name, begins_us in before.begins_us.items()
            if operators[name].within.dead_before(LEFT, plan.settle_us[name]) < begins_us
        },
        files=before.files,
    )
