"""How rows of a source enter: taps, which pass by all joins, and the inputs of operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from tidegate.api.nodes import Node
from tidegate.driver.compile.ports import Port


@dataclass(frozen=True)
class Tap:
    """Rows of a source that pass by all joins: on-time rows of a node, or refused rows."""

    node: Node
    port: Port
    stream: str
    kind: str


@dataclass(frozen=True)
class PortInput:
    """One input of an operator: its port, and the projection of its rows onto the shared layout."""

    node: Node
    port: Port
    project: Callable[[DataFrame], DataFrame]

    @property
    def from_source(self) -> bool:
        return self.port.stream is not None
