"""A sifter on Spark: the same rows pass as numpy says, and a rush is met by dropping what is wanted least."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, seconds, start_bounded

import tidegate as tg
from tidegate.api.goal import SiftPolicyName
from tidegate.driver.frames.sifter_frames import sifted
from tidegate.edge.node import Node
from tidegate.edge.node_counts import NodeCounts
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.sift.filter.decision import keep_by_hash
from tidegate.sift.filter.lookup import Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions
from tidegate.worker.match.task import MatchWork
from tidegate.worker.runtime.layout import HASH, SAMPLE, TIME, MatchLayout

AXES = (Axis("x"), Axis("n", "integer"), Axis("kind", "category", ("bus", "it's", "tram")))


def random_tree(rng: np.random.Generator, regions: int) -> Regions:
    """Cuts that follow each other down the right side, on all three axes."""
    axis = rng.integers(0, 3, regions - 1)
    at = np.where(axis == 0, rng.normal(0, 1, regions - 1), rng.integers(0, 4, regions - 1))
    at[rng.random(regions - 1) < 0.2] = np.inf  # tells nulls from numbers
    children = np.array([[~i, i + 1] for i in range(regions - 1)], np.int32)
    children[-1, 1] = ~(regions - 1)
    domain = Domain(np.array([-3.0, -5.0, 0.0]), np.array([3.0, 5.0, 4.0]))
    return Regions(domain, axis.astype(np.int32), at.astype(np.float64), children)


def work_of(sifter: Sifter, batch: int = 0) -> MatchWork:
    class Nobody:
        value: Any = None

    return MatchWork(MatchLayout("match1", "s", sifter.axes, b""), Nobody(), batch, sifter=sifter, seed=11)


@pytest.mark.parametrize("regions", [20, 150])
def test_spark_drops_exactly_the_rows_that_numpy_would_drop(spark: SparkSession, regions: int) -> None:
    rng = np.random.default_rng(3)
    sifter = Sifter(AXES, random_tree(rng, regions), rng.choice([0.0, 0.3, 0.7, 1.0], regions))
    cuts = sifter.regions.at[sifter.regions.axis == 0].tolist()
    odd = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e300, None, *cuts]
    odd += [float(np.nextafter(cut, 9)) for cut in cuts]
    xs = [odd[i % len(odd)] if i % 3 == 0 else float(rng.normal()) for i in range(3000)]
    ns = [None if rng.random() < 0.1 else int(rng.integers(-3, 8)) for _ in xs]
    kinds = [rng.choice(["bus", "tram", "it's", "ferry"]) if rng.random() < 0.9 else None for _ in xs]
    values = [
        (i, x, n, None if kind is None else str(kind))
        for i, (x, n, kind) in enumerate(zip(xs, ns, kinds, strict=True))
    ]
    rows = spark.createDataFrame(values, "i int, x double, n int, kind string").withColumn(
        TIME, F.lit(0).cast("long")
    )
    kept = {row["i"] for row in sifted(rows, work_of(sifter)).collect()}

    found = rows.select(F.expr(f"xxhash64(11L, 0L, {TIME}, i, x, n, kind)")).collect()
    hashed = np.array([row[0] for row in found], np.int64)
    cells = {"bus": 0.0, "it's": 1.0, "tram": 2.0, "ferry": 3.0, None: np.nan}
    columns = [
        np.array([np.nan if x is None else x for x in xs]),
        np.array([np.nan if n is None else float(n) for n in ns]),
        np.array([cells[value[3]] for value in values]),
    ]
    found_in = Lookup.of(sifter.regions).regions(columns)
    wanted = np.flatnonzero(keep_by_hash(found_in, hashed, sifter.thresholds))
    assert kept == set(wanted.tolist())
    assert 0 < len(kept) < len(values)


def test_samples_pass_whatever_the_thresholds_are_and_are_marked(spark: SparkSession) -> None:
    rng = np.random.default_rng(4)
    closed = Sifter(AXES, random_tree(rng, 3), np.ones(3), sample_share=0.25)
    rows = spark.range(8000).selectExpr(
        "id", "rand(1) as x", "cast(id % 7 as int) as n", "'bus' as kind", f"0L as {TIME}"
    )
    found = sifted(rows, work_of(closed)).select(SAMPLE).collect()
    assert all(row[SAMPLE] for row in found)
    assert 1800 < len(found) < 2200


def test_late_and_future_rows_pass_so_that_they_are_counted(spark: SparkSession) -> None:
    from dataclasses import replace

    closed = Sifter(AXES, random_tree(np.random.default_rng(4), 3), np.ones(3))
    rows = spark.range(10).selectExpr("id", "0.5D as x", "1 as n", "'bus' as kind", f"id as {TIME}")
    work = replace(work_of(closed), late_before_us=3, newest_us=7)
    assert sorted(row["id"] for row in sifted(rows, work).collect()) == [0, 1, 2, 8, 9]


def test_too_many_cells_leave_the_decision_to_the_tasks(spark: SparkSession) -> None:
    axes = tuple(Axis(f"x{k}") for k in range(7))
    regions = Regions(
        Domain(np.zeros(7), np.ones(7)),
        np.repeat(np.arange(7), 8).astype(np.int32),
        np.tile(np.linspace(0.1, 0.9, 8), 7),
        np.array([[~i, i + 1] for i in range(55)] + [[~55, ~56]], np.int32),
    )
    sifter = Sifter(axes, regions, np.full(57, 0.5))
    assert Lookup.of(regions).exact_walk
    rows = spark.range(5).selectExpr("id", *[f"rand({k}) as x{k}" for k in range(7)], f"0L as {TIME}")
    assert {HASH, SAMPLE} <= set(sifted(rows, work_of(sifter)).columns)


SQUARES = [
    tg.RangeQuery(f"q{i}", f"x between {x} and {x + 0.05} and y >= {y} and y < {y + 0.05}")
    for i, (x, y) in enumerate((a / 40, b / 20) for a in range(40) for b in range(20))
]


def points(files: int, rows: int) -> list[pa.Table]:
    rng = np.random.default_rng(5)
    return [
        pa.table(
            {
                "ts": pa.array(
                    np.sort(rng.integers(0, 10**6, rows)) + seconds(number), pa.timestamp("us", "UTC")
                ),
                "x": rng.normal(0.3, 0.1, rows),
                "y": np.where(rng.random(rows) < 0.02, np.nan, rng.uniform(0, 1, rows)),
            }
        )
        for number in range(files)
    ]


def assert_true_answers(sink: Sink, given: list[pa.Table]) -> None:
    """Every answer is a row that was given, for a query that it satisfies, and comes once."""
    known = {
        (x, y) for table in given for x, y in zip(*table.select(["x", "y"]).to_pydict().values(), strict=True)
    }
    corners = {
        f"q{i}": (a / 40, b / 20) for i, (a, b) in enumerate((a, b) for a in range(40) for b in range(20))
    }
    assert len({repr(row) for row in sink.rows}) == len(sink.rows)
    for _, x, y, name in sink.rows:
        left, low = corners[name]
        assert (x, y) in known
        assert x < 0.6
        assert left <= x <= left + 0.05
        assert low <= y < low + 0.05


@pytest.mark.parametrize("sift", ["auto", "random"])
def test_a_rush_is_met_by_a_sifter_and_what_is_left_is_right(
    spark: SparkSession, tmp_path: Path, sift: SiftPolicyName
) -> None:
    add_files(tmp_path / "in", points(files=9, rows=20_000))
    frame = read_files(spark, tmp_path / "in", "ts timestamp, x double, y double")
    sink = Sink()
    query = start_bounded(
        tg.stream(frame, time="ts", name="points", lateness="0 seconds")
        .filter("x < 0.6")
        .match(SQUARES)
        .write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        # No batch of Spark takes so little time: whatever is done, it is too much.
        goal=tg.Goal(latency="200 milliseconds"),
        shed=tg.Shed(sift=sift, regions=16),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    told = [p["sift"]["points_match"] for p in query.telemetry]
    assert all(one["offered"] == one["received"] + one["dropped"] for one in told)
    assert told[0]["dropped"] == 0
    assert told[-1]["dropped"] > 0.5 * told[-1]["offered"]
    assert told[-1]["version"] > 0
    assert told[-1]["next"]["z"] < 1
    assert len(sink.rows) > 1000
    assert_true_answers(sink, points(files=9, rows=20_000))
    # Rows without a place have a region with a threshold like any other, but no query accepts them.
    assert not any(row[2] != row[2] for row in sink.rows)


def test_a_goal_needs_something_that_may_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "in", points(files=1, rows=10))
    source = tg.stream(
        read_files(spark, tmp_path / "in", "ts timestamp, x double, y double"),
        time="ts",
        name="a",
        lateness="0 seconds",
    )
    lonely = (
        source.match(SQUARES[:2])
        .select("ts", "x")
        .join(source.select("ts", "x"), on="x", within="1 second", how="left")
    )
    with pytest.raises(tg.FlowError, match="GOAL_NOTHING_TO_SHED"):
        tg.start(lonely.write_to(Sink()), checkpoint=str(tmp_path / "ck"), goal=tg.Goal(latency="1 second"))


def test_sources_get_sifters_and_what_they_counted_is_what_was_offered(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = [
        table.append_column("sampled", pa.array([i % 20 == 0 for i in range(table.num_rows)]))
        for table in points(files=6, rows=5_000)
    ]
    add_files(tmp_path / "in", tables)
    frame = read_files(spark, tmp_path / "in", "ts timestamp, x double, y double, sampled boolean")
    filters = str(tmp_path / "filters")
    counted_by_nodes = iter(range(10_000, 100_000, 10_000))

    def sink(rows: DataFrame, batch: int) -> None:
        # Two nodes let 5,000 rows through for every 10,000 that they are offered.
        both = next(counted_by_nodes)
        for name, offered in (("north", both // 4), ("south", both - both // 4)):
            SifterFolder(filters).write_counts(NodeCounts(name, "a", 0, 0, offered, offered))

    stream = tg.stream(frame, time="ts", name="points", lateness="0 seconds")
    query = start_bounded(
        stream.match(SQUARES, publish_to=filters, sample_column="sampled").write_to(sink),
        checkpoint=str(tmp_path / "ck"),
        goal=tg.Goal(latency="200 milliseconds"),
        shed=tg.Shed(sift="flexp", regions=16),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    told = [p["sift"]["points_match"] for p in query.telemetry if p["input_rows"]]
    assert [one["received"] for one in told] == [5_000] * 6, "rows were dropped a second time"
    # Nodes had counted nothing before the first batch, and 10,000 rows more at each that followed.
    assert [one["offered"] for one in told] == [0, *[10_000] * 5]
    assert [one["sampled"] for one in told] == [250] * 6
    published = SifterFolder(filters).newest()
    assert published is not None
    assert published.version > 0
    assert published.z < 1
    assert published.columns == ("x", "y")


def test_a_node_follows_a_query_that_starts_again_with_other_queries_or_without_a_goal(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = [
        table.append_column("sampled", pa.array([i % 20 == 0 for i in range(table.num_rows)]))
        for table in points(files=11, rows=2_000)
    ]
    (tmp_path / "in").mkdir()
    frame = read_files(spark, tmp_path / "in", "ts timestamp, x double, y double, sampled boolean")
    folder = SifterFolder(str(tmp_path / "filters"))
    nodes: list[Node] = []
    followed: list[Sifter] = []

    def edge(rows: DataFrame, batch: int) -> None:
        """A node that takes what was published, and is offered 10,000 rows, in every batch."""
        if not nodes:
            nodes.append(Node("east", published(), folder, clock=lambda: next(half_seconds)))
        node = nodes[0]
        node.tick()
        followed.append(node.sifter)
        rng = np.random.default_rng(batch)
        node.decide([rng.uniform(0, 1, 10_000) for _ in node.sifter.axes])
        node.close()

    def published() -> Sifter:
        found = folder.newest()
        assert found is not None
        return found

    def run(files: int, queries: list[tg.RangeQuery], goal: tg.Goal | None) -> list[Any]:
        add_files(tmp_path / "in", [tables.pop(0) for _ in range(files)])
        followed.clear()
        stream = tg.stream(frame, time="ts", name="points", lateness="0 seconds")
        hits = stream.match(queries, name="hits", publish_to=tmp_path / "filters", sample_column="sampled")
        query = start_bounded(hits.write_to(edge), checkpoint=str(tmp_path / "ck"), goal=goal)
        assert query.await_termination(PATIENCE_SECONDS)
        assert {sifter.epoch for sifter in followed} == {published().epoch}
        return [p for p in query.telemetry if p["input_rows"]]

    half_seconds = itertools.count(0, 1)
    short = tg.Goal(latency="200 milliseconds")
    run(6, SQUARES, short)
    old = followed[-1]
    assert old.thresholds.any()
    told = run(3, [tg.RangeQuery("low", "y < 0.25"), tg.RangeQuery("high", "y > 0.875")], short)
    assert {sifter.columns for sifter in followed} == {("y",)}
    assert followed[0].order > old.order
    assert followed[0].version < old.version, "versions begin anew with other queries"
    assert [one["sift"]["hits"]["offered"] for one in told] == [10_000] * 3
    run(2, [tg.RangeQuery("low", "y < 0.25")], None)
    assert not any(sifter.thresholds.any() for sifter in followed), "without a goal nothing is dropped"


def test_a_mark_that_does_not_come_with_the_rows_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    add_files(tmp_path / "in", points(files=1, rows=10))
    frame = read_files(spark, tmp_path / "in", "ts timestamp, x double, y double")
    stream = tg.stream(frame, time="ts", name="a", lateness="0 seconds")
    with pytest.raises(tg.FlowError, match=r"MATCH_SAMPLE_COLUMN_INVALID.*'sampled'"):
        tg.start(
            stream.match(SQUARES, publish_to="here", sample_column="sampled").write_to(Sink()),
            checkpoint="ck",
        )
    with pytest.raises(tg.FlowError, match="MATCH_PUBLISH_INCOMPLETE"):
        stream.match(SQUARES, publish_to="here")
