from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.frames import a_stream, node_of
from tests.unit.messages.expecting import expect

from tidegate.api.nodes import Output


def write(frame: Any, batch_id: int) -> None:
    raise NotImplementedError


def test_a_function_is_an_output() -> None:
    output = a_stream().write_to(write)
    assert isinstance(output, Output)
    assert (output.function, output.format, output.path, output.table) == (write, None, None, None)
    assert output.name == "orders"


def test_every_setting_of_a_format_reaches_the_output() -> None:
    output = a_stream().write_to(
        "parquet",
        "out/pairs",
        name="pairs",
        mode="append",
        keys=[],
        partition_by=["day", "cell"],
        options={"compression": "zstd", "maxRecordsPerFile": 5, "mergeSchema": True},
        max_loss=0.25,
        max_gap=3,
        priority=2,
        repair_column="skipped_in",
    )
    assert (output.format, output.path, output.name) == ("parquet", "out/pairs", "pairs")
    assert (output.function, output.table) == (None, None)
    assert output.partition_by == ("day", "cell")
    assert output.options == {"compression": "zstd", "maxRecordsPerFile": "5", "mergeSchema": "true"}
    assert (output.max_loss, output.max_gap, output.priority) == (0.25, 3, 2.0)
    assert output.repair_column == "skipped_in"


def test_what_is_left_out_has_its_default() -> None:
    output = a_stream().write_to("noop")
    assert (output.path, output.options, output.partition_by) == (None, {}, ())
    assert (output.max_loss, output.max_gap, output.priority) == (None, None, 1.0)
    assert (output.given_name, output.repair_column) == (None, None)


def test_every_setting_of_a_table_reaches_the_output() -> None:
    orders = a_stream()
    output = orders.write_to_table(
        "db.near",
        format="delta",
        name="near",
        partition_by="day",
        options={"a": False},
        max_loss=0.5,
        max_gap="5 minutes",
        priority=0.5,
        repair_column="skipped_in",
    )
    assert output.node is node_of(orders)
    assert (output.table, output.format, output.path, output.name) == ("db.near", "delta", None, "near")
    assert (output.partition_by, output.options) == (("day",), {"a": "false"})
    assert (output.max_loss, output.max_gap, output.priority) == (0.5, "5 minutes", 0.5)
    assert output.repair_column == "skipped_in"
    assert a_stream().write_to_table("near").format is None


@pytest.mark.parametrize("table", ["", " ", None, 3])
def test_a_table_has_a_name(table: Any) -> None:
    expect("OUTPUT_TABLE_TYPE", lambda: a_stream().write_to_table(table))


@pytest.mark.parametrize("target", ["", None, 3])
def test_an_output_that_is_neither_format_nor_function_is_refused(target: Any) -> None:
    error = expect("OUTPUT_TARGET_TYPE", lambda: a_stream().write_to(target))
    assert error.details["got"] == repr(target)
    expect("OUTPUT_TARGET_TYPE", lambda: a_stream().write_to_table("near", format=""))


def test_a_path_is_a_text_or_a_path(tmp_path: Path) -> None:
    assert a_stream().write_to("parquet", tmp_path / "pairs").path == str(tmp_path / "pairs")
    for path in (3, ""):
        error = expect("PATH_TYPE", lambda path=path: a_stream().write_to("parquet", path))  # type: ignore[misc]
        assert error.details["problem"] == "The path of a parquet output is not a path"


@pytest.mark.parametrize("target", ["parquet", "orc", "json", "csv", "text", "avro", "xml"])
def test_a_format_of_files_needs_a_path(target: str) -> None:
    error = expect("OUTPUT_PATH_MISSING", lambda: a_stream().write_to(target))
    assert error.details["problem"] == f"A {target} output needs a path"


@pytest.mark.parametrize("settings", [{"mode": "update"}, {"mode": "complete"}, {"keys": ["cell"]}])
def test_rows_are_appended_only(settings: dict[str, Any]) -> None:
    expect("OUTPUT_MODE_UNSUPPORTED", lambda: a_stream().write_to("noop", **settings))
    expect("OUTPUT_MODE_UNSUPPORTED", lambda: a_stream().write_to_table("near", **settings))


@pytest.mark.parametrize("options", [["compression"], "zstd", {3: "x"}])
def test_options_are_a_dict_of_texts(options: Any) -> None:
    expect("OUTPUT_OPTIONS_TYPE", lambda: a_stream().write_to("noop", options=options))


@pytest.mark.parametrize("columns", [[3], 3, None, [""], ["day", None]])
def test_files_are_laid_out_by_names_of_columns(columns: Any) -> None:
    expect("OUTPUT_PARTITION_BY_TYPE", lambda: a_stream().write_to("noop", partition_by=columns))


@pytest.mark.parametrize(
    ("path", "settings", "got"),
    [
        ("out", {}, "path='out'"),
        (None, {"options": {"a": "b"}}, "options={'a': …}"),
        (None, {"partition_by": "day"}, "partition_by=('day',)"),
    ],
)
def test_a_function_takes_no_path_options_or_layout(
    path: str | None, settings: dict[str, Any], got: str
) -> None:
    error = expect("OUTPUT_FUNCTION_SETTINGS", lambda: a_stream().write_to(write, path, **settings))
    assert error.details["got"] == got


@pytest.mark.parametrize("sink", [write, "noop", "kafka"])
def test_only_files_can_wait_to_be_published(sink: Any) -> None:
    expect("OUTPUT_COMMIT_EVERY_WITHOUT_FILES", lambda: a_stream().write_to(sink, commit_every="30 seconds"))
    output = a_stream().write_to("parquet", "out", commit_every="30 seconds")
    assert output.commit_every_us == 30_000_000


def test_a_function_has_limits_as_a_format_has() -> None:
    output = a_stream().write_to(write, max_loss=0.1, max_gap=2, priority=3, repair_column="skipped")
    assert (output.max_loss, output.max_gap, output.priority) == (0.1, 2, 3.0)
    assert output.repair_column == "skipped"


@pytest.mark.parametrize("gap", [0, -1, 1.5, True, "0 seconds"])
def test_a_gap_of_no_windows_is_refused(gap: Any) -> None:
    error = expect("OUTPUT_MAX_GAP_RANGE", lambda: a_stream().write_to("noop", name="near", max_gap=gap))
    assert str(error.details["problem"]).startswith("max_gap of output 'near'")
    assert error.details["got"] == repr(gap)


@pytest.mark.parametrize("priority", [0, -1, True, None, "high", float("nan"), float("inf")])
def test_a_priority_is_a_weight(priority: Any) -> None:
    expect("OUTPUT_PRIORITY_RANGE", lambda: a_stream().write_to("noop", priority=priority))


@pytest.mark.parametrize("loss", [-0.1, 1.0, 2, "half", float("nan")])
def test_a_loss_is_a_share(loss: Any) -> None:
    expect("MAX_LOSS_RANGE", lambda: a_stream().write_to("noop", max_loss=loss))


@pytest.mark.parametrize("column", ["", 3])
def test_the_column_of_repairs_has_a_usable_name(column: Any) -> None:
    error = expect("NAME_UNUSABLE", lambda: a_stream().write_to("noop", repair_column=column))
    assert error.details["problem"] == "The name of a column is not usable"
