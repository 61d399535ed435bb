"""Stands in for Spark in the tests of the description of flows, which needs no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tidegate.api.nodes import Node, Source, StatelessStep
from tidegate.api.sources import stream
from tidegate.api.streams import Stream

SECOND = 1_000_000


class Frame:
    """Columns and what was asked for; as strict about `select` as Spark is."""

    def __init__(
        self,
        *columns: str,
        asked: tuple[Any, ...] = (),
        streaming: bool = False,
        delays_ms: dict[str, int] | None = None,
    ):
        self.columns = list(columns)
        self.asked = asked
        self.isStreaming = streaming
        #: Column with a watermark → its delay.
        self.delays_ms = delays_ms or {}

    @property
    def schema(self) -> Any:
        fields = [
            SimpleNamespace(
                name=name,
                metadata={"spark.watermarkDelayMs": self.delays_ms[name]} if name in self.delays_ms else {},
            )
            for name in self.columns
        ]
        return SimpleNamespace(fields=fields, names=self.columns)

    def filter(self, condition: Any) -> Frame:
        return Frame(*self.columns, asked=("filter", condition))

    def select(self, *columns: Any) -> Frame:
        if len(columns) == 1 and isinstance(columns[0], list):
            columns = tuple(columns[0])
        if not all(isinstance(column, str) for column in columns):
            raise TypeError("a list of columns stands alone or not at all")
        every = [name for one in columns for name in (self.columns if one == "*" else [one])]
        return Frame(*every, asked=("select", *columns))

    def drop(self, *columns: str) -> Frame:
        return Frame(*(name for name in self.columns if name not in columns), asked=("drop", *columns))

    def withColumn(self, name: str, expression: Any) -> Frame:  # noqa: N802  (the names that Spark uses)
        return Frame(*self.columns, name, asked=("withColumn", name, expression))

    def withColumns(self, expressions: dict[str, Any]) -> Frame:  # noqa: N802
        return Frame(*self.columns, *expressions, asked=("withColumns", expressions))

    def withColumnRenamed(self, existing: str, new: str) -> Frame:  # noqa: N802
        return Frame(*self.columns, asked=("withColumnRenamed", existing, new))


def source(frame: Any, **settings: Any) -> Stream:
    """`tg.stream` without the types of Spark."""
    return stream(frame, **{"name": "orders", **settings})


def a_stream(name: str = "orders", **settings: Any) -> Stream:
    return source(Frame("ts", "cell"), **{"time": "ts", "name": name, **settings})


def node_of(given: Stream) -> Node:
    return given.write_to("noop").node


def source_of(given: Stream) -> Source:
    node = node_of(given)
    assert isinstance(node, Source)
    return node


def stepped(given: Stream) -> StatelessStep:
    node = node_of(given)
    assert isinstance(node, StatelessStep)
    return node
