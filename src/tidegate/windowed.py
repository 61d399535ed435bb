"""What the user says of window aggregates: which windows, by which columns, which aggregates.

    busy = near.window("1 minute", slide="10 seconds", by=["cell"]).agg(n=F.count("*"), top=F.max("fare"))

Aggregates are ordinary Spark expressions and only carried along, so describing them needs no Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate.errors import FlowError, explain
from tidegate.window.spec import WindowSpec

#: The first columns of what a window returns.
START, END = "window_start", "window_end"


@dataclass(frozen=True, eq=False)
class Window:
    """A stream's windows, the columns that tell groups apart, and named aggregates."""

    #: A node of the flow.
    parent: Any
    spec: WindowSpec
    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Any], ...]


class Windowed:
    """Windows of a stream that wait for their aggregates."""

    def __init__(self, node: Any, spec: WindowSpec, by: tuple[str, ...], made: Callable[[Window], Any]):
        self._node, self._spec, self._by, self._made = node, spec, by, made

    def agg(self, **aggregates: Any) -> Any:
        """A stream with a row per window and group: `window_start`, `window_end`, the `by` columns, these.

        A window comes out once, when no row can fall into it any more. Its time is its start.
        """
        if not aggregates:
            raise FlowError(
                explain("A window needs an aggregate", do='Write for example .agg(n=F.count("*"))')
            )
        taken = {name.lower() for name in (START, END, *self._by)}
        clashing = [name for name in aggregates if name.lower() in taken]
        if clashing:
            raise FlowError(
                explain(
                    "An aggregate has the name of another column of the result",
                    got=", ".join(clashing),
                    do="Give it another name",
                )
            )
        return self._made(Window(self._node, self._spec, self._by, tuple(aggregates.items())))
