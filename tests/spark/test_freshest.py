"""Where rows alone are too much, the freshest are let in, by plan; the others are lost, and told.

A machine on which a row takes four milliseconds and pairs nothing, with a batch a second, by a made-up clock,
so that every run goes alike: with all rows a batch of the rush is late whatever pairs are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import EPOCH_US, PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded

import tidegate as tg
from tidegate.control.goal.goal_step import Ran
from tidegate.control.goal.warm_up import WarmUp
from tidegate.driver.engine import controllers
from tidegate.driver.engine.engine import Engine
from tidegate.driver.goal_settings import goal_settings
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.observe.units import iso
from tidegate.state.checkpoint import Checkpoint

SCHEMA = "ts timestamp, n long, k long"
SECOND = 10**6
#: Rows of each stream in the batches of a rush, and when it is over; a batch has a second of rows.
RUSH, CALM = 200, 20
ROWS = [RUSH] * 9 + [CALM] * 3
#: Half of it for a batch.
GOAL = tg.Goal(latency="2 seconds")
ROW_SECONDS, OVERHEAD_SECONDS, BATCH_SECONDS = 4e-3, 0.1, 1.0
#: The batch that is run twice, in the rush, the first time until its outputs were written.
CRASH = 6


def tables(seed: int) -> list[pa.Table]:
    random = np.random.default_rng(seed)
    first = np.cumsum([0, *ROWS])
    return [
        pa.table(
            {
                "ts": pa.array(
                    # Evenly: where chance puts so few rows, no plan could know how many of them go.
                    EPOCH_US + SECOND * second + SECOND * np.arange(rows) // rows,
                    pa.timestamp("us", tz="UTC"),
                ),
                "n": pa.array(np.arange(first[second], first[second] + rows)),
                "k": pa.array(random.integers(0, 10, rows)),
            }
        )
        for second, rows in enumerate(ROWS)
    ]


def made_up(
    reports: Sequence[TaskReport],
    matched: Sequence[MatchReport],
    entered: Mapping[str, int],
    busy_seconds: float,
    *others: Any,
) -> Ran:
    """What a batch did, with the time that it would have taken on the machine above."""
    told = []
    for report in reports:
        rows = (
            sum(report.rows.offered) - sum(report.rows.late) - sum(report.rows.stale)
            if report.operator == "pairs"
            else 0
        )
        told.append(replace(report, seconds=replace(report.seconds, cpu=ROW_SECONDS * rows, probing=0.0)))
    busy = OVERHEAD_SECONDS + sum(report.seconds.cpu for report in told)
    return Ran(told, matched, entered, busy, *others)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine, on which a second passes from batch to batch, and which fails once."""
    fails = {("sunk", CRASH)}

    def step(self: Engine, name: str, batch: int) -> None:
        if (name, batch) in fails:
            fails.remove((name, batch))
            raise RuntimeError("on purpose")

    def now_us(self: Engine) -> int:
        # The first moment is asked for before there is any manifest.
        done = self.manifest.batch if hasattr(self, "manifest") else -1
        return EPOCH_US + (10**3 + done) * SECOND

    def every_second(compiled: Any, goal: Any, shed: Any, trigger: Any, seed: int) -> Any:
        return goal_settings(compiled, goal, shed, 1_000_000, seed)

    monkeypatch.setattr("tidegate.driver.start.goal_settings", every_second)
    monkeypatch.setattr(controllers, "Ran", made_up)
    monkeypatch.setattr(Engine, "_now_us", now_us)
    monkeypatch.setattr(Engine, "_step", step)
    monkeypatch.setattr(WarmUp, "observe", second_batch_is_warm)


def second_batch_is_warm(warm_up: WarmUp, rows: float, seconds: float) -> None:
    """How long batches really take says nothing on a machine whose times are made up."""
    warm_up._same += bool(rows)


def start(spark: SparkSession, home: Path, *sinks: Sink) -> StreamingQuery:
    a, b = (
        tg.stream(read_files(spark, home / name, SCHEMA), time="ts", name=name, lateness="0 seconds")
        for name in "ab"
    )
    return start_bounded(
        a.join(b, on="k", within="1 second", name="pairs").select("n", "n_right").write_to(sinks[0]),
        a.window("1 second", name="windows").agg(rows=F.count("*")).write_to(sinks[1]),
        checkpoint=str(home / "ck"),
        goal=GOAL,
        shed=tg.Shed(join="selective"),
        instances=1,
        partitions=4,
    )


