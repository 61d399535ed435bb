"""Uses the whole public interface, as a user would: for test_user_typing.py, which never runs it."""
# ruff: noqa: F841

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tidegate as tg
from tidegate import policies, testing


def flow(orders_df: DataFrame, tracks_df: DataFrame) -> None:
    orders = tg.stream(orders_df, name="orders", time="ts", lateness="10 seconds")
    tracks = tg.stream(tracks_df, name="tracks", time="ts", lateness=timedelta(seconds=10))
    near = orders.join(tracks, on="cell", within=tg.between("-5 minutes", "1 minute"))
    out = near.write_to("parquet", "out/near")

    watermarked = tg.stream(tracks_df.withWatermark("ts", "10 seconds"), name="other")
    tg.stream(
        orders_df,
        name="all",
        time="ts",
        lateness="1 second",
        idle_timeout=None,
        max_ahead="366 days",
        available_at="at",
    )
    names: list[str] = orders.columns
    orders.schema.fieldNames()
    orders.explain()
    steps = (
        orders.filter("fare > 1")
        .where(F.col("fare") > 2)
        .select("ts", F.col("fare").alias("price"))
        .select(["ts"])
        .select(names)
        .with_column("a", F.lit(1))
        .with_columns({"b": F.lit(2)})
        .withColumn("c", F.lit(3))
        .withColumns({"d": F.lit(4)})
        .drop("a", "b")
        .with_column_renamed("c", "e")
        .withColumnRenamed("e", "f")
        .transform(lambda frame: frame.dropDuplicates(["f"]), version="2")
    )
    steps.late.write_to("noop")
    steps.rejected.write_to("noop")

    orders.join(
        tracks, "cell", within="5 minutes", how="left_anti", where="speed < 10", name="n", suffix="_r"
    )
    orders.join(tracks, {"cell": "place"}, within=timedelta(minutes=5), where=F.col("speed") < 10)
    orders.join(tracks, ["cell", tg.overlap("items", at_least=2)], within=tg.same_window("10 seconds"))
    orders.join(tracks, tg.equal("cell", null_safe=True), within=tg.UNBOUNDED, how="left_semi")
    orders.join(watermarked, tg.inner_product("weights", 0.6), within="5 minutes")
    orders.join(tracks, tg.overlap("items", jaccard=0.5, index="time"), within="5 minutes")
    orders.join(tracks, [tg.pairwise(lambda left, right: left == right, "x"), "cell"], within="1 minute")
    orders.join(
        tracks, "orders.cell = tracks.cell AND tracks.ts BETWEEN orders.ts AND orders.ts + INTERVAL 1 MINUTE"
    )
    orders.join(tracks, F.expr("orders.cell = tracks.cell"), within="1 minute")
    orders.with_column("cell", tg.hilbert("lat", "lon", bits=8))
    tg.hilbert(np.array([40.7]), np.array([-74.0]), bits=8).tolist()

    class Mean(tg.Aggregator):
        state, returns = "n long, total double", "double"

        def zero(self) -> tuple[int, float]:
            return (0, 0.0)

        def update(self, state: Any, fares: Any) -> tuple[int, float]:
            return (state[0] + len(fares), state[1] + fares.sum())

        def merge(self, one: Any, other: Any) -> tuple[int, float]:
            return (one[0] + other[0], one[1] + other[1])

        def finish(self, state: Any) -> float:
            return float(state[1] / state[0])

    busy = near.window("1 minute", slide="10 seconds", offset=None, by=["cell"], name="busy").agg(
        F.count("*").alias("n"), top=F.max("fare"), mean=Mean("fare"), low="min(fare)"
    )
    near.window(tg.row_window(100, slide=10), by="cell", approximate=False).agg(n=F.count("*"))
    queries = [tg.RangeQuery("airport", "lat between 40.6 and 40.7", weight=2.0, loss_sensitivity=1.5)]
    hits = orders.match(queries, publish_to="filters/", sample_column="sampled", name="hits")

    def sink(frame: DataFrame, batch_id: int) -> None:
        frame.show()

    outputs: list[tg.Output] = [
        near.write_to(
            "parquet",
            "out/near",
            name="near",
            mode="append",
            keys=(),
            partition_by=("cell",),
            options={"a": "b"},
            max_loss=0.1,
            max_gap=None,
            priority=1.0,
            repair_column="skipped_in",
        ),
        busy.write_to(sink, max_gap="5 minutes"),
        hits.write_to_table("db.hits", format="delta", partition_by="query_name", max_gap=3),
    ]
    query: tg.StreamingQuery = tg.start(
        *outputs,
        name="dispatch",
        checkpoint="ck",
        trigger="1 second",
        available_now=False,
        goal=tg.Goal(latency="2 seconds", max_loss=0.2, max_state="4 GB", observe=False),
        shed=tg.Shed(
            join="window_reduction", rate=0.5, repair="on_stop", explore_ratio=0.1, utility=F.col("fare")
        ),
        balance=tg.Balance(strategy="ls_stream"),
        instances=4,
        partitions=32,
        watermark="slowest",
        renames={},
        retention="30 days",
        seed=0,
    )
    adaptive = policies.Adaptive(
        rate_period="5 seconds",
        correlation_period=timedelta(seconds=5),
        explore_ratio=0.2,
        basic_window="1 second",
    )
    tg.Shed(join=adaptive)
    tg.Shed(join=policies.Selective(), rate="paper")
    for strategy in (
        policies.FastJoin(threshold=2.2, search="annealing"),
        policies.LsStream(),
        policies.Hash(),
    ):
        tg.Balance(strategy=strategy, topology="biclique", scale=(1, 8))
    tg.Balance(strategy=policies.ContRand(groups=2))

    near.writeStream.format("delta").queryName("near").option("checkpointLocation", "ck").trigger(
        processingTime="1 second"
    ).option("tidegate.latency", "2 seconds").outputMode("append").partitionBy("cell").toTable("near")
    near.writeStream.foreachBatch(sink).options(a=1).trigger(availableNow=True).start()
    near.to_dataframe().show()

    with query:
        identity: tuple[str | None, ...] = (query.id, query.runId, query.run_id, query.name)
        active: bool = query.isActive and query.is_active
        message: str = query.status["message"]
        query.processAllAvailable()
        query.process_all_available()
        query.rescale(8)
        query.set_goal(tg.Goal("1 second"))
        query.pause()
        query.resume()
        query.explain(True)
        why: str = query.explain_shedding()
        ended: bool = query.awaitTermination(5) or query.await_termination(timeout=0.5)
        query.receipts(since=3, last="1 hour", by="total").head()
        error: BaseException | None = query.exception()
        query.stop(timeout=10, repair=False)
    for progress in (*query.recentProgress, *query.recent_progress):
        p95: float | None = progress.latency.p95_seconds
        shed: int = progress.inputs["orders"].rows_shed + progress.operators["near"].state_bytes
        recall = progress.outputs["near"].recall
        low: float | None = None if recall is None else recall.low
        codes: list[str] = [warning.code for warning in progress.warnings]
        text: str = progress.json + progress.health + progress.summary + str(progress.to_dict()["health"])
    last: tg.Progress | None = query.lastProgress or query.last_progress
    first: tg.StreamingQuery | None = tg.await_any(query, timeout=1)

    class Printer(tg.Listener):
        def on_start(self, query: tg.StreamingQuery) -> None: ...
        def on_progress(self, query: tg.StreamingQuery, progress: tg.Progress) -> None: ...
        def on_stop(self, query: tg.StreamingQuery, error: BaseException | None) -> None: ...

    tg.add_listener(Printer())
    tg.remove_listener(Printer())
    try:
        run = testing.run([near, out], {"orders": [[{"cell": 1}], []], "tracks": []}, probe_ratio=0.3, seed=1)
        rows: list[dict[str, Any]] = run.rows("near")
        run.receipts(by="hour").head()
        latest: tg.Progress = run.progress[-1]
    except tg.FlowError as found:
        code: str = found.code
        details: dict[str, Any] = found.details
