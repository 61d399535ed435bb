"""Operators that are added behind results that an earlier run left out in part.

    join near ──▶ out                    near has dropped rows, or its begun batch skips pairs
    join near ──▶ out, window (added)    then windows over near would come with a part of its pairs

A row that was dropped is missing until the state would have forgotten it, so an added window of time begins
after that (`flow_change.py`). All else that would be wrong with fewer rows is refused until then, and behind
a batch that was begun until it is committed: what is missing from it is decided already.

Guarantee: pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.control.receipts import completeness
from tidegate.errors import StateError
from tidegate.join.within import Unbounded
from tidegate.model.graph import FlowGraph, OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US
from tidegate.sift.filter.sifter import Sifter
from tidegate.window.lifetime import Lifetime


def gaps_us(manifest: Manifest) -> Mapping[str, int]:
    """By operator that lacks rows in its state: the newest time of one."""
    found: Mapping[str, int] = manifest.control.get(completeness.CONTROL, {})
    return found


def refuse_lacking(
    added: Collection[str],
    graph: FlowGraph,
    operators: Mapping[str, OperatorTraits],
    manifest: Manifest,
    begun: Plan | None,
) -> None:
    """Refuse added operators that would be wrong; `begun`: the plan of a batch that was not finished."""
    in_batch = set() if begun is None else _leaving_out(begun)
    lacking = in_batch | gaps_us(manifest).keys()
    for name, traits in graph.operators.items():
        short = sorted(lacking.intersection(graph.inputs[name])) if name in added else []
        if short and traits.fewer_in_fewer_out:
            lacking.add(name)
            in_batch.update({name} if in_batch.intersection(short) else ())
        elif in_batch.intersection(short) or (short and not _may_wait(name, short, operators)):
            batch = in_batch.intersection(short) and begun is not None
            raise StateError(
                f"Operator {name!r} cannot be added now",
                code="CHECKPOINT_ROWS_DROPPED",
                got=f"results of {', '.join(short)} lack rows that an earlier run left out",
                why=f"A {traits.label} with a part of its rows would be wrong",
                do="Run the earlier flow until the batch that was begun is committed, then add it"
                if batch
                else "Run the earlier flow until its outputs are EXACT again, then add it",
            )


def _may_wait(name: str, short: Collection[str], operators: Mapping[str, OperatorTraits]) -> bool:
    """Whether an operator has windows of time, and what it reads will be whole again."""
    ends = not any(one in operators and isinstance(operators[one].within, Unbounded) for one in short)
    return ends and name in operators and isinstance(operators[name].within, Lifetime)


def _leaving_out(plan: Plan) -> set[str]:
    """Operators of which the plan leaves results out."""
    skipping = {
        name
        for name, one in plan.shed.skipping.items()
        if min(map(min, one.shares)) < 1
        or one.keep_share < 1
        or one.content is not None
        or max(*one.fresh_us, *one.forget_us) > BEGINNING_US
    }
    sifting = {
        name for name, raw in plan.shed.sifters.items() if Sifter.from_json(raw).thresholds.max(initial=0) > 0
    }
    return skipping | sifting
