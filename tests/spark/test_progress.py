"""Progress and receipts of whole queries agree with each other and with what really happened."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import (
    EPOCH_US,
    PATIENCE_SECONDS,
    STREAM_SCHEMA,
    Sink,
    add_files,
    read_files,
    seconds,
    start_bounded,
    stream_table,
)
from tests.spark.test_goals import FILES, ROWS, SCHEMA, UNREACHABLE, WINDOW, exact, tables

import tidegate as tg
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.model.progress import WARNING_CODES, OperatorProgress, Progress

LEDGER = ("rows_offered", "rows_processed", "rows_shed", "rows_late", "rows_rejected")
OF_OUTPUTS = (
    "rows_written",
    "loss_ratio",
    "windows_missing",
    "debt_pairs",
    "repaired_pairs",
    "written_off_pairs",
)
OF_LATENCY = ("p50_seconds", "p95_seconds", "max_seconds")


def plain(value: Any) -> Any:
    """None instead of what pandas has for a missing number."""
    return None if pd.isna(value) else value


def operator(progress: Progress, kind: str) -> OperatorProgress:
    (found,) = [one for one in progress.operators.values() if one.kind == kind]
    return found


def check_latency(progress: Progress, row: Any) -> None:
    """A receipt ends with the sinks; the progress also has the time until the commit."""
    latency, commit_seconds = progress.latency, progress.duration.commit_seconds
    for name in OF_LATENCY:
        known, written = getattr(latency, name), plain(row[name])
        assert (known is None) == (written is None)
        if known is not None:
            most = 1.0 if name == "overdue_ratio" else commit_seconds
            assert 0 <= known - written <= most + 1e-6


def check_agreement(query: StreamingQuery) -> None:
    """Every batch: the same numbers in the progress and in the receipts."""
    table = query.receipts().set_index(["kind", "name", "batch_id"])
    assert len(query.recent_progress) == len(query.telemetry)
    for progress in query.recent_progress:
        assert Progress.from_dict(json.loads(progress.json)) == progress
        for name, stream in progress.inputs.items():
            row = table.loc[("stream", name, progress.batch_id)]
            assert [getattr(stream, of) for of in LEDGER] == [row[of] for of in LEDGER]
            assert stream.rows_offered == sum(getattr(stream, of) for of in LEDGER[1:])
            assert row.started_at.isoformat(timespec="microseconds") == progress.started_at
        for name, output in progress.outputs.items():
            row = table.loc[("output", name, progress.batch_id)]
            assert (output.mode, output.complete) == (row["mode"], row.complete)
            assert [getattr(output, of) for of in OF_OUTPUTS] == [plain(row[of]) for of in OF_OUTPUTS]
            check_latency(progress, row)
            recall = output.recall
            found = (None,) * 3 if recall is None else (recall.estimate, recall.low, recall.high)
            assert found == tuple(plain(row[of]) for of in ("recall", "recall_low", "recall_high"))


def test_a_join_that_sheds_and_repairs_and_windows_that_are_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed))
    a, b = (
        tg.stream(read_files(spark, tmp_path / name, SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in ("a", "b")
    )
    pairs, counts = Sink("pairs"), Sink("counts")
    near = a.join(b, on="k", within=WINDOW)
    busy = b.window("100 milliseconds").agg(n=F.count("*"))
    query = start_bounded(
        near.select("n", "n_right").write_to(pairs, name="pairs"),
        busy.write_to(counts, name="counts", max_gap=4),
        checkpoint=tmp_path / "ck",
        goal=UNREACHABLE,
        shed=tg.Shed(repair="idle", window=0.5),
        instances=2,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    check_agreement(query)
    told = query.recent_progress
    assert [one.batch_id for one in told] == list(range(len(told)))
    assert {one.query_id for one in told} == {query.id}
    assert {one.run_id for one in told} == {query.run_id}
    assert all(one.health == "overdue" for one in told), "no batch of Spark is over in this time"

    # Rows: what was in the files, and what came out.
    assert [sum(one.inputs[name].rows_offered for one in told) for name in "ab"] == [FILES * ROWS] * 2
    for one in told:
        assert one.outputs["pairs"].rows_written == len(pairs.batches.get(one.batch_id, ()))
    # Pairs: skipped first, found in the end.
    skipped = [operator(one, "join").probe_ratio for one in told]
    assert skipped[0] == 1.0
    assert min(ratio for ratio in skipped if ratio is not None) < 1
    assert sorted(pairs.rows) == sorted(exact())
    last = told[-1].outputs["pairs"]
    repaired = sum(one.outputs["pairs"].repaired_pairs or 0 for one in told)
    assert (last.debt_pairs, last.written_off_pairs, repaired > 0) == (0, 0, True)
    # The last commit has no rows and leaves nothing out; the last batch did.
    assert last.mode == "EXACT"
    shed = told[-2].outputs["pairs"]
    assert shed.mode == "SUBSET"
    assert shed.recall is not None
    assert shed.loss_ratio == 1 - shed.recall.estimate > 0
    # Windows: those that are missing are the ones that did not come.
    assert max(operator(one, "window").drop_ratio or 0 for one in told) > 0.3
    total = query.receipts(by="total").set_index(["kind", "name"])
    output = total.loc["output", "counts"]
    missing = sum(one.outputs["counts"].windows_missing for one in told)
    assert output.windows_missing == missing > 0
    starts = {int(row[0].replace(tzinfo=UTC).timestamp() * 1e6) // 100_000 for row in counts.rows}
    gone = {
        start // 100_000
        for first, newest, slide in output.missing_windows
        for start in range(first, newest + 1, slide)
    }
    assert len(gone) == missing
    assert not starts & gone
    assert output.loss_ratio == pytest.approx(missing / output.windows_closed)
    assert total.loc["stream", "b"].rows_shed == sum(one.inputs["b"].rows_shed for one in told)
    # State, instances, durations, watermarks.
    for one in told:
        assert (operator(one, "join").kind, operator(one, "join").instances) == ("join", 2)
        assert one.duration.budget_seconds == 0.01
        assert (one.latency.goal_seconds, one.latency.overdue_ratio) in ((0.02, 1.0), (0.02, None))
        assert one.inputs["a"].watermark is not None
        moment = datetime.fromisoformat(one.inputs["a"].watermark).timestamp()
        assert EPOCH_US / 1e6 <= moment <= EPOCH_US / 1e6 + FILES
        assert {warning.code for warning in one.warnings} <= WARNING_CODES.keys()
    assert operator(told[0], "join").state_rows > 0
    check_periods(query)


def check_periods(query: StreamingQuery) -> None:
    """Hours and the total are sums of batches."""
    by_batch, hours, total = query.receipts(), query.receipts(by="hour"), query.receipts(by="total")
    for whole in (hours, total):
        for (kind, name), rows in by_batch.groupby(["kind", "name"]):
            mine = whole[(whole.kind == kind) & (whole.name == name)]
            for of in LEDGER:
                assert mine[of].sum() == rows[of].sum()
            assert mine.complete.all() == rows.complete.all()
            assert plain(mine.max_seconds.max()) == plain(rows.max_seconds.max())
    assert (hours.hour.dt.minute == 0).all()
    assert total.last_batch_id.tolist() == [by_batch.batch_id.max()] * len(total)
    newest = by_batch.batch_id.max()
    assert set(query.receipts(since=int(newest)).batch_id) == {newest}
    assert set(query.receipts(last=2).batch_id) == {newest - 1, newest}
    assert len(query.receipts(last="1 hour")) == len(by_batch)


def test_a_late_row_leaves_results_exact_but_not_complete(spark: SparkSession, tmp_path: Path) -> None:
    on_time: list[tuple[int | None, int | None, int, int]] = [(seconds(t), 1, t, t) for t in range(10)]
    late = (seconds(2), 1, 92, 5)
    # The third batch is judged by what the first brought, as in Spark.
    files = [stream_table(on_time[:-1]), stream_table(on_time[-1:])]
    files.append(stream_table([late, (seconds(11), 1, 11, 0)]))
    for name in "ab":
        add_files(tmp_path / name, files if name == "a" else [stream_table(on_time)])
    a, b = (
        tg.stream(
            read_files(spark, tmp_path / name, STREAM_SCHEMA), time="ts", name=name, lateness="1 second"
        )
        for name in "ab"
    )
    pairs, busy = a.join(b, on="k", within="1 second"), b.window("2 seconds")
    nested = pairs.window("5 seconds").agg(n=F.count("*"))
    query = tg.start(
        pairs.write_to(Sink("pairs"), name="pairs"),
        busy.agg(n=F.count("*")).write_to(Sink("busy"), name="busy"),
        nested.write_to(Sink("nested"), name="nested"),
        checkpoint=tmp_path / "ck",
        available_now=True,
    )
    assert query.await_termination(PATIENCE_SECONDS)
    check_agreement(query)
    total = query.receipts(by="total").set_index(["kind", "name"])
    assert set(total["mode"]) == {"EXACT"}
    assert total.loc["stream", "a"].rows_late == 1
    # The late row is missing behind every operator that reads `a`, however far behind.
    assert total.complete.to_dict() == {
        ("stream", "a"): False,
        ("stream", "b"): True,
        ("output", "pairs"): False,
        ("output", "busy"): True,
        ("output", "nested"): False,
    }
    (behind,) = [one for one in query.recent_progress if one.inputs["a"].rows_late]
    assert not behind.outputs["pairs"].complete
    assert query.recent_progress[0].outputs["pairs"].complete
    assert {one.health for one in query.recent_progress} <= {"warming_up", "on_time"}
    assert "1 row late" in behind.summary


def test_a_warning_remembers_its_first_batch_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    def run() -> list[Progress]:
        a, b = (
            tg.stream(read_files(spark, tmp_path / name, SCHEMA), time="ts", name=name, lateness="0 seconds")
            for name in "ab"
        )
        query = start_bounded(
            a.join(b, on="k", within=WINDOW).write_to(Sink("pairs")),
            checkpoint=tmp_path / "ck",
            goal=tg.Goal(latency="10 minutes", max_state="1 KB"),
        )
        assert query.await_termination(PATIENCE_SECONDS)
        return query.recent_progress

    for seed, name in enumerate("ab"):
        add_files(tmp_path / name, tables(seed)[:2])
    first = run()
    for seed, name in enumerate("ab"):
        add_files(tmp_path / name, tables(seed)[2:4])
    again = run()
    assert again[0].batch_id == first[-1].batch_id + 1
    since = {one.since_batch_id for progress in (*first, *again) for one in progress.warnings}
    assert since == {0}
    assert {one.code for one in again[-1].warnings} == {"STATE_LIMIT_EXCEEDED"}
    assert {one.query_id for one in first} == {one.query_id for one in again}
    assert {one.run_id for one in first}.isdisjoint({one.run_id for one in again})


def test_a_run_over_batch_inputs_has_a_progress_without_a_query(spark: SparkSession) -> None:
    rows = pa.concat_tables(tables(0)[:1]).to_pandas()
    frame = spark.createDataFrame(rows, SCHEMA)
    a, b = (tg.stream(frame, time="ts", name=name, lateness="0 seconds") for name in "ab")
    query = tg.start(a.join(b, on="k", within="1 second").write_to(Sink("pairs")))
    check_agreement(query)
    (progress,) = query.recent_progress
    assert (progress.query_id, progress.run_id, progress.batch_id) == (None, None, 0)
    assert progress is query.last_progress
    assert progress.inputs["a"].rows_processed == ROWS
    assert operator(progress, "join").probe_ratio == 1.0
    assert progress.summary.startswith(f"Batch 0: {2 * ROWS} rows in ")
    assert progress.health == "warming_up"
