"""What a rush made joins leave out comes later, in idle time or at the end: the union is the exact join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded
from tests.spark.test_goals import FILES, SCHEMA, UNREACHABLE, exact, joined, tables

import tidegate as tg
from tidegate.api.joins.join_node import How
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.state.checkpoint import Checkpoint


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed))
    return tmp_path


def started(
    spark: SparkSession,
    home: Path,
    sink: Sink,
    shed: tg.Shed,
    start: Callable[..., StreamingQuery] = tg.start,
    **settings: Any,
) -> StreamingQuery:
    flow = joined(spark, home).select("n", "n_right").write_to(sink, repair_column="repaired_batch")
    return start(flow, checkpoint=str(home / "ck"), goal=UNREACHABLE, shed=shed, **settings)


def check_union(sink: Sink, told: list[dict[str, Any]]) -> None:
    pairs = sorted((n, other) for n, other, _ in sink.rows)
    assert pairs == sorted(exact())
    late = {batch for batch, rows in sink.batches.items() for row in rows if row[2] is not None}
    assert late
    assert all(row[2] is None or row[2] <= batch for batch, rows in sink.batches.items() for row in rows)
    repaired = sum(p["debts"]["repaired"]["matches"] for p in told)
    assert repaired == sum(row[2] is not None for row in sink.rows)
    assert not any(p["debts"]["written_off"] for p in told)
    assert told[-1]["debts"]["count"] == told[-1]["debts"]["bytes"] == 0


def test_idle_time_makes_up_for_the_rush(spark: SparkSession, home: Path) -> None:
    sink = Sink()
    query = started(spark, home, sink, tg.Shed(repair="idle"))
    query.process_all_available()
    told = query.telemetry
    query.stop()
    check_union(sink, told)
    receipts = query.receipts(by="total").set_index("kind").loc["output"]
    repaired = sum(p["debts"]["repaired"]["comparisons"] for p in told)
    pairs = receipts.debt_pairs, receipts.repaired_pairs, receipts.written_off_pairs
    assert (receipts["mode"], *pairs) == ("SUBSET", 0, repaired, 0)
    assert max(p["debts"]["count"] for p in told) > 1
    # Owed work was done in batches without rows, or at r = 1: never while something was left out.
    paying = [p for p in told if p["debts"]["repaired"]["comparisons"]]
    assert all(p["batch"] >= FILES - 1 for p in paying)
    # Old rows were kept for their debts, and are gone with them.
    manifest = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert manifest is not None
    assert not manifest.debts


def test_at_the_end_a_query_that_stops_pays_first(spark: SparkSession, home: Path) -> None:
    sink = Sink()
    # What comes later is worth nothing to whoever learns where to look now: it lies in no window of today.
    query = started(spark, home, sink, tg.Shed(repair="on_stop", utility="n"))
    query.process_all_available()
    owing = query.telemetry
    assert owing[-1]["debts"]["count"] > 0
    assert not any(p["debts"]["repaired"]["comparisons"] for p in owing)
    query.stop()
    check_union(sink, query.telemetry)


def test_what_takes_what_is_there_owes_nothing_when_it_ends_and_may_go_on_without_repair(
    spark: SparkSession, home: Path
) -> None:
    sink, later = Sink(), Sink()
    more: dict[str, Any] = {
        "balance": tg.Balance(strategy="random", topology="biclique"),
        "instances": 4,
    }
    query = started(spark, home, sink, tg.Shed(repair="idle"), start=start_bounded, **more)
    assert query.await_termination(PATIENCE_SECONDS)
    check_union(sink, query.telemetry)
    add_files(home / "a", tables(0)[-1:])
    again = start_bounded(
        joined(spark, home).write_to(later), checkpoint=str(home / "ck"), goal=UNREACHABLE, **more
    )
    assert again.await_termination(PATIENCE_SECONDS)
    assert "repaired_batch" not in later.columns
    assert all(progress["debts"] == {} for progress in again.telemetry)


@pytest.mark.parametrize(
    ("how", "named", "said"),
    [("left_semi", "x", "SHED_REPAIR_NO_JOIN"), ("inner", "skipped_by", "OUTPUT_REPAIR_COLUMN_TAKEN")],
)
def test_what_cannot_be_repaired_is_refused(
    spark: SparkSession, home: Path, how: How, named: str, said: str
) -> None:
    left, right = (
        tg.stream(read_files(spark, home / name, SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in ("a", "b")
    )
    flow = left.with_column(named, F.lit(1)).join(right, on="k", within="1 second", how=how, where="n > 3")
    shed = tg.Shed(repair="idle")
    out = flow.write_to(Sink(), repair_column="skipped_by")
    with pytest.raises(tg.FlowError, match=said):
        tg.start(out, checkpoint=str(home / "ck"), goal=UNREACHABLE, shed=shed)
