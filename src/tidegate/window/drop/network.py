"""A query network, as one small value: nodes, and which way rows go between them.

Paper: window drop, section 2.1: boxes and arrows; rows may be shared by several boxes.

    source ─▶ box ─▶ window ─┬─▶ box ─▶ window ─▶ output
                             └─▶ output

A node names its parents (`nodes.py`); nodes stand in the order in which rows pass them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tidegate.errors import FlowError, explain
from tidegate.window.drop.nodes import Box, Node, Output, steps_of, time_window
from tidegate.window.drop.source_range import Step
from tidegate.window.spec import UNIT_US


@dataclass(frozen=True)
class Network:
    """Nodes, each behind its parents."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for node in self.nodes:
            missing = [parent for parent in node.parents if parent not in known]
            if missing or node.name in known:
                raise FlowError(
                    explain(
                        "A network has nodes of different names, each behind its parents",
                        got=f"{node.name!r} with parents {list(node.parents)} behind {sorted(known)}",
                    )
                )
            known.add(node.name)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def children(self) -> dict[str, tuple[Node, ...]]:
        """Per node: those that its rows go to."""
        return {
            node.name: tuple(child for child in self.nodes if node.name in child.parents)
            for node in self.nodes
        }

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Output))

    def above(self, name: str) -> frozenset[str]:
        """The node and all that its rows come from."""
        node = self.by_name[name]
        return frozenset({name}).union(*(self.above(parent) for parent in node.parents))

    def without(self, outputs: frozenset[str]) -> Network:
        """The network with these outputs shut off, and all that worked for nobody else."""
        left = [output.name for output in self.outputs if output.name not in outputs]
        needed = frozenset[str]().union(*(self.above(name) for name in left))
        return Network(tuple(node for node in self.nodes if node.name in needed))

    def grid_us(self, name: str) -> int:
        """What the times of rows that leave a node are multiples of: behind a window, its slide."""
        node = self.by_name[name]
        while isinstance(node, Box):
            node = self.by_name[node.parent]
        spec = time_window(node)
        return UNIT_US if spec is None else spec.slide_us

    def paths(self, output: str, name: str) -> Iterator[tuple[Step, ...]]:
        """The steps between an output and the rows that leave a node, one way after the other."""
        if output == name:
            yield ()
            return
        node = self.by_name[output]
        for side, parent in enumerate(node.parents):
            for rest in self.paths(parent, name):
                yield *steps_of(node, side), *rest

    def paths_by(self, output: str, parent: str, child: str) -> Iterator[tuple[Step, ...]]:
        """Those of them that come by one arrow, from a node to one of its children."""
        node = self.by_name[child]
        for path in self.paths(output, child):
            for side, other in enumerate(node.parents):
                if other == parent:
                    yield *path, *steps_of(node, side)
