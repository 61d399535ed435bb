"""The builder of each kind of operator: the only list of kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate.api.nodes import Join, Match, OperatorNode, Union, Window
from tidegate.driver.operators.join import build_join
from tidegate.driver.operators.match import build_match
from tidegate.driver.operators.protocol import Builder, Operator
from tidegate.driver.operators.union import build_union
from tidegate.driver.operators.window import build_window

#: Builds an operator from node, name and compiler.
Build = Callable[[Any, str, Builder], Operator]


_BUILDERS: dict[type[OperatorNode], Build] = {
    Join: build_join,
    Match: build_match,
    Union: build_union,
    Window: build_window,
}


def register(node: type[OperatorNode], build: Build) -> None:
    """Add a kind of operator."""
    _BUILDERS[node] = build


def build(node: OperatorNode, name: str, builder: Builder) -> Operator:
    """Make the operator of a node."""
    return _BUILDERS[type(node)](node, name, builder)
