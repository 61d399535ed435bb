"""Which columns of joined rows anybody asks for: no others are made.

A pair costs what its columns cost: gathering and writing two arrays takes several times as long as two
numbers, and longer than the comparisons that found it. So where all who read a join begin with a select of
columns by name, its tasks make only those, in the order of the select if there is only one. What is stored
stays as it is: another run on the checkpoint may select others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.api.nodes import Box, Join, Match, Node, Output, Window


def selected(outputs: Sequence[Output], join: Join) -> tuple[str, ...] | None:
    """The columns of a join that its readers select; None: all of them, or nobody knows."""
    if join.where is not None:
        return None
    names: dict[str, None] = {}
    for reader in _readers(outputs, join):
        if not isinstance(reader, Box) or reader.columns is None:
            return None
        names |= dict.fromkeys(reader.columns)
    return tuple(names) or None


def _readers(outputs: Sequence[Output], join: Join) -> Iterator[Output | Node]:
    """Who takes the rows of a join; the same one may come several times."""
    waiting: list[Output | Node] = list(outputs)
    while waiting:
        reader = waiting.pop()
        parents = _parents(reader)
        waiting += parents
        if any(parent is join for parent in parents):
            yield reader


def _parents(reader: Output | Node) -> list[Node]:
    if isinstance(reader, Output):
        return [reader.node]
    if isinstance(reader, Join):
        return [reader.left, reader.right]
    return [reader.parent] if isinstance(reader, Box | Match | Window) else []
