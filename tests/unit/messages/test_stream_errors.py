"""Streams, steps, range queries and matches: a mistake in the description of a flow has its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.messages.expecting import Frame, a_stream, expect

import tidegate as tg
from tidegate.api.names import path_text
from tidegate.driver.compile import ports
from tidegate.driver.compile.graph_checks import (
    check_columns,
    check_outputs,
    graph_of,
    same_time_type,
    sources_of,
)
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.driver.compile.match_columns import match_schema


def a_source(frame: Any = None, **settings: Any) -> tg.Stream:
    given: Any = Frame() if frame is None else frame
    return tg.stream(given, name="orders", **settings)


STREAMS: list[tuple[str, Callable[[], object]]] = [
    ("NAME_UNUSABLE", lambda: a_stream(" ")),
    ("NAME_TOO_LONG", lambda: a_stream("x" * 1000)),
    ("STREAM_NOT_A_FRAME", lambda: a_source([1, 2], time="ts")),
    ("COLUMN_NAME_RESERVED", lambda: a_source(Frame(("ts", "_tidegate_x")), time="ts")),
    ("STREAM_TIME_MISSING", lambda: a_source()),
    ("STREAM_TIME_UNKNOWN", lambda: a_source(time="when")),
    ("STREAM_TIME_TWICE", lambda: a_source(Frame(watermarks=(("ts", 1000),)), time="cell")),
    ("STREAM_LATENESS_TWICE", lambda: a_source(Frame(watermarks=(("ts", 1000),)), lateness="2 seconds")),
    ("STREAM_LATENESS_MISSING", lambda: a_source(Frame(isStreaming=True), time="ts")),
    ("STREAM_WATERMARKS_SEVERAL", lambda: a_source(Frame(watermarks=(("ts", 1), ("cell", 1))))),
    ("STREAM_AVAILABLE_AT_MISSING", lambda: a_stream(available_at="arrived")),
    ("STREAM_IDLE_TIMEOUT_ZERO", lambda: a_stream(idle_timeout="0 seconds")),
    ("DURATION_INVALID", lambda: a_stream(lateness="soon")),
    ("STEP_COLUMNS_NOT_A_DICT", lambda: a_stream().with_columns(["fare"])),  # type: ignore[arg-type]
    ("STEP_TRANSFORM_NOT_CALLABLE", lambda: a_stream().transform("fare")),  # type: ignore[arg-type]
    ("STREAM_REFUSED_NOT_SOURCE", lambda: a_stream().filter("fare > 1").late),
    ("STREAM_REFUSED_AS_INPUT", lambda: a_stream().late.window("1 second")),
]


@pytest.mark.parametrize(("code", "call"), STREAMS, ids=[code for code, _ in STREAMS])
def test_a_mistake_in_a_stream_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


QUERIES: list[tuple[str, Callable[[], object]]] = [
    ("QUERY_NAME_MISSING", lambda: tg.RangeQuery("", "x > 1")),
    ("QUERY_PREDICATE_MISSING", lambda: tg.RangeQuery("a", "")),
    ("QUERY_WEIGHT_RANGE", lambda: tg.RangeQuery("a", "x > 1", weight=0)),
    ("QUERY_SENSITIVITY_RANGE", lambda: tg.RangeQuery("a", "x > 1", loss_sensitivity=-1)),
    ("MATCH_QUERIES_TYPE", lambda: a_stream().match("x > 1")),  # type: ignore[arg-type]
    (
        "MATCH_PUBLISH_INCOMPLETE",
        lambda: a_stream().match([tg.RangeQuery("a", "x > 1")], publish_to="filters"),
    ),
]


@pytest.mark.parametrize(("code", "call"), QUERIES, ids=[code for code, _ in QUERIES])
def test_a_mistake_in_a_range_query_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


class Typed(Frame):
    """A frame whose schema has Spark's types."""

    def __init__(self, **types: T.DataType) -> None:
        super().__init__(tuple(types))
        self._schema = T.StructType([T.StructField(name, kind) for name, kind in types.items()])

    @property
    def schema(self) -> T.StructType:
        return self._schema


