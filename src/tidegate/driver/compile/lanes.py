"""Lanes: typed columns that all ports of a query share, so that one narrow row layout carries every stream.

Two streams with three bigint columns each need three bigint lanes, not six nullable columns: half the bytes
in the shuffle and on the way into Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import types as T


class Lanes:
    """Hands out lanes; the same type and occurrence always gets the same one."""

    def __init__(self) -> None:
        self._types: dict[str, T.DataType] = {}
        self._names: dict[tuple[str, int], str] = {}

    def assign(self, types: Sequence[T.DataType]) -> tuple[str, ...]:
        """A lane for each column of one port."""
        used: Counter[str] = Counter()
        names = []
        for kind in types:
            text = kind.json()
            place = (text, used[text])
            used[text] += 1
            if place not in self._names:
                name = f"l{len(self._names)}"
                self._names[place] = name
                self._types[name] = kind
            names.append(self._names[place])
        return tuple(names)

    @property
    def types(self) -> dict[str, T.DataType]:
        """Every lane, in the order of the row layout."""
        return self._types
