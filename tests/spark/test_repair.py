"""What a rush made joins leave out comes later, in idle time or at the end: the union is the exact join."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files
from tests.spark.test_goals import FILES, SCHEMA, UNREACHABLE, exact, joined, tables

import tidegate as tg
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.state.checkpoint import Checkpoint


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed))
    return tmp_path


def started(spark: SparkSession, home: Path, sink: Sink, shed: tg.Shed, **settings: Any) -> StreamingQuery:
    flow = joined(spark, home).select("n", "n_right", "repaired_batch").write_to(sink)
    return tg.start(flow, checkpoint=str(home / "ck"), goal=UNREACHABLE, shed=shed, **settings)


def check_union(sink: Sink, told: list[dict[str, Any]]) -> None:
    pairs = sorted((n, other) for n, other, _ in sink.rows)
    assert pairs == sorted(exact())
    late = {batch for batch, rows in sink.batches.items() for row in rows if row[2] is not None}
    assert late
    assert all(row[2] is None or row[2] <= batch for batch, rows in sink.batches.items() for row in rows)
    assert sum(p["debts"]["paid"]["matches"] for p in told) == sum(row[2] is not None for row in sink.rows)
    assert not any(p["debts"]["forgiven"] for p in told)
    assert told[-1]["debts"]["count"] == told[-1]["debts"]["bytes"] == 0


def test_idle_time_makes_up_for_the_rush(spark: SparkSession, home: Path) -> None:
    sink = Sink()
    query = started(spark, home, sink, tg.Shed(repair="when idle"))
    query.process_all_available()
    told = query.recent_progress
    query.stop()
    check_union(sink, told)
    receipts = query.receipts(total=True).set_index("kind").loc["output"]
    paid = sum(p["debts"]["paid"]["comparisons"] for p in told)
    assert (receipts["mode"], receipts.debt, receipts.paid, receipts.forgiven) == ("SUBSET", 0, paid, 0)
    assert max(p["debts"]["count"] for p in told) > 1
    # Owed work was done in batches without rows, or at r = 1: never while something was left out.
    paying = [p for p in told if p["debts"]["paid"]["comparisons"]]
    assert all(p["batch"] >= FILES - 1 for p in paying)
    # Old rows were kept for their debts, and are gone with them.
    manifest = Checkpoint(str(home / "ck")).manifests.load_latest()
    assert manifest is not None
    assert not manifest.debts


def test_at_the_end_a_query_that_stops_pays_first(spark: SparkSession, home: Path) -> None:
    sink = Sink()
    # What comes later is worth nothing to whoever learns where to look now: it lies in no window of today.
    query = started(spark, home, sink, tg.Shed(repair="at the end", utility="n"))
    query.process_all_available()
    owing = query.recent_progress
    assert owing[-1]["debts"]["count"] > 0
    assert not any(p["debts"]["paid"]["comparisons"] for p in owing)
    query.stop()
    check_union(sink, query.recent_progress)


def test_what_takes_what_is_there_owes_nothing_when_it_ends_and_may_go_on_without_repair(
    spark: SparkSession, home: Path
) -> None:
    sink, later = Sink(), Sink()
    more: dict[str, Any] = {
        "trigger": "available now",
        "balance": tg.Balance(strategy="random", topology="biclique"),
        "instances": 4,
    }
    query = started(spark, home, sink, tg.Shed(repair="when idle"), **more)
    assert query.await_termination(PATIENCE_SECONDS)
    check_union(sink, query.recent_progress)
    add_files(home / "a", tables(0)[-1:])
    again = tg.start(
        joined(spark, home).write_to(later), checkpoint=str(home / "ck"), goal=UNREACHABLE, **more
    )
    assert again.await_termination(PATIENCE_SECONDS)
    assert "repaired_batch" not in later.columns
    assert all(progress["debts"] == {} for progress in again.recent_progress)


@pytest.mark.parametrize(
    ("how", "named", "said"),
    [("left_semi", "x", "could be repaired"), ("inner", "repaired_batch", "is in the way")],
)
def test_what_cannot_be_repaired_is_refused(
    spark: SparkSession, home: Path, how: str, named: str, said: str
) -> None:
    left, right = (
        tg.stream(read_files(spark, home / name, SCHEMA), time="ts", name=name) for name in ("a", "b")
    )
    flow = left.with_column(named, F.lit(1)).join(right, on="k", within="1 second", how=how, where="n > 3")
    shed = tg.Shed(repair="when idle")
    with pytest.raises(tg.FlowError, match=said):
        tg.start(flow.write_to(Sink()), checkpoint=str(home / "ck"), goal=UNREACHABLE, shed=shed)
