"""Joins behind the operator protocol."""

from __future__ import annotations

from tidegate.control.repair.debts import Needs
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US, LEFT, RIGHT
from tidegate.worker.join.work import JoinBatch
from tidegate.worker.runtime.layout import JoinLayout


def join_batch(layout: JoinLayout, plan: Plan, before: Manifest, store_url: str) -> JoinBatch:
    """What the plan of a batch, on top of what was before it, asks of one join."""
    name = layout.operator
    needs = Needs(before.debts)
    owed = {debt.batch: debt for debt in before.debts if debt.operator == name}
    late = [BEGINNING_US if side.stream is None else plan.watermarks_us[side.stream] for side in layout.sides]
    return JoinBatch(
        layout=layout,
        store_url=store_url,
        batch=plan.batch,
        late_before_us=(late[0], late[1]),
        settle_us=plan.settle_us[name],
        settled_us=before.settled_us[name],
        routing=plan.routing[name],
        pieces=tuple(piece for piece in before.pieces if piece.operator == name),
        merges=tuple(plan.merges.get(name, {}).items()),
        flush=plan.flush,
        skipping=plan.skipping.get(name),
        seed=plan.seed,
        cuts=plan.cuts.get(name, ()),
        payments=tuple((owed[payment.batch], payment) for payment in plan.payments.get(name, ())),
        owed_since_us=(needs.since_us(name, LEFT), needs.since_us(name, RIGHT)),
    )
