from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.api.frames import a_stream, node_of
from tests.unit.messages.expecting import expect

from tidegate.api import write_stream
from tidegate.api.goal import Goal, Shed
from tidegate.api.nodes import Output
from tidegate.api.write_stream import OPTIONS, PREFIX, StreamWriter


class Started:
    """What `tg.start` was called with."""

    def __init__(self, output: Output, settings: dict[str, Any]) -> None:
        self.output = output
        #: Without those that are None.
        self.settings = {name: value for name, value in settings.items() if value is not None}


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_stream, "start", lambda output, **settings: Started(output, settings))


def writer() -> StreamWriter:
    return a_stream().writeStream


def started(query: Any) -> Started:
    assert isinstance(query, Started)
    return query


def write(frame: Any, batch_id: int) -> None:
    raise NotImplementedError


def test_a_writer_is_made_under_both_names() -> None:
    assert isinstance(a_stream().writeStream, StreamWriter)
    assert isinstance(a_stream().write_stream, StreamWriter)


def test_a_query_as_it_is_written_for_spark() -> None:
    orders = a_stream()
    found = started(
        orders.writeStream.format("json")
        .queryName("near")
        .outputMode("append")
        .partitionBy("day", "cell")
        .option("checkpointLocation", "ck")
        .option("compression", "gzip")
        .options(mergeSchema=True, maxRecordsPerFile=5)
        .trigger(processingTime="1 second")
        .start("out/near")
    )
    output = found.output
    assert output.node is node_of(orders)
    assert (output.format, output.path, output.name) == ("json", "out/near", "near")
    assert output.partition_by == ("day", "cell")
    assert output.options == {"compression": "gzip", "mergeSchema": "true", "maxRecordsPerFile": "5"}
    assert found.settings == {"name": "near", "checkpoint": "ck", "trigger": "1 second"}


def test_the_snake_case_names_do_the_same() -> None:
    named = writer().query_name("near").output_mode("append").partition_by("day")
    found = started(named.to_table("db.near"))
    assert started(writer().foreach_batch(write).start()).output.function is write
    assert (found.output.table, found.output.name, found.output.partition_by) == ("db.near", "near", ("day",))


def test_the_parameters_of_start_are_those_of_spark() -> None:
    found = started(
        writer().start(
            "out",
            format="orc",
            outputMode="append",
            partitionBy=["a", "b"],
            queryName="q",
            compression="zstd",
        )
    )
    assert (found.output.format, found.output.path, found.output.name) == ("orc", "out", "q")
    assert (found.output.partition_by, found.output.options) == (("a", "b"), {"compression": "zstd"})
    assert started(writer().start("out", partitionBy="day")).output.partition_by == ("day",)


def test_files_are_parquet_unless_said_otherwise_and_may_have_their_path_as_an_option() -> None:
    output = started(writer().option("path", "out").start()).output
    assert (output.format, output.path, output.options) == ("parquet", "out", {})
    assert started(writer().option("path", "elsewhere").start("out")).output.path == "out"


def test_a_table_has_its_format_and_options() -> None:
    found = started(writer().format("delta").toTable("db.near", mergeSchema=True, checkpointLocation="ck"))
    assert (found.output.table, found.output.format) == ("db.near", "delta")
    assert found.output.options == {"mergeSchema": "true"}
    assert found.settings == {"checkpoint": "ck"}


def test_a_table_takes_the_parameters_of_spark() -> None:
    found = started(writer().toTable("db.near", "orc", "append", ["day"], "near", checkpointLocation="ck"))
    output = found.output
    assert (output.table, output.format, output.partition_by, output.name) == (
        "db.near",
        "orc",
        ("day",),
        "near",
    )
    assert output.options == {}
    assert found.settings == {"name": "near", "checkpoint": "ck"}
    expect("OUTPUT_MODE_UNSUPPORTED", lambda: writer().toTable("db.near", outputMode="complete"))


def test_the_case_of_the_checkpoint_and_of_the_path_does_not_matter() -> None:
    found = started(writer().option("checkpointlocation", "ck").option("PATH", "out").start())
    assert (found.settings, found.output.path, found.output.options) == ({"checkpoint": "ck"}, "out", {})


def test_rows_of_a_table_do_not_wait_to_be_published() -> None:
    waiting = writer().option("tidegate.commit_every", "30 seconds").option("checkpointLocation", "ck")
    expect("OUTPUT_COMMIT_EVERY_WITHOUT_FILES", lambda: waiting.toTable("db.near"))


