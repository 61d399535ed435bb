"""Mistakes of users: each is one short error that names the thing and the remedy, and nothing is lost.

`mistakes.py` lists those that are found before anything runs. Here are those that need a query: calls on its
handle, starts on its checkpoint, and mistakes at run time, which are mended before a second run.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.spark.flows import (
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    counted,
    read_files,
    seconds,
    stream_table,
)
from tests.spark.mistakes import MISTAKES, Bench, Mean, Mistake

import tidegate as tg
from tidegate.driver.engine.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINES_MAX, LINE_MAX = 6, 110
#: What no message may contain: parts of stacks of Java and Python, and of plans of Spark.
STACKS = ("\tat ", "Traceback", "Py4J", 'File "', "java.", "org.apache", "_tidegate_time#", "SQLSTATE")


def check(error: BaseException, code: str, words: tuple[str, ...]) -> None:
    """An error with this code, and a message that a stranger understands."""
    text = str(error)
    assert isinstance(error, tg.TidegateError), f"{type(error).__name__}: {text}"
    assert error.code == code, text
    assert text.startswith(f"[{code}] ")
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in: {text}"
    assert len(textwrap.wrap(text, LINE_MAX)) <= LINES_MAX, text
    assert "\n" not in text
    assert not [stack for stack in STACKS if stack in text], text
    assert error.details["problem"], text
    assert error.details["remedy"], text


# -- before anything runs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(spark, tmp_path_factory.mktemp("bench"))


def test_there_are_enough_mistakes_and_each_has_a_name() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 80


@pytest.mark.parametrize("mistake", [pytest.param(one, id=one.name) for one in MISTAKES])
def test_a_mistake_in_a_description(
    bench: Bench, mistake: Mistake, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(tg.TidegateError) as raised:
        mistake.make(bench)
    check(raised.value, mistake.code, mistake.words)
    assert (raised.value.__cause__ is not None) == mistake.caused
    assert isinstance(raised.value, tg.FlowError | tg.StateError)
    assert "\\tat " not in capfd.readouterr().err, "a Java stack was printed"
    assert not (bench.folder / "never").exists(), "something has started"


# -- with a query that has run ---------------------------------------------------------------------------


class Home:
    """Two streams, `a` and `b`, one file a batch, with a checkpoint and a sink that remembers."""

    def __init__(self, spark: SparkSession, folder: Path):
        self.spark, self.folder = spark, folder
        self.sink, self.patch = Sink(), pytest.MonkeyPatch()
        for name in ("a", "b"):
            add_files(folder / name, [stream_table([(seconds(n), 1, n, 0)]) for n in range(3)])

    def stream(self, name: str, step: Callable[[DataFrame], DataFrame] | None = None) -> tg.Stream:
        frame = read_files(self.spark, self.folder / name, STREAM_SCHEMA)
        return tg.stream(frame if step is None else step(frame), time="ts", name=name, lateness="0 seconds")

    def join(self, on: Any = "k", step: Callable[[DataFrame], DataFrame] | None = None) -> tg.Stream:
        joined = self.stream("a", step).join(self.stream("b"), on=on, within="10 seconds", name="near")
        return joined.select("n", "n_right")

    def means(self, mean: type[tg.Aggregator] = Mean) -> tg.Stream:
        return self.stream("a").window("1 second", by="k", name="near").agg(mean=mean("n"))

    def start(self, *outputs: Any, **settings: Any) -> Any:
        given = {"checkpoint": self.folder / "ck", "available_now": True, "instances": 1, **settings}
        return tg.start(*outputs, **given)

    def file(self, number: int = 1) -> Path:
        return self.folder / "a" / f"{number:04d}.parquet"


@pytest.fixture(scope="module")
def ended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Any]:
    """A flow that has run to its end, and the handle of its query."""
    home = Home(spark, tmp_path_factory.mktemp("ended"))
    output = home.join().write_to("parquet", home.folder / "out", name="near")
    query = home.start(output)
    assert query.await_termination(PATIENCE_SECONDS)
    return home, query


AFTERWARDS: dict[str, tuple[Callable[[Home, Any], object], str, tuple[str, ...]]] = {
    "rescale a query that has ended": (
        lambda home, query: query.rescale(4),
        "RESCALE_NOT_RUNNING",
        ("running", "instances="),
    ),
    "set the goal": (
        lambda home, query: query.set_goal(tg.Goal(latency="2 seconds")),
        "SET_GOAL_NOT_RUNNING",
        ("running", "Start it again with goal="),
    ),
    "pause": (lambda home, query: query.pause(), "PAUSE_NOT_RUNNING", ("paused", "Start it again")),
    "receipts by day": (
        lambda home, query: query.receipts(by="day"),
        "RECEIPTS_PERIOD_UNKNOWN",
        ("'day'", "hour"),
    ),
    "receipts since nonsense": (
        lambda home, query: query.receipts(since="yesterday"),
        "RECEIPTS_SINCE_INVALID",
        ("'yesterday'", "since"),
    ),
    "wait for no query": (lambda home, query: tg.await_any(), "AWAIT_ANY_EMPTY", ("tg.start",)),
    "an operator that is another one": (
        lambda home, query: home.start(
            home.means().write_to(home.sink, name="near"), home.stream("b").write_to(home.sink, name="b")
        ),
        "CHECKPOINT_FLOW_CHANGED",
        ("near", "a new name"),
    ),
    "a stream that is gone": (
        lambda home, query: home.start(home.means().write_to(home.sink, name="near")),
        "CHECKPOINT_STREAM_REMOVED",
        ("b", "noop"),
    ),
    "a rename of a name that is not there": (
        lambda home, query: home.start(
            home.join().write_to(home.sink, name="close"), renames={"nera": "close"}
        ),
        "RENAME_UNKNOWN",
        ("nera", "close", "near"),
    ),
    "an output directory of another run": (
        lambda home, query: home.start(
            home.join().write_to("parquet", home.folder / "out", name="near"),
            checkpoint=home.folder / "new",
        ),
        "OUTPUT_DIRECTORY_IN_USE",
        ("/out", "part-000000000", "another directory"),
    ),
    "another number of partitions": (
        lambda home, query: home.start(home.join().write_to(home.sink, name="near"), partitions=3),
        "CHECKPOINT_FLOW_CHANGED",
        ("partitions", "new checkpoint"),
    ),
}


@pytest.mark.parametrize("name", AFTERWARDS)
def test_a_mistake_with_a_query_that_has_run(ended: tuple[Home, Any], name: str) -> None:
    make, code, words = AFTERWARDS[name]
    with pytest.raises(tg.TidegateError) as raised:
        make(*ended)
    check(raised.value, code, words)


def test_a_checkpoint_in_use(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(spark, tmp_path)
    with home.start(home.join().write_to(home.sink, name="near"), available_now=False) as query:
        with pytest.raises(tg.CheckpointInUse) as raised:
            home.start(home.join().write_to(home.sink, name="near"))
        check(raised.value, "CHECKPOINT_IN_USE", (str(tmp_path / "ck"), "checkpoint="))
        query.process_all_available()
    assert counted(home.sink.rows) == counted(PAIRS)


def test_null_times_are_rejected_counted_and_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(spark, tmp_path)
    add_files(tmp_path / "a", [stream_table([(None, 1, 7, 0), (seconds(3), 1, 8, 0)])])
    source, rejected = home.stream("a"), Sink()
    query = home.start(
        source.write_to(home.sink, name="all"), source.rejected.write_to(rejected, name="nulls")
    )
    assert query.await_termination(PATIENCE_SECONDS)
    assert [row[2] for row in rejected.rows] == [7]
    assert sorted(row[2] for row in home.sink.rows) == [0, 1, 2, 8]
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert total.loc[("stream", "a"), "rows_rejected"] == 1


# -- while a query runs: mended, it writes what it would have written -------------------------------------

PAIRS = [(x, y) for x in range(3) for y in range(3)]
#: The third window is still open when the input ends.
MEANS = [(1, float(n)) for n in range(2)]


@dataclass(frozen=True)
class Broken:
    """A mistake at run time: how it is made, and how it is mended; both return the output."""

    name: str
    wrong: Callable[[Home], Any]
    mended: Callable[[Home], Any]
    code: str
    words: tuple[str, ...]
    details: tuple[str, ...]
    #: The first run fails when it starts, not in a batch.
    at_start: bool = field(default=False, kw_only=True)


def good(home: Home) -> Any:
    return home.join().write_to(home.sink, name="near")


def good_means(home: Home) -> Any:
    return home.means().select("k", "mean").write_to(home.sink, name="near")


def sink_that(act: Callable[[Home, int], None], home: Home) -> Any:
    """An output with a function that does something beside its work."""

    def write(frame: DataFrame, batch: int) -> None:
        act(home, batch)
        home.sink(frame, batch)

    return home.join().write_to(write, name="near")


def raise_in_second(home: Home, batch: int) -> None:
    if batch == 1:
        raise ConnectionError("no such table")


def failing_udf(home: Home) -> Any:
    from pyspark.sql import functions as F

    def checked(n: int) -> int:
        if n == 1:
            raise ValueError("bad row")
        return n

    def step(frame: DataFrame) -> DataFrame:
        return frame.withColumn("n", F.udf(checked, "long", useArrow=False)("n"))

    return home.join(step=step).write_to(home.sink, name="near")


class FailingMean(Mean):
    """Fails for the second window."""

    def finish(self, state: Any) -> Any:
        if state[1] == 1:
            raise ArithmeticError("one is not allowed")
        return super().finish(state)


def failing_pairs(left: Any, right: Any) -> Any:
    raise KeyError("cell")


def equal_pairs(left: Any, right: Any) -> Any:
    return left == right


def by_pairs(function: Callable[[Any, Any], Any], home: Home) -> Any:
    return home.join(tg.pairwise(function, "k")).write_to(home.sink, name="near")


def damaged(home: Home) -> Any:
    shutil.copy2(home.file(), home.folder / "kept")
    home.file().write_bytes(b"PAR1 this is no parquet file")
    # The file source reads files in the order of their times.
    shutil.copystat(home.folder / "kept", home.file())
    return good(home)


def vanishing(home: Home) -> Any:
    """The file is taken away when Spark has planned the batch that reads it."""
    run_batch = Engine.run_batch

    def run(engine: Engine, frame: DataFrame, batch: int, flush: bool = False) -> None:
        if batch == 1:
            home.file().rename(home.folder / "kept")
        run_batch(engine, frame, batch, flush)

    home.patch.setattr(Engine, "run_batch", run)
    return good(home)


def back_again(home: Home) -> Any:
    home.patch.undo()
    return restored(home)


def restored(home: Home) -> Any:
    shutil.copy2(home.folder / "kept", home.file())
    return good(home)


def retyped(home: Home) -> Any:
    shutil.copy2(home.file(), home.folder / "kept")
    table = pq.read_table(home.file())
    number = table.schema.get_field_index("k")
    pq.write_table(table.set_column(number, "k", table.column("k").cast("string")), home.file())
    shutil.copystat(home.folder / "kept", home.file())
    return good(home)


def to_files(home: Home) -> Any:
    return home.join().write_to("parquet", home.folder / "out" / "near", name="near")


def a_file_for_a_folder(home: Home) -> Any:
    (home.folder / "out").write_text("a file where a folder is needed")
    return to_files(home)


def a_folder_again(home: Home) -> Any:
    (home.folder / "out").unlink()
    return to_files(home)


def a_file_for_the_checkpoint(home: Home) -> Any:
    (home.folder / "ck").write_text("a file where a folder is needed")
    return good(home)


def a_free_checkpoint(home: Home) -> Any:
    (home.folder / "ck").unlink()
    return good(home)


def lose_plans(home: Home, batch: int) -> None:
    """Put a file in the place of a folder of the checkpoint."""
    plans = home.folder / "ck" / "tidegate" / "plans"
    if batch == 0:
        plans.rename(home.folder / "plans")
        plans.write_text("")


def plans_again(home: Home) -> Any:
    plans = home.folder / "ck" / "tidegate" / "plans"
    plans.unlink()
    (home.folder / "plans").rename(plans)
    return good(home)


def to_table(home: Home) -> Any:
    return home.join().write_to_table("mistaken", name="near")


def another_table(home: Home) -> Any:
    home.spark.sql("DROP TABLE IF EXISTS mistaken")
    home.spark.sql("CREATE TABLE mistaken (n LONG, batch LONG) USING parquet PARTITIONED BY (batch)")
    return to_table(home)


def no_table(home: Home) -> Any:
    home.spark.sql("DROP TABLE mistaken")
    return to_table(home)


def divided_by_zero(home: Home) -> Any:
    return home.join().where("n / (n_right - n_right) > 0").write_to(home.sink, name="near")


NOT_COMMITTED = "Nothing of the batch was committed"
BROKEN = (
    Broken(
        "a sink that raises",
        partial(sink_that, raise_in_second),
        good,
        "SINK_FAILED",
        ("Batch 1", "'near'", "ConnectionError: no such table", NOT_COMMITTED, "same checkpoint"),
        ("batch_id", "output"),
    ),
    Broken(
        "a function in a step that raises",
        failing_udf,
        good,
        "USER_FUNCTION_FAILED",
        (
            "Batch 1",
            "ValueError: bad row in checked (test_mistakes.py",
            "Mend the function",
            "same checkpoint",
        ),
        ("batch_id",),
    ),
    Broken(
        "an Aggregator that raises",
        lambda home: home.means(FailingMean).select("k", "mean").write_to(home.sink, name="near"),
        good_means,
        "AGGREGATOR_FAILED",
        ("'mean'", "finish", "ArithmeticError: one is not allowed"),
        ("batch_id", "operator"),
    ),
    Broken(
        "a pairwise function that raises",
        partial(by_pairs, failing_pairs),
        partial(by_pairs, equal_pairs),
        "JOIN_FUNCTION_FAILED",
        ("Batch 0", "'near'", "failing_pairs", "KeyError: 'cell'"),
        ("batch_id", "operator"),
    ),
    Broken(
        "a damaged source file",
        damaged,
        restored,
        "SOURCE_FILE_DAMAGED",
        ("Batch 1", "/a/0001.parquet", "Stream: 'a'", "Replace the file"),
        ("batch_id", "stream", "file"),
    ),
    Broken(
        "a source file that vanishes",
        vanishing,
        back_again,
        "SOURCE_FILE_MISSING",
        ("Batch 1", "/a/0001.parquet", "Stream: 'a'", "Restore the file"),
        ("batch_id", "stream", "file"),
    ),
    Broken(
        "a column with another type in a later file",
        retyped,
        restored,
        "SOURCE_COLUMN_CHANGED",
        ("Batch 1", "/a/0001.parquet", "Stream: 'a'", "schema"),
        ("batch_id", "stream", "file"),
    ),
    Broken(
        "an output path below a file",
        a_file_for_a_folder,
        a_folder_again,
        "SINK_FAILED",
        ("Batch 0", "'near'", "/out", NOT_COMMITTED),
        ("batch_id", "output"),
    ),
    Broken(
        "a checkpoint that is a file",
        a_file_for_the_checkpoint,
        a_free_checkpoint,
        "CHECKPOINT_UNWRITABLE",
        ("/ck", "checkpoint="),
        (),
        at_start=True,
    ),
    Broken(
        "a checkpoint that cannot be written any more",
        partial(sink_that, lose_plans),
        plans_again,
        "CHECKPOINT_FILE_UNUSABLE",
        ("plans/0000000001.json", "/ck/tidegate/plans", "Look at what is there"),
        (),
    ),
    Broken(
        "a table with other columns",
        another_table,
        no_table,
        "OUTPUT_TABLE_COLUMNS",
        ("mistaken", "'near'", "n_right", "Select the columns"),
        ("batch_id", "output"),
    ),
    Broken(
        "an expression that Spark cannot evaluate",
        divided_by_zero,
        good,
        "SINK_FAILED",
        ("Batch 0", "'near'", "DIVIDE_BY_ZERO"),
        ("batch_id", "output"),
    ),
)


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Iterator[Home]:
    made = Home(spark, tmp_path)
    yield made
    made.patch.undo()
    spark.sql("DROP TABLE IF EXISTS mistaken")


@pytest.mark.parametrize("broken", [pytest.param(one, id=one.name) for one in BROKEN])
def test_a_mistake_at_run_time_loses_nothing(home: Home, broken: Broken) -> None:
    with pytest.raises(tg.TidegateError) as raised:
        home.start(broken.wrong(home)).await_termination(PATIENCE_SECONDS)
    check(raised.value, broken.code, broken.words)
    assert raised.value.__cause__ is not None or broken.code == "OUTPUT_TABLE_COLUMNS"
    assert set(broken.details) <= set(raised.value.details), raised.value.details
    assert home.start(broken.mended(home)).await_termination(PATIENCE_SECONDS)
    assert counted(written(home, broken)) == counted(expected(home, broken))


def written(home: Home, broken: Broken) -> list[tuple[Any, ...]]:
    """The rows of the output after the second run."""
    if broken.mended is a_folder_again:
        frame = home.spark.read.parquet(str(home.folder / "out" / "near"))
    elif broken.mended is no_table:
        frame = home.spark.table("mistaken")
    else:
        return home.sink.rows
    return [tuple(row) for row in frame.select("n", "n_right").collect()]


def expected(home: Home, broken: Broken) -> list[tuple[Any, ...]]:
    """What a run without the mistake writes."""
    return MEANS if broken.mended is good_means else PAIRS


@pytest.mark.parametrize(("output", "rows"), [(good, PAIRS), (good_means, MEANS)])
def test_a_run_without_a_mistake_writes_these_rows(
    home: Home, output: Callable[[Home], Any], rows: list[tuple[Any, ...]]
) -> None:
    assert home.start(output(home)).await_termination(PATIENCE_SECONDS)
    assert counted(home.sink.rows) == counted(rows)
