"""How rows of streams enter: entries, taps, which pass by all joins, and the inputs of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from tidegate.api.nodes import Node
from tidegate.driver.compile.column_pruning import blank_like, columns_needed
from tidegate.driver.compile.nested_columns import NestedColumns, nested_columns
from tidegate.driver.compile.ports import Lanes, Port
from tidegate.driver.frames.grafts import Graft, analyzed, frame_of, standing_in
from tidegate.driver.java_collections import java_items


@dataclass(eq=False)
class Entry:
    """One reader of streams: its steps and columns as a plan over the timed streams, compiled once."""

    #: By place in the plan: a timed frame, on which `make` builds.
    timed: Mapping[str, DataFrame]
    #: The rows as the reader gets them; called when all lanes are known.
    make: Callable[[], DataFrame]
    #: Rows without a usable time do not enter, if Spark counts the stream.
    usable_only: bool = True
    #: The name under which Spark counts rows behind the steps; None: it does not.
    counted_as: str | None = None
    #: By place: its stream, in a union. Otherwise a place has the name of its stream.
    stream_of: Mapping[str, str] = field(default_factory=dict)

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.stream_of.get(place, place) for place in self.timed))

    @cached_property
    def graft(self) -> Graft:
        return Graft(self.make(), self.timed)

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns that it reads of its one stream."""
        ((place, timed),) = self.timed.items()
        blank = blank_like(timed)
        plan = self.graft.on({place: standing_in(analyzed(timed), blank)})
        return columns_needed(blank, frame_of(plan, timed.sparkSession))

    @cached_property
    def passed_on(self) -> frozenset[str]:
        """Its columns that its steps pass on as its stream has them."""
        return passed_on(self.timed.values(), self.make())

    @cached_property
    def nested(self) -> NestedColumns | None:
        """Its plan in two parts, if it reads fields of nested columns of its one stream."""
        if self.stream_of or len(self.timed) != 1:
            return None
        ((place, timed),) = self.timed.items()
        return nested_columns(self.graft, place, timed)


def passed_on(frames: Iterable[DataFrame], behind: DataFrame) -> frozenset[str]:
    """The columns of a frame that are those of the frames it was made of, by Spark's identity of columns."""
    own = {one.exprId().id() for frame in frames for one in _output(frame)}
    return frozenset(one.name() for one in _output(behind) if one.exprId().id() in own)


def _output(frame: DataFrame) -> list[Any]:
    return java_items(analyzed(frame).output())


@dataclass(frozen=True)
class Tap:
    """Rows of a source that pass by all joins: on-time rows of a node, or refused rows."""

    node: Node
    columns: tuple[str, ...]
    stream: str
    kind: str
    entry: Entry


@dataclass(frozen=True)
class PortInput:
    """One input of an operator: its port, and the projection of its rows onto the shared layout."""

    node: Node
    port: Port
    lanes: Lanes
    project: Callable[[DataFrame], DataFrame]
    #: None: another operator feeds it.
    entry: Entry | None

    @property
    def from_source(self) -> bool:
        return self.entry is not None