@pytest.mark.usefixtures("machine")
def test_the_freshest_rows_are_let_in_by_plan_and_the_others_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    for seed, name in enumerate("ab"):
        add_files(tmp_path / name, tables(seed))
    pairs, windows = Sink("pairs"), Sink("windows")
    broken = start(spark, tmp_path, pairs, windows)
    with pytest.raises(Exception, match="on purpose"):
        broken.await_termination(PATIENCE_SECONDS)
    tried = sorted(pairs.batches[CRASH])
    plan = Checkpoint(str(tmp_path / "ck")).plans.read(CRASH)
    assert plan is not None
    query = start(spark, tmp_path, pairs, windows)
    assert query.await_termination(PATIENCE_SECONDS)
    told = [*broken.telemetry, *query.telemetry]
    assert [progress["batch"] for progress in told][: len(ROWS)] == list(range(len(ROWS)))

    # Exactly the rows go that the plans say, in the batch that ran twice, too; its second run was a cold one.
    shed = [progress["shed"]["pairs"] for progress in told[: len(ROWS)]]
    stale = [sum(one["stale"]) for one in shed]
    assert stale == [older(one["fresh_from"], batch) for batch, one in enumerate(shed)]
    assert shed[CRASH]["fresh_from"] == [iso(at_us) for at_us in plan.shed.skipping["pairs"].fresh_us]
    assert sorted(pairs.batches[CRASH]) == tried
    # Two warm batches in a row are too long before any row goes, about as many as do not fit. A run that has
    # just begun lets in all, and so does one in which all fit again.
    lost = [0.3 < rows / (2 * RUSH) < 0.8 for rows in stale[:9]]
    assert lost == [False] * 3 + [True] * 4 + [False, True]
    assert (stale[:3], stale[7], stale[-2:]) == ([0, 0, 0], 0, [0, 0])
    took = [progress["goal"]["took"] for progress in told[:9]]
    assert [seconds < BATCH_SECONDS for seconds in took] == lost

    # What came out is true, and windows are whole.
    assert set(pairs.rows) < exact()
    assert len(set(pairs.rows)) == len(pairs.rows)
    assert [rows for *_, rows in sorted(windows.rows)] == ROWS[: len(windows.rows)]
    assert len(windows.rows) >= len(ROWS) - 1

    by_batch = query.receipts().set_index(["kind", "name", "batch_id"])
    for batch, rows in enumerate(stale):
        streams = [by_batch.loc[("stream", name, batch)] for name in "ab"]
        assert sum(one.shed_reasons["stale"] for one in streams) == rows
        output = by_batch.loc[("output", "pairs", batch)]
        assert ("stale" in output.loss_reasons) == (rows > 0)
        assert by_batch.loc[("output", "windows", batch)]["mode"] == "EXACT"
        if rows:
            assert output["mode"] == "SUBSET"
            assert (
                f"{streams[0].shed_reasons['stale']} of {ROWS[batch]} rows were older"
                in streams[0].warnings[0]["message"]
            )
            assert "GOAL_UNREACHABLE" in [one["code"] for one in told[batch - 1]["warnings"]]


def older(fresh_from: Sequence[str | None], batch: int) -> int:
    """Rows of a batch that come from before these times."""
    found = 0
    for seed, at in enumerate(fresh_from):
        times = tables(seed)[batch].column("ts").to_pylist()
        found += 0 if at is None else sum(time < datetime.fromisoformat(at) for time in times)
    return found


def exact() -> set[tuple[int, int]]:
    """All pairs, by their definition."""
    left, right = (pa.concat_tables(tables(seed)) for seed in (0, 1))
    sides = [
        [table.column(name).to_numpy().astype(np.int64) for name in ("ts", "k", "n")]
        for table in (one.set_column(0, "ts", one.column("ts").cast(pa.int64())) for one in (left, right))
    ]
    (times, keys, names), (other_times, other_keys, other_names) = sides
    near = np.abs(times[:, None] - other_times) <= SECOND
    found = np.argwhere(near & (keys[:, None] == other_keys))
    return {(int(names[i]), int(other_names[j])) for i, j in found}