def test_a_function_gets_every_batch() -> None:
    output = started(writer().foreachBatch(write).option("checkpointLocation", "ck").start()).output
    assert (output.function, output.options) == (write, {})
    expect("OUTPUT_FUNCTION_SETTINGS", lambda: writer().foreachBatch(write).option("a", "b").start())


def test_what_is_available_now_runs_once() -> None:
    assert started(writer().format("noop").trigger(availableNow=True).start()).settings == {
        "available_now": True
    }


#: Option, its text, and where its value arrives.
ARRIVING: list[tuple[str, Any, Callable[[Started], object], object]] = [
    ("max_gap", "10", lambda found: found.output.max_gap, 10),
    ("max_gap", "5 minutes", lambda found: found.output.max_gap, "5 minutes"),
    ("priority", "2.5", lambda found: found.output.priority, 2.5),
    ("repair_column", "skipped", lambda found: found.output.repair_column, "skipped"),
    ("commit_every", "30 seconds", lambda found: found.output.commit_every_us, 30_000_000),
    ("repair", "idle", lambda found: found.settings["shed"], Shed(repair="idle")),
    ("instances", 4, lambda found: found.settings["instances"], 4),
    ("partitions", "32", lambda found: found.settings["partitions"], 32),
    ("seed", "7", lambda found: found.settings["seed"], 7),
    ("latency", "2 seconds", lambda found: found.settings["goal"], Goal(latency="2 seconds")),
    ("max_loss", "0.1", lambda found: found.settings["goal"], Goal(latency="2 seconds", max_loss=0.1)),
    ("max_state", "2 GB", lambda found: found.settings["goal"], Goal(latency="2 seconds", max_state="2 GB")),
]


@pytest.mark.parametrize(("name", "text", "found", "value"), ARRIVING)
def test_an_option_of_ours_arrives_where_it_belongs(
    name: str, text: Any, found: Callable[[Started], object], value: object
) -> None:
    one = writer().format("parquet").option(PREFIX + name, text)
    if name in ("max_loss", "max_state"):
        one = one.option("tidegate.latency", "2 seconds")
    query = started(one.start("out"))
    assert found(query) == value
    assert query.output.options == {}


def test_every_option_of_ours_is_tested_above() -> None:
    assert {name for name, *_ in ARRIVING} == set(OPTIONS)


@pytest.mark.parametrize("name", ["tidegate.latencies", "tidegate.", "tidegate.Latency"])
def test_an_unknown_option_of_ours_is_refused_with_the_known_ones(name: str) -> None:
    error = expect("OPTION_UNKNOWN", lambda: writer().option(name, "2 seconds"))
    assert error.details["got"] == repr(name)
    assert "tidegate.latency, " in error.details["remedy"]


@pytest.mark.parametrize(
    ("name", "value"), [("instances", "many"), ("seed", "1.5"), ("priority", "high"), ("max_loss", True)]
)
def test_a_number_that_is_none_is_refused(name: str, value: object) -> None:
    error = expect("OPTION_VALUE", lambda: writer().option(PREFIX + name, value))
    assert error.details["problem"] == f"Option tidegate.{name} has an unreadable value"


def test_a_goal_has_a_latency() -> None:
    act = lambda: writer().format("noop").options(**{"tidegate.max_loss": 0.1}).start()  # noqa: E731
    assert expect("GOAL_LATENCY_MISSING", act).details["got"] == "tidegate.max_loss"


@pytest.mark.parametrize("mode", ["complete", "update"])
def test_rows_are_appended_only(mode: str) -> None:
    expect("OUTPUT_MODE_UNSUPPORTED", lambda: writer().outputMode(mode))
    expect("OUTPUT_MODE_UNSUPPORTED", lambda: writer().start("out", outputMode=mode))


@pytest.mark.parametrize(
    "given", [{}, {"availableNow": False}, {"processingTime": "1 second", "availableNow": True}]
)
def test_a_trigger_is_one_of_two(given: dict[str, Any]) -> None:
    expect("TRIGGER_AMBIGUOUS", lambda: writer().trigger(**given))


def test_a_function_and_a_table_exclude_each_other() -> None:
    expect("OUTPUT_FUNCTION_AND_TABLE", lambda: writer().foreachBatch(lambda rows, batch: None).toTable("t"))
