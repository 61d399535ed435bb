"""What may change between two runs on one checkpoint, with rows on both sides of the restart that meet."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, counted, read_files, seconds, start_bounded

import tidegate as tg
from tidegate.control.identity.flow_change import FlowChange
from tidegate.control.identity.renames import Renames
from tidegate.model.codec import encode_exactly
from tidegate.model.graph import FlowNames
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.plan_log import PlanLog

SCHEMA = "ts timestamp, k int, v int"
ROWS = 300
#: A file holds these seconds; all of them but the last can be judged when the next one has come.
FILE_SECONDS = 10


def a_file(number: int, seed: int) -> pa.Table:
    chance = np.random.default_rng([number, seed])
    us = seconds(FILE_SECONDS * number) + np.sort(chance.integers(0, FILE_SECONDS * 10**6, ROWS))
    keys, values = chance.integers(0, 5, ROWS), chance.integers(0, 10**6, ROWS)
    return pa.table(
        {
            "ts": pa.array(us, pa.timestamp("us", "UTC")),
            "k": pa.array(keys, pa.int32()),
            "v": pa.array(values, pa.int32()),
        }
    )


class Home:
    """Two folders of files and a checkpoint."""

    def __init__(self, spark: SparkSession, root: Path):
        self.spark, self.root, self._files = spark, root, 0

    def more(self, files: int) -> None:
        for seed, folder in enumerate(("left", "right")):
            add_files(self.root / folder, [a_file(self._files + one, seed) for one in range(files)])
        self._files += files

    def stream(self, folder: str, name: str | None = None) -> tg.Stream:
        frame = read_files(self.spark, self.root / folder, SCHEMA)
        return tg.stream(frame, name=name or folder, time="ts", lateness="1 second")

    def run(self, *outputs: tg.Output, **settings: Any) -> Any:
        checkpoint = str(self.root / "ck")
        query = tg.start(*outputs, checkpoint=checkpoint, available_now=True, instances=2, **settings)
        assert query.await_termination(PATIENCE_SECONDS)
        return query

    def rows(self, folder: str, since: float = 0, until: float = 1000) -> DataFrame:
        whole = self.spark.read.schema(SCHEMA).parquet(str(self.root / folder))
        return whole.where(f"unix_micros(ts) >= {seconds(since)} AND unix_micros(ts) < {seconds(until)}")

    def pairs(self, since: float = 0, until: float = 1000, apart: int = 1) -> Counter[str]:
        """All pairs of the rows of these times."""
        left, right = (self.rows(one, since, until).alias(one[0]) for one in ("left", "right"))
        near = f"l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= {apart * 10**6}"
        return counted(left.join(right, F.expr(near)).select("l.k", "l.v", "r.v").collect())

    def counts(self, folder: str, first: float, behind: float) -> Counter[str]:
        """The windows of five seconds that begin in this range."""
        whole = self.rows(folder).groupBy(F.window("ts", "5 seconds"), "k").agg(F.count("*"), F.sum("v"))
        told = whole.select("window.start", "window.end", "k", "count(1)", "sum(v)")
        start = F.unix_micros("start")
        return counted(told.where((start >= seconds(first)) & (start < seconds(behind))).collect())

    @property
    def manifest(self) -> Any:
        found = Checkpoint(str(self.root / "ck")).manifests.load_latest()
        assert found is not None
        return found


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


def joined(left: tg.Stream, right: tg.Stream, name: str | None = "near", **more: Any) -> tg.Stream:
    given = {"within": "1 second", **more}
    return left.join(right.with_column_renamed("v", "w"), on="k", name=name, **given).select("k", "v", "w")


def windowed(rows: tg.Stream, name: str | None = "counts") -> tg.Stream:
    return rows.window("5 seconds", by="k", name=name).agg(n=F.count("*"), total=F.sum("v"))


def named(receipts: Any) -> set[tuple[str, str]]:
    return set(zip(receipts.kind, receipts.name, strict=True))


#: Windows of the run over so many files are closed up to here.
def closed(files: int) -> float:
    return FILE_SECONDS * files - 5


def test_streams_operators_and_outputs_go_on_under_new_names(home: Home) -> None:
    near, counts = Sink(), Sink()
    home.more(2)
    left, right = home.stream("left"), home.stream("right")
    home.run(
        joined(left, right).write_to(near, name="pairs"),
        windowed(left).write_to(counts, name="counts"),
        windowed(right, "others").write_to(Sink(), name="others"),
    )
    # In the order of names the streams change places: Spark's offset log goes by position.
    renames = {"left": "zebra", "near": "close", "pairs": "twos", "counts": "busy"}
    for _ in range(2):
        home.more(2)
        zebra, right = home.stream("left", "zebra"), home.stream("right")
        query = home.run(
            windowed(right, "others").write_to(Sink(), name="others"),
            windowed(zebra, "busy").write_to(counts, name="busy"),
            joined(zebra, right, "close").write_to(near, name="twos"),
            renames=renames,
        )
    assert near.counted == home.pairs()
    assert counts.counted == home.counts("left", 0, closed(6))
    manifest = home.manifest
    assert manifest.clocks.keys() == {"zebra", "right"}
    assert manifest.routing.keys() == {"close", "busy", "others"}
    assert {piece.operator for piece in manifest.pieces} <= manifest.routing.keys()
    assert manifest.flow["names"]["streams"] == ["zebra", "right"]
    assert set(query.receipts()["mode"]) == {"EXACT"}
    names = {("stream", "zebra"), ("stream", "right"), ("output", "busy"), ("output", "twos")}
    assert named(query.receipts(last=1)) == {*names, ("output", "others")}


def test_default_names_follow_the_streams_that_they_are_made_of(home: Home) -> None:
    near, fewer, counts, both = Sink(), Sink(), Sink(), Sink()

    def outputs(name: str) -> list[tg.Output]:
        left, whole = home.stream("left", name), home.stream("right")
        right = whole.with_column_renamed("v", "w")
        near_by = f"{name}.k = right.k AND right.ts BETWEEN {name}.ts - INTERVAL 1 SECOND AND {name}.ts"
        less = left.join(right, f"{near_by} + INTERVAL 1 SECOND AND {name}.v < right.w", name="less")
        return [
            joined(left, whole, None).write_to(near),
            less.select("k", "v", "w").write_to(fewer),
            windowed(left, None).write_to(counts),
            windowed(left.union_by_name(whole), None).write_to(both),
        ]

    home.more(2)
    home.run(*outputs("left"))
    own = {"right_k", "window_k", "right_window_k"}
    assert home.manifest.routing.keys() == {"less", *(f"left_{name}" for name in own)}
    home.more(2)
    query = home.run(*outputs("sales"), renames={"left": "sales"})
    assert home.manifest.routing.keys() == {"less", *(f"sales_{name}" for name in own)}
    assert near.counted == home.pairs()
    assert fewer.counted == Counter(
        {row: n for row, n in home.pairs().items() if int(row.split(", ")[1]) < int(row.split(", ")[2][:-1])}
    )
    assert counts.counted == home.counts("left", 0, closed(4))
    starts = sorted({row[0].timestamp() - seconds(0) / 1e6 for row in both.rows})
    assert starts == [0, 5, 10, 15, 20, 25, 30]
    assert sum(row[-2] for row in both.rows) == sum(
        home.rows(one, 0, closed(4)).count() for one in ("left", "right")
    )
    assert ("output", "sales_right_k") in named(query.receipts(last=1))


def test_added_operators_begin_with_the_next_batch(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    near, wide, counts, wider, hits = Sink(), Sink(), Sink(), Sink(), Sink()
    home.more(2)
    home.run(joined(home.stream("left"), home.stream("right")).write_to(near, name="near"))
    home.more(3)
    left, right = home.stream("left"), home.stream("right")
    first = windowed(right)
    with caplog.at_level(logging.WARNING, "tidegate"):
        query = home.run(
            joined(left, right, "wide", within="2 seconds").write_to(wide),
            first.write_to(counts),
            first.window("10 seconds", name="wider").agg(n=F.sum("n")).write_to(wider),
            left.match([tg.RangeQuery("low", "v < 1000")], name="hits").select("k", "v").write_to(hits),
            joined(left, right).write_to(near, name="near"),
        )
    assert near.counted == home.pairs()
    assert wide.counted == home.pairs(since=20, apart=2)
    # Rows up to second 20 were read before the window was there. So was a part of its first rows, if any
    # had come later than the newest row: its first window begins after that.
    assert counts.counted == home.counts("right", 20, closed(5))
    assert hits.counted == counted(home.rows("left", 20).where("v < 1000").select("k", "v").collect())
    starts = {row[0].timestamp() - seconds(0) / 1e6 for row in wider.rows}
    assert starts == {30.0}
    assert "counts is new and begins empty with batch" in caplog.text
    assert "its first window begins at 2023-11-14T22:13:40" in caplog.text
    receipts = query.receipts()
    assert receipts[receipts.name == "wide"].batch_id.min() > 1
    assert set(receipts["mode"]) == {"EXACT"}


def test_removed_operators_leave_and_begin_anew_when_they_come_back(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    near, counts = Sink(), Sink()

    def outputs(*names: str) -> list[tg.Output]:
        left, right = home.stream("left"), home.stream("right")
        made = {
            "near": joined(left, right).write_to(near, name="near"),
            "counts": windowed(left).write_to(counts, name="counts"),
            "right": right.filter("false").write_to("noop", name="right"),
        }
        return [made[name] for name in names]

    home.more(2)
    home.run(*outputs("near", "counts"))
    home.more(2)
    with caplog.at_level(logging.WARNING, "tidegate"):
        home.run(*outputs("right", "counts"))
    assert "Operator near is not in the flow any more: " in caplog.text
    segments = Checkpoint(str(home.root / "ck")).store.list("segments")
    assert [path for path in segments if "near" in path] == []
    home.more(2)
    home.run(*outputs("near", "counts"))
    assert near.counted == home.pairs(until=20) + home.pairs(since=40)
    assert counts.counted == home.counts("left", 0, closed(6))


def test_an_operator_that_is_another_one_needs_another_name(home: Home) -> None:
    near, counts = Sink(), Sink()

    def outputs(name: str, within: str) -> list[tg.Output]:
        left, right = home.stream("left"), home.stream("right")
        pairs = joined(left, right, name, within=within).write_to(near, name="near")
        return [pairs, windowed(left).write_to(counts, name="counts")]

    home.more(2)
    home.run(*outputs("near", "1 second"))
    with pytest.raises(tg.StateError, match=r"CHECKPOINT_FLOW_CHANGED.*Give near a new name=…: it begins"):
        home.run(*outputs("near", "2 seconds"))
    home.more(2)
    home.run(*outputs("wide", "2 seconds"))
    assert near.counted == home.pairs(until=20) + home.pairs(20, apart=2)
    assert counts.counted == home.counts("left", 0, closed(4))


def test_streams_cannot_come_or_go_and_the_errors_say_what_to_do(home: Home) -> None:
    counts = Sink()
    home.more(2)
    left, right = home.stream("left"), home.stream("right")
    taps = [right.write_to(Sink(), name="tap"), windowed(left).write_to(counts, name="counts")]
    home.run(*taps)
    with pytest.raises(tg.StateError, match=r'CHECKPOINT_STREAM_REMOVED.*right.filter\("false"\).*noop'):
        home.run(taps[1])
    more = home.stream("right", "more").write_to(Sink(), name="more")
    with pytest.raises(tg.StateError, match=r"CHECKPOINT_STREAM_ADDED.*Got: more.*query of its own"):
        home.run(*taps, more)
    home.more(2)
    left, right = home.stream("left"), home.stream("right")
    kept = right.filter("false").write_to("noop", name="right_unused")
    home.run(windowed(left).write_to(counts, name="counts"), kept)
    assert counts.counted == home.counts("left", 0, closed(4))


class FailsOnce:
    """A sink that fails for its first batch from some number on, after the plan of the batch was written."""

    def __init__(self, sink: Sink, batch: int):
        self.sink, self.batch, self.failed = sink, batch, False
        self.__name__ = "fails"

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if batch >= self.batch and not self.failed:
            self.failed = True
            raise OSError("no room")
        self.sink(frame, batch)


@pytest.mark.parametrize("batch", [0, 1])
def test_a_batch_that_was_begun_is_repeated_under_new_names(home: Home, batch: int) -> None:
    near, counts, wide = Sink(), Sink(), Sink()
    fails = FailsOnce(near, batch)
    home.more(2)
    left, right = home.stream("left"), home.stream("right")
    before = [
        joined(left, right).write_to(fails, name="near"),
        windowed(left).write_to(counts, name="counts"),
        windowed(right, "gone").write_to(Sink(), name="gone"),
    ]
    with pytest.raises(tg.TidegateError, match="no room"):
        home.run(*before)
    begun = Checkpoint(str(home.root / "ck")).plans.read(batch)
    assert begun is not None
    zebra, right = home.stream("left", "zebra"), home.stream("right")
    home.run(
        joined(zebra, right, "wide", within="2 seconds").write_to(wide, name="wide"),
        windowed(zebra, "busy").write_to(counts, name="busy"),
        joined(zebra, right, "close").write_to(fails, name="close"),
        renames={"left": "zebra", "near": "close", "counts": "busy"},
    )
    assert near.counted == home.pairs()
    assert counts.counted == home.counts("left", 0, closed(2))
    assert wide.counted == home.pairs(since=FILE_SECONDS * batch, apart=2)


def test_rows_are_never_read_with_the_offsets_of_another_stream(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any) -> None:
        raise OSError("before the plan")

    near = Sink()
    home.more(2)
    with monkeypatch.context() as patched:
        patched.setattr(PlanLog, "write", lost)
        with pytest.raises(tg.TidegateError, match="before the plan"):
            home.run(joined(home.stream("left"), home.stream("right")).write_to(near, name="near"))
    # Spark has written the offsets of its first batch; there is neither a plan nor a manifest.
    zebra, right = home.stream("left", "zebra"), home.stream("right")
    with pytest.raises(tg.StateError, match=r"CHECKPOINT_STREAM_REMOVED.*Got: left.*renames"):
        home.run(joined(zebra, right).write_to(near, name="near"))
    home.run(joined(zebra, right).write_to(near, name="near"), renames={"left": "zebra"})
    assert near.counted == home.pairs()
    assert home.manifest.flow["names"]["streams"] == ["zebra", "right"]


def test_a_moved_output_and_a_changed_filter_hold_from_the_next_batch(home: Home) -> None:
    for folder, low in (("one", 0), ("two", 500_000)):
        home.more(2)
        left, right = home.stream("left"), home.stream("right").filter(f"v >= {low}")
        near = joined(left, right).write_to("parquet", str(home.root / folder), name="near")
        home.run(near)
    written = {
        folder: counted(home.spark.read.parquet(str(home.root / folder)).select("k", "v", "w").collect())
        for folder in ("one", "two")
    }
    assert written["one"] == home.pairs(until=20)
    met = home.pairs() - written["one"]
    assert written["two"] <= met
    high = Counter({row: n for row, n in home.pairs(20).items() if int(row[1:-1].split(", ")[2]) >= 500_000})
    assert high <= written["two"]
    # Left rows that were stored before the restart meet right rows that came after it.
    assert written["two"] - high


def test_changed_steps_are_said_and_functions_go_by_their_version(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    twice = F.udf(lambda v: 2 * v, "int")

    def outputs(low: int, version: str) -> list[tg.Output]:
        left = home.stream("left").filter(f"v > {low}")
        left = left.transform(lambda frame: frame.withColumn("v", twice("v")), version=version)
        right = home.stream("right")
        doubled = right.with_column("v", twice("v"))
        return [
            joined(left, right).write_to(Sink(), name="near"),
            windowed(doubled).write_to(Sink(), name="counts"),
            windowed(right, "plain").write_to(Sink(), name="plain"),
        ]

    home.more(1)
    home.run(*outputs(10, "1"))
    said = {}
    for low, version in ((10, "1"), (20, "1"), (10, "2")):
        with caplog.at_level(logging.WARNING, "tidegate"):
            home.run(*outputs(low, version))
        said[low, version] = caplog.text
        caplog.clear()
    assert all(
        "front of counts call Python functions, which cannot be compared" in text for text in said.values()
    )
    assert all("front of plain" not in text for text in said.values())
    changed = {change for change, text in said.items() if "front of near have changed" in text}
    assert changed == {(20, "1"), (10, "2")}


def test_no_old_name_is_left_in_the_state_of_a_query_that_sheds(home: Home) -> None:
    old = {"xleft": "a", "xright": "b", "xnear": "c", "xhits": "d", "xbusy": "e", "xabout": "f"}

    def outputs(given: dict[str, str]) -> list[tg.Output]:
        left, right = home.stream("left", given["xleft"]), home.stream("right", given["xright"])
        queries = [tg.RangeQuery(f"q{n}", f"v >= {n}00000 and v < {n + 2}00000 and k >= 0") for n in range(8)]
        about = right.window("2 seconds", by="k", approximate=True, name=given["xabout"]).agg(n=F.count("*"))
        flows = {
            "xnear": joined(left, right, given["xnear"]),
            "xhits": left.match(queries, name=given["xhits"]),
            "xabout": about,
        }
        written = [flow.write_to(Sink(), name=given[name]) for name, flow in flows.items()]
        return [*written, windowed(right, given["xbusy"]).write_to(Sink(), max_gap=3, name=given["xbusy"])]

    def run(given: dict[str, str], **settings: Any) -> Any:
        settings |= {"goal": tg.Goal(latency="60 seconds"), "shed": tg.Shed(window=0.5, repair="idle")}
        query = start_bounded(*outputs(given), checkpoint=home.root / "ck", instances=2, **settings)
        assert query.await_termination(PATIENCE_SECONDS)
        return query

    home.more(3)
    run({name: name for name in old})
    manifest, plans = home.manifest, Checkpoint(str(home.root / "ck")).plans
    plan = plans.read(manifest.batch)
    assert plan is not None
    streams, operators = ("a", "b"), ("c", "d", "e", "f")
    names = FlowChange.between(manifest.flow, FlowNames(streams, operators, operators), Renames(old)).names
    for rewritten in (replace(names.manifest(manifest), pieces=()), names.plan(plan)):
        assert [name for name in old if name in encode_exactly(rewritten).decode()] == []
    home.more(2)
    query = run(old, renames=old)
    assert named(query.receipts(last=1)) == {
        *(("stream", name) for name in streams),
        *(("output", name) for name in operators),
    }
    renamed = replace(home.manifest, pieces=())
    assert [name for name in old if name in encode_exactly(renamed).decode()] == []


def test_streams_come_and_go_where_spark_knows_their_sources_by_name(home: Home) -> None:
    near, counts, others, wide = Sink(), Sink(), Sink(), Sink()

    def stream(folder: str, name: str | None = None) -> tg.Stream:
        reader = home.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).name(folder)
        frame = reader.parquet(str(home.root / folder))
        return tg.stream(frame, name=name or folder, time="ts", lateness="1 second")

    home.spark.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    try:
        home.more(2)
        home.run(windowed(stream("right"), "others").write_to(others, name="others"))
        home.more(2)
        # `left` is new, and stands before `right`; what lay there before the restart comes too.
        left, right = stream("left"), stream("right")
        home.run(
            joined(left, right).write_to(near, name="near"),
            windowed(left).write_to(counts, name="counts"),
        )
        home.more(2)
        home.run(windowed(stream("left", "zebra")).write_to(counts, name="counts"), renames={"left": "zebra"})
        home.more(2)
        zebra, right = stream("left", "zebra"), stream("right")
        home.run(
            windowed(zebra).write_to(counts, name="counts"),
            joined(zebra, right, "wide", within="2 seconds").write_to(wide, name="wide"),
        )
    finally:
        home.spark.conf.unset("spark.sql.streaming.queryEvolution.enableSourceEvolution")
    assert others.counted == home.counts("right", 0, closed(2))
    assert counts.counted == home.counts("left", 0, closed(8))
    # Rows of `right` until second 20 came before the join, and those of second 40 to 60 when it came back.
    assert home.pairs(20, 40) <= near.counted <= home.pairs(0, 40)
    assert home.pairs(60, 80, apart=2) <= wide.counted <= home.pairs(40, 80, apart=2)
