"""The ways of rows through a compiled flow, for its receipts: who reads what, and what is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from tidegate.api.nodes import Join, Match, Node, Output, Refused, Source, Window
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.receipts.ledger import RANDOM_DROP, SAMPLING, SIFTER, WINDOW_DROP
from tidegate.driver.compile.compiled import (
    Compiled,
    CompiledJoin,
    CompiledMatch,
    CompiledOperator,
    CompiledWindow,
)
from tidegate.driver.compile.ports import boxes_of, may_drop
from tidegate.model.graph import Operator, Outlet, Reader, Ways


def ways_of(
    compiled: Compiled, operators: Mapping[str, Operator], dropping: DropSettings | None = None
) -> Ways:
    """Made once, when a query starts."""
    return Ways(
        streams=tuple(compiled.sources),
        readers=tuple(reader for one in compiled.operators for reader in _readers(compiled, one, dropping)),
        outputs=tuple(_outlet(compiled, output) for output in compiled.outputs),
        operators=operators,
        pairing=frozenset(join.layout.operator for join in compiled.joins if join.node.how == "inner"),
    )


def emits_every_row(node: Node) -> bool:
    """Does an output of this node write just the rows that its operator, or its stream, gave out?"""
    base, boxes = boxes_of(node)
    # The condition of an inner join is a filter behind it.
    filtered = isinstance(base, Join) and base.where is not None and base.how == "inner"
    return not filtered and not may_drop(boxes)


def _readers(
    compiled: Compiled, operator: CompiledOperator, dropping: DropSettings | None
) -> Iterator[Reader]:
    name = operator.layout.operator
    if isinstance(operator, CompiledJoin):
        for side, node in enumerate((operator.node.left, operator.node.right)):
            source, whole = _source(compiled, node)
            keyless = operator.layout.preserved[side]
            # A join below windows that may be dropped never skips work itself.
            below = dropping is not None and dropping.reached(name)
            reason = WINDOW_DROP if below else RANDOM_DROP
            yield Reader(name, side, source, reason, whole, keyless, joins=True)
        return
    source, whole = _source(compiled, operator.node.parent)
    yield Reader(name, 0, source, _reason(operator), whole)


def _reason(operator: CompiledMatch | CompiledWindow) -> str:
    """Why rows may be dropped in front of it. Windows that are missing now and then are never approximate."""
    if isinstance(operator, CompiledMatch):
        return SIFTER
    return SAMPLING if operator.layout.approximate else WINDOW_DROP


def _source(compiled: Compiled, node: Node) -> tuple[str, bool]:
    """Where the rows of a node come from, and whether they come without a box in between."""
    base, boxes = boxes_of(node)
    if isinstance(base, Source):
        return base.name, not boxes
    return compiled.operator_of(cast(Join | Match | Window, base)).layout.operator, not boxes


def _outlet(compiled: Compiled, output: Output) -> Outlet:
    base, _ = boxes_of(output.node)
    plain = emits_every_row(output.node)
    if isinstance(base, Refused):
        return Outlet(output.name, base.parent.name, base.kind, plain)
    return Outlet(output.name, _source(compiled, output.node)[0], plain=plain)
