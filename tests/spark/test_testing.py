"""`tidegate.testing.run` on pandas frames and on lists of dicts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import tidegate as tg
from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 1, 12)
SCHEMA = "ts timestamp, cell int, fare double, items array<string>"


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> tg.Stream:
    return tg.stream(spark.createDataFrame([], SCHEMA), name="orders", time="ts")


@pytest.mark.parametrize("kind", [pd.DataFrame, list])
def test_columns_that_a_batch_leaves_out_are_null(orders: tg.Stream, kind: Any) -> None:
    rows = [{"ts": NOON, "cell": 1}, {"ts": NOON + timedelta(seconds=1), "cell": 2}]
    run = testing.run(orders, {"orders": [kind(rows[:1]), kind(rows[1:])]})
    assert [(row["cell"], row["fare"], row["items"]) for row in run.rows()] == [
        (1, None, None),
        (2, None, None),
    ]
    assert len(run.progress) >= 2


def test_a_probe_ratio_makes_a_join_skip_pairs(spark: SparkSession, orders: tg.Stream) -> None:
    tracks = tg.stream(spark.createDataFrame([], SCHEMA), name="tracks", time="ts")
    near = orders.join(tracks, "cell", within="1 minute", name="near")
    rows = pd.DataFrame({"ts": [NOON + timedelta(milliseconds=200 * n) for n in range(1500)], "cell": 1})
    run = testing.run(near, {"orders": [rows], "tracks": [rows]}, probe_ratio=0.3)
    total = run.receipts(by="total").set_index("name")
    assert total.loc["near", "mode"] == "SUBSET"
    assert len(run.rows("near")) == total.loc["near", "rows_written"] < 800_000
    ratio = run.progress[0].operators["near"].probe_ratio
    assert ratio is not None
    assert 0.2 < ratio < 0.5
