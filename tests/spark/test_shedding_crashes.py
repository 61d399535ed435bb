"""What a plan leaves out stays left out: runs that shed are killed, begun again, and give the same rows.

One query that skips pairs, drops rows and aggregates windows (shedding_flow.py). It must end with the rows
that a run without any crash gives under the same plans.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.crash_chain import Kill, check_checkpoint, run_and_kill, run_to_the_end
from tests.spark.crash_input import Size, prepare
from tests.spark.crash_runner import STEPS
from tests.spark.flows import PATIENCE_SECONDS, start_bounded
from tests.spark.shedding_flow import OUTPUTS, exact, written

import tidegate as tg
from tests.spark import shedding_flow

#: The first batch in which all outputs have rows: a window over windows closes two batches behind its rows.
ALL_WRITE = 3
FOLDERS = [f"out/{name}" for name in OUTPUTS]


def test_a_query_that_sheds_survives_kills_and_leaves_out_what_its_plans_said(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With all outputs written but the last, and in the replay when all of them are.
    kills = [Kill("sink wide", ALL_WRITE), Kill("reported", ALL_WRITE)]
    survive(tmp_path / "run", 5, kills)
    check(spark, tmp_path / "run", monkeypatch)


@pytest.mark.soak
def test_a_query_that_sheds_survives_a_kill_at_every_step_while_keys_move(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = [
        Kill("writing", 1),
        Kill("committed", 1),
        *(Kill(f"sink {name}", 2) for name in list(OUTPUTS)[1:3]),
        *(Kill(step, ALL_WRITE) for step in STEPS if step != "committed"),
        Kill("spark-commit", ALL_WRITE),
    ]
    survive(tmp_path / "run", 5, kills, "--restless")
    check(spark, tmp_path / "run", monkeypatch)


def survive(home: Path, batches: int, kills: list[Kill], *more: str) -> None:
    """Kill and restart: what a batch had written when it was killed is what its replay writes."""
    prepare(home, seed=5, size=Size(batches, rows_per_batch=240, keys=24))
    #: Output, batch that was killed, and what it had written by then.
    tried: list[tuple[str, int, list[tuple[Any, ...]]]] = []
    for kill in kills:
        run_and_kill(home, kill, "--shedding", *more, outputs=FOLDERS)
        found = [(name, kill.batch, of_batch(written(home, name), kill.batch)) for name in OUTPUTS]
        tried += [one for one in found if one[2]]
    assert tried
    run_to_the_end(home, "--shedding", *more)
    check_checkpoint(home, batches)
    for name, batch, rows in tried:
        assert rows == of_batch(written(home, name), batch), f"{name}: a replay gave other rows"


def check(spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All outputs are what a run without a crash gives under the same plans, and true."""
    run_without_a_crash(spark, home, monkeypatch)
    for name in OUTPUTS:
        assert written(home, name) == written(home, name, "whole"), f"{name}: not what the plans say"
        check_against_everything(home, name)


def run_without_a_crash(spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows under the same plans, in one go and with nothing that moves."""
    shedding_flow.replan_with(monkeypatch.setattr, shedding_flow.as_planned(home))
    query = start_bounded(
        *shedding_flow.outputs(spark, home, "whole"),
        goal=shedding_flow.GOAL,
        checkpoint=str(home / "whole/checkpoint"),
        partitions=4,
        balance=tg.Balance(strategy="none"),
    )
    assert query.await_termination(PATIENCE_SECONDS)


def check_against_everything(home: Path, name: str) -> None:
    """Each row once, and true; windows that nothing is left out of, all of them; of others, estimates."""
    rows, all_rows = [row[1:] for row in written(home, name)], exact(home, name)
    assert len(set(rows)) == len(rows), f"{name}: rows are there twice"
    if name == "about":
        assert {row[:3] for row in rows} <= {row[:3] for row in all_rows}, "windows that there are not"
        assert 0 < len(set(rows) & set(all_rows)) < len(rows), "all are exact, or all are estimates"
        return
    assert set(rows) <= set(all_rows), f"{name}: rows that are wrong"
    if name in ("busy", "wide"):
        assert len(rows) == len(all_rows), f"{name}: windows are missing"
        return
    assert 0.1 * len(all_rows) < len(rows) < 0.95 * len(all_rows), f"{name}: nothing was left out, or all"


def of_batch(rows: list[tuple[Any, ...]], batch: int) -> list[tuple[Any, ...]]:
    return [row for row in rows if row[0] == batch]
