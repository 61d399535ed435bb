"""Seeded runs whose rows and receipts are compared with a committed record, batch by batch.

The record (`golden.json`) holds the number of rows and a digest of the sorted rows of each output and batch,
and the receipts, with numbers rounded to nine digits. A change that is meant to keep behaviour keeps the
record; a change that is meant to alter it writes a new one and says why:

    TIDEGATE_GOLDEN=write python -m pytest tests/spark/test_golden.py

Nothing here depends on time: what is shed is drawn from a generator seeded by the batch number.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.crash_chain import Kill, run_and_kill, run_to_the_end
from tests.spark.crash_flow import source
from tests.spark.crash_input import WHERE, WITHIN_US, Size, prepare
from tests.spark.flows import PATIENCE_SECONDS, start_bounded

import tidegate as tg
from tests.spark import shedding_flow
from tidegate.api.joins.join_node import How
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US
from tidegate.state.checkpoint import Checkpoint

RECORD = Path(__file__).with_name("golden.json")
WRITING = os.environ.get("TIDEGATE_GOLDEN") == "write"
SIZE = Size(batches=5, rows_per_batch=240, keys=24)
SEED = 11
#: Depends on time, or on how state is stored.
_TIMED = ("started_at", "latency", "load")


def digests(home: Path, outputs: Mapping[str, str]) -> dict[str, dict[str, list[Any]]]:
    """By output and batch: the number of rows and a digest of them, sorted."""
    found: dict[str, dict[str, list[Any]]] = {}
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        for name, columns in outputs.items():
            read = f"read_parquet('{home}/out/{name}/*.parquet', filename = true)"
            number = r"regexp_extract(filename, 'part-(\d{10})-', 1)::bigint"
            rows = connection.sql(f"from (select {number}, {columns} from {read}) order by all").fetchall()
            by_batch: dict[str, list[str]] = {}
            for batch, *row in rows:
                by_batch.setdefault(str(batch), []).append(repr(row))
            found[name] = {
                batch: [len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]]
                for batch, lines in by_batch.items()
            }
    return found


def receipts(home: Path) -> list[dict[str, Any]]:
    """What the checkpoint says was lost, batch by batch, without anything that depends on time."""
    return [_rounded(one) for one in Checkpoint(str(home / "checkpoint")).receipts.read()]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items() if name not in _TIMED}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def check(name: str, home: Path, outputs: Mapping[str, str]) -> None:
    seen = json.loads(json.dumps({"rows": digests(home, outputs), "receipts": receipts(home)}))
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if WRITING:
        RECORD.write_text(json.dumps({**record, name: seen}, indent=1, sort_keys=True) + "\n")
        return
    assert seen["rows"] == record[name]["rows"]
    assert seen["receipts"] == record[name]["receipts"]


def run(home: Path, outputs: list[tg.Output], **settings: Any) -> None:
    given: dict[str, Any] = {"partitions": 4, "balance": tg.Balance(strategy="none"), **settings}
    query = start_bounded(*outputs, checkpoint=str(home / "checkpoint"), **given)
    assert query.await_termination(PATIENCE_SECONDS)


def written(home: Path, flows: Mapping[str, tg.Stream]) -> list[tg.Output]:
    return [flow.write_to("parquet", str(home / "out" / name), name=name) for name, flow in flows.items()]


PAIR = "id, id_right, k, epoch_us(ts), v, epoch_us(ts_right), w"
ROW = "id, k, epoch_us(ts), v"
WINDOW = "epoch_us(window_start), epoch_us(window_end)"


def test_joins_of_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path, SEED, SIZE)
    hows: tuple[How, ...] = ("inner", "left", "right", "full", "left_semi", "left_anti")
    left, right = (source(spark, tmp_path, side) for side in ("left", "right"))
    within = f"{WITHIN_US} microseconds"
    flows: dict[str, tg.Stream] = {
        how: left.join(right, on="k", within=within, how=how, where=WHERE, name=f"{how}_join") for how in hows
    }
    flows["plain"] = left.join(right, on="k", within=within, name="plain")
    run(tmp_path, written(tmp_path, flows))
    check("joins", tmp_path, {name: ROW if name in hows[4:] else PAIR for name in flows})


def test_windows_nested_sliding_and_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path, SEED, SIZE)
    left, right = (source(spark, tmp_path, side) for side in ("left", "right"))
    told = {"n": F.count("*"), "ids": F.sum("id"), "most": F.max("w"), "spread": F.stddev("w")}
    busy = right.window("2 seconds", by="k", name="busy").agg(**told)
    flows = {
        "busy": busy,
        "wide": busy.window("6 seconds", slide="3 seconds", by="k").agg(n=F.sum("n"), most=F.max("most")),
        "rows": right.window(tg.row_window(20, slide=5), by="k", name="rows").agg(
            n=F.count("*"), ids=F.sum("id")
        ),
        "pairs": left.join(right, on="k", within="1 second").window("4 seconds").agg(n=F.count("*")),
    }
    run(tmp_path, written(tmp_path, flows))
    columns = {
        "busy": f"{WINDOW}, k, n, ids, most, round(spread, 9)",
        "wide": f"{WINDOW}, k, n, most",
        "rows": f"{WINDOW}, k, n, ids",
        "pairs": f"{WINDOW}, n",
    }
    check("windows", tmp_path, columns)


def by_batch(plan: Plan) -> Plan:
    """The plan with what it leaves out drawn from the batch number."""
    return shedding_flow.unforeseen(plan, random.Random(plan.batch))


def test_shedding_of_every_kind(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, SEED, SIZE)
    shedding_flow.replan_with(monkeypatch.setattr, by_batch)
    run(tmp_path, shedding_flow.outputs(spark, tmp_path), goal=shedding_flow.GOAL)
    check("shedding", tmp_path, shedding_flow.OUTPUTS)


def test_windows_that_are_dropped(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path, SEED, SIZE)
    right = source(spark, tmp_path, "right")
    busy = right.window("1 second", by="k").agg(n=F.count("*"))
    wide = busy.window("3 seconds", by="k").agg(n=F.sum("n"))
    outputs = [
        flow.write_to("parquet", str(tmp_path / "out" / name), name=name, max_gap=4)
        for name, flow in {"busy": busy, "wide": wide}.items()
    ]
    run(tmp_path, outputs, goal=shedding_flow.GOAL, shed=tg.Shed(window=0.5))
    check("dropped", tmp_path, dict.fromkeys(("busy", "wide"), f"{WINDOW}, k, n"))


def test_skipped_pairs_that_are_repaired(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, SEED, SIZE)
    shedding_flow.replan_with(monkeypatch.setattr, _repairable(by_batch))
    flow = source(spark, tmp_path, "left").join(
        source(spark, tmp_path, "right"), on="k", within=f"{WITHIN_US} microseconds"
    )
    run(
        tmp_path,
        [flow.write_to("parquet", str(tmp_path / "out/pairs"), name="pairs", repair_column="repaired_batch")],
        goal=shedding_flow.GOAL,
        shed=tg.Shed(repair="idle"),
    )
    check("repair", tmp_path, {"pairs": f"{PAIR}, repaired_batch"})


def _repairable(replan: Callable[[Plan], Plan]) -> Callable[[Plan], Plan]:
    """Parts of windows are skipped; no row is dropped, because what is not stored cannot be repaired."""

    def without_drops(plan: Plan) -> Plan:
        changed = replan(plan)
        return replace(
            changed,
            shed=replace(
                changed.shed,
                skipping={
                    name: replace(one, keep_share=1.0, fresh_us=(BEGINNING_US, BEGINNING_US))
                    for name, one in changed.shed.skipping.items()
                },
            ),
        )

    return without_drops


def test_a_kill_and_a_restart(tmp_path: Path) -> None:
    home = tmp_path / "run"
    prepare(home, SEED, SIZE)
    options = ("--how", "full", "--where", WHERE)
    run_and_kill(home, Kill("sunk", 2), *options)
    run_to_the_end(home, *options)
    (home / "all").mkdir()
    (home / "out").rename(home / "all/out")
    (home / "out").mkdir()
    (home / "all/out").rename(home / "out/pairs")
    check("restart", home, {"pairs": PAIR})
