"""What may be united: source streams, with or without stateless steps, and other unions."""

from __future__ import annotations

from tidegate.api.names import operator_name
from tidegate.api.nodes import Node, OperatorNode, StatelessStep, Union, name_of
from tidegate.errors import FlowError


def union_node(left: Node, right: object, allow_missing_columns: bool, name: str | None) -> Union:
    """The union of two nodes."""
    if not isinstance(right, Node):
        raise FlowError(
            "A stream is united with a stream",
            code="UNION_OTHER_INVALID",
            got=type(right).__name__,
            do="Make one of a data frame: tg.stream(frame, …)",
        )
    for node in (left, right):
        _refuse_operator(node)
    return Union((left, right), allow_missing_columns, operator_name(name, "union_by_name"))


def _refuse_operator(node: Node) -> None:
    while isinstance(node, StatelessStep):
        node = node.parent
    if isinstance(node, OperatorNode) and not isinstance(node, Union):
        raise FlowError(
            f"A union cannot take the results of a {node.label}",
            code="UNION_OF_OPERATOR",
            got=name_of(node),
            why="It unites source streams, where rows enter",
            do=f"Unite the streams before the {node.label}, or write the results to two outputs",
        )