def test_a_time_that_is_not_a_timestamp_is_named_with_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.functions.col", str)  # Spark's needs a session
    node = a_stream(time="cell").write_to("noop").node
    frame = Typed(ts=T.TimestampType(), cell=T.LongType())
    object.__setattr__(node, "frame", frame)
    error = expect("STREAM_TIME_TYPE_INVALID", lambda: ports.timed(node))  # type: ignore[arg-type]
    assert "'cell': bigint" in str(error)


def test_a_transform_that_drops_the_event_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "DataFrame", Frame)
    _, steps = ports.steps_of(a_stream().transform(lambda frame: Frame(("cell",))).write_to("noop").node)  # type: ignore[arg-type, return-value]
    frame: Any = Frame()
    error = expect("STEP_TIME_LOST", lambda: ports.apply_steps(frame, steps, "'orders'"))
    assert "columns cell" in str(error)


def test_a_column_that_match_would_write_is_refused() -> None:
    frame: Any = Typed(query_name=T.StringType())
    expect("MATCH_COLUMN_EXISTS", lambda: match_schema(frame, False))


def test_times_with_and_without_a_zone_are_not_compared() -> None:
    expect("JOIN_TIME_TYPES_DIFFER", lambda: same_time_type(T.TimestampType(), T.TimestampNTZType()))


def outputs(*streams: tg.Stream) -> list[Any]:
    return [one.write_to("noop", name=f"o{i}") for i, one in enumerate(streams)]


def a_match(stream: tg.Stream, name: str) -> tg.Stream:
    return stream.match([tg.RangeQuery("a", "x > 1")], name=name)


GRAPHS: list[tuple[str, Callable[[], object]]] = [
    ("OUTPUTS_MISSING", lambda: check_outputs([])),
    ("OUTPUT_TYPE", lambda: check_outputs([a_stream()])),  # type: ignore[list-item]
    ("OUTPUT_NAMES_EQUAL", lambda: check_outputs([a_stream().write_to("noop", name="a")] * 2)),
    (
        "OUTPUT_PATHS_EQUAL",
        lambda: check_outputs([a_stream().write_to("json", "out", name=name) for name in "ab"]),
    ),
    (
        "OPERATOR_NAMES_EQUAL",
        lambda: graph_of(outputs(a_match(a_stream(), "near"), a_match(a_stream("tracks"), "near"))),
    ),
    ("OPERATOR_STREAM_NAMES_EQUAL", lambda: graph_of(outputs(a_match(a_stream(), "orders")))),
    ("STREAM_NAMES_EQUAL", lambda: sources_of(outputs(a_stream(), a_stream()))),
    (
        "OUTPUT_PARTITION_BY_UNKNOWN",
        lambda: check_columns(a_stream().write_to("json", "out", partition_by="day"), []),
    ),
    (
        "OUTPUT_REPAIR_COLUMN_TAKEN",
        lambda: check_columns(
            a_stream().write_to("noop", repair_column="late"), [T.StructField("late", T.LongType())]
        ),
    ),
]


@pytest.mark.parametrize(("code", "call"), GRAPHS, ids=[code for code, _ in GRAPHS])
def test_a_flow_that_does_not_fit_together_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


def near(a: Any, b: Any) -> Any:
    return a == b


def a_join(on: Any) -> tg.Stream:
    return a_stream().join(a_stream("tracks"), on, within="1 second")


