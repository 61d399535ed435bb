"""Joins and windows of a compiled flow, as planning knows them."""

from __future__ import annotations

from typing import cast

from tidegate.api.nodes import Join, Match, Node, Source, Window
from tidegate.driver.compile.compiled import Compiled, CompiledJoin, CompiledWindow
from tidegate.driver.compile.ports import boxes_of
from tidegate.model.graph import Operator
from tidegate.window.lifetime import Lifetime, RowsLifetime
from tidegate.window.spec import RowsSpec


def operators_of(compiled: Compiled) -> dict[str, Operator]:
    """All operators with state, by name."""
    return {
        **{join.layout.operator: _join(compiled, join) for join in compiled.joins},
        **{window.layout.operator: _window(compiled, window) for window in compiled.windows},
    }


def _join(compiled: Compiled, join: CompiledJoin) -> Operator:
    left, right = (_feeding(compiled, side.node) for side in join.inputs)
    layout = join.layout
    return Operator(layout.operator, (left, right), layout.within, layout.tracked, layout.preserved)


def _window(compiled: Compiled, window: CompiledWindow) -> Operator:
    # Windows wait in the state, and time sets them free, as it does lonely rows. There is no other side.
    name = _feeding(compiled, window.node.parent)
    spec = window.layout.spec
    lifetime = RowsLifetime() if isinstance(spec, RowsSpec) else Lifetime(spec)
    return Operator(window.layout.operator, (name, name), lifetime, (True, False), (True, False))


def _feeding(compiled: Compiled, node: Node) -> str:
    """The stream or operator that gives a node its time; a match passes rows on in the batch they came in."""
    base, _ = boxes_of(node)
    while isinstance(base, Match):
        base, _ = boxes_of(base.parent)
    if isinstance(base, Source):
        return base.name
    return compiled.operator_of(cast(Join | Window, base)).layout.operator