JOINS: list[tuple[str, Callable[[], object]]] = [
    ("JOIN_KEY_INVALID", lambda: tg.equal("cell", null_safe=1)),  # type: ignore[arg-type]
    ("JOIN_KEY_TWICE", lambda: a_join(["cell", "cell"])),
    (
        "JOIN_CONDITIONS_MANY",
        lambda: a_join([tg.pairwise(near, ["cell"]), tg.overlap("cell", at_least=1)]),
    ),
    ("JOIN_PAIRWISE_FUNCTION", lambda: tg.pairwise("near", ["cell"])),  # type: ignore[arg-type]
    ("JOIN_PAIRWISE_COLUMNS", lambda: tg.pairwise(near, [])),
    ("JOIN_SET_COLUMN", lambda: tg.overlap({}, at_least=1)),
    ("JOIN_SET_INDEX_UNKNOWN", lambda: tg.overlap("cell", at_least=1, index="best")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("code", "call"), JOINS, ids=[code for code, _ in JOINS])
def test_a_mistake_in_a_join_condition_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


def test_a_type_that_arrow_cannot_store_is_named_with_its_column() -> None:
    schema = T.StructType([T.StructField("shape", T.CharType(3))])
    error = expect("JOIN_COLUMN_TYPE_UNSUPPORTED", lambda: arrow_schema(schema, "near"))
    assert "'shape' of near" in str(error)


WINDOWS: list[tuple[str, Callable[[], object]]] = [
    ("WINDOW_AGGREGATES_MISSING", lambda: a_stream().window("1 second").agg()),
    ("WINDOW_BY_INVALID", lambda: a_stream().window("1 second", by=[3])),  # type: ignore[list-item]
    ("WINDOW_BY_REPEATED", lambda: a_stream().window("1 second", by=["cell", "CELL"])),
    ("WINDOW_BY_CLASH", lambda: a_stream().window("1 second", by="window_start")),
    ("WINDOW_DROP_UNKNOWN", lambda: a_stream().window("1 second", by="k", drop="rows")),  # type: ignore[arg-type]
    ("WINDOW_DROP_BY_MISSING", lambda: a_stream().window("1 second", drop="groups")),
    ("WINDOW_DROP_UNSUPPORTED", lambda: a_stream().window(tg.row_window(9), by="k", drop="groups")),
    (
        "WINDOW_DROP_UNSUPPORTED",
        lambda: a_stream().window("1 second", by="k", approximate=True, drop="groups"),
    ),
    ("ROW_WINDOW_APPROXIMATE", lambda: a_stream().window(tg.row_window(10), approximate=True)),
]


@pytest.mark.parametrize(("code", "call"), WINDOWS, ids=[code for code, _ in WINDOWS])
def test_a_mistake_in_a_window_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


OUTPUTS: list[tuple[str, Callable[[], object]]] = [
    ("OUTPUT_PATH_MISSING", lambda: a_stream().write_to("parquet")),
    ("OUTPUT_TARGET_TYPE", lambda: a_stream().write_to(3)),  # type: ignore[arg-type]
    ("OUTPUT_TABLE_TYPE", lambda: a_stream().write_to_table("")),
    ("OUTPUT_OPTIONS_TYPE", lambda: a_stream().write_to("noop", options=["a"])),  # type: ignore[arg-type]
    ("OUTPUT_PARTITION_BY_TYPE", lambda: a_stream().write_to("noop", partition_by=[3])),  # type: ignore[list-item]
    ("OUTPUT_MODE_UNSUPPORTED", lambda: a_stream().write_to("noop", mode="complete")),  # type: ignore[arg-type]
    ("OUTPUT_FUNCTION_SETTINGS", lambda: a_stream().write_to(print, "out")),
    ("OUTPUT_MAX_GAP_RANGE", lambda: a_stream().write_to("noop", max_gap=0)),
    ("OUTPUT_PRIORITY_RANGE", lambda: a_stream().write_to("noop", priority=0)),
    ("MAX_LOSS_RANGE", lambda: a_stream().write_to("noop", max_loss=2)),
    ("PATH_TYPE", lambda: path_text(3, "The checkpoint")),
    ("OPTION_UNKNOWN", lambda: a_stream().writeStream.option("tidegate.latencies", "1 s")),
    ("OPTION_VALUE", lambda: a_stream().writeStream.option("tidegate.instances", "many")),
    ("TRIGGER_AMBIGUOUS", lambda: a_stream().writeStream.trigger()),
    (
        "GOAL_LATENCY_MISSING",
        lambda: a_stream().writeStream.format("noop").option("tidegate.max_loss", "0.1").start(),
    ),
]


@pytest.mark.parametrize(("code", "call"), OUTPUTS, ids=[code for code, _ in OUTPUTS])
def test_a_mistake_in_an_output_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)
