"""What a query decided under its old settings stays true when it goes on under others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded
from tests.spark.test_approximate import SCHEMA as RIDES
from tests.spark.test_approximate import flow as approximate
from tests.spark.test_approximate import rides
from tests.spark.test_goals import FILES, ROWS, UNREACHABLE, exact, joined, tables
from tests.spark.test_window_drop import GOAL, SCHEMA, rows_table

import tidegate as tg

OTHERS: list[dict[str, Any]] = [
    {"seed": 7, "instances": 3, "balance": tg.Balance(strategy="fastjoin")},
    {"shed": tg.Shed(), "seed": 7, "instances": 3},
    {"goal": UNREACHABLE, "shed": tg.Shed(join="none", sift="none"), "seed": 5},
    {"goal": UNREACHABLE, "shed": tg.Shed(join="random_drop"), "instances": 1},
    {"goal": UNREACHABLE, "shed": tg.Shed(repair="idle"), "balance": tg.Balance(strategy="none")},
]


@pytest.mark.parametrize(
    "settings", [OTHERS[0], *(pytest.param(one, marks=pytest.mark.soak) for one in OTHERS[1:])]
)
def test_a_join_with_debts_goes_on_without_a_false_pair_and_says_what_it_gave_up(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any]
) -> None:
    before = FILES - 2
    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed)[:before])

    def flow(sink: Sink) -> Any:
        return joined(spark, tmp_path).select("n", "n_right").write_to(sink, name="near")

    sinks = Sink("before"), Sink("after")
    query = tg.start(
        flow(sinks[0]),
        checkpoint=str(tmp_path / "ck"),
        goal=UNREACHABLE,
        shed=tg.Shed(repair="on_stop"),
        balance=tg.Balance(strategy="ls_stream"),
        seed=1,
    )
    query.process_all_available()
    query.stop(repair=False)
    owed = query.receipts(by="total").set_index("kind").loc["output"].debt_pairs
    assert owed > 0

    for seed, name in enumerate(("a", "b")):
        add_files(tmp_path / name, tables(seed)[before:])
    again = start_bounded(flow(sinks[1]), checkpoint=tmp_path / "ck", **settings)
    assert again.await_termination(PATIENCE_SECONDS)

    pairs = [row for sink in sinks for row in sink.rows]
    assert len(set(pairs)) == len(pairs), "a pair came twice"
    assert set(pairs) <= exact()
    total = again.receipts(by="total").set_index("kind").loc["output"]
    missing = exact() - set(pairs)
    assert total["mode"] == "SUBSET"
    shed: Any = settings.get("shed")
    if shed is None or shed.repair is not None:
        assert (total.debt_pairs, total.written_off_pairs) == (0, 0)
        assert not missing
        return
    assert missing
    assert total.debt_pairs == 0
    assert total.written_off_pairs == owed
    if "goal" not in settings or shed.join == "none":
        # Nothing is skipped any more: what is missing was skipped before.
        assert all(max(pair) < before * ROWS for pair in missing)
        written = again.receipts().query("kind == 'output'").set_index("batch_id")
        assert set(written["mode"][before:]) == {"EXACT"}


def test_a_window_that_was_sampled_stays_an_estimate_when_the_goal_goes(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = rides(8_000, 160, 3)
    parts = [whole.slice(i, 1000) for i in range(0, 8_000, 1000)]
    sinks = Sink("before"), Sink("after")

    def run(sink: Sink, **settings: Any) -> Any:
        frame = read_files(spark, tmp_path / "in", RIDES)
        query = start_bounded(approximate(frame, sink), checkpoint=tmp_path / "ck", **settings)
        assert query.await_termination(PATIENCE_SECONDS)
        return query

    add_files(tmp_path / "in", parts[:4])
    run(sinks[0], goal=GOAL, shed=tg.Shed(window=0.6))
    add_files(tmp_path / "in", parts[4:])
    second = run(sinks[1])
    receipts = second.receipts()
    modes = receipts[receipts["kind"] == "output"]["mode"].tolist()
    # The window that was open at the restart, and then only exact ones.
    assert "ESTIMATED" in modes[4:]
    assert modes[-1] == "EXACT"


def test_a_match_of_windows_gets_those_that_an_output_beside_it_drops(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = rows_table(1200, 120, 5)
    add_files(tmp_path / "in", [whole.slice(i, 150) for i in range(0, 1200, 150)])

    def flow(frame: Any) -> tuple[Any, Any]:
        stream = tg.stream(frame, time="ts", name="rides", lateness="1 second")
        counts = stream.window("4 seconds", by="k").agg(n=F.count("*"))
        return counts, counts.match([tg.RangeQuery("some", "n >= 1")])

    counts, matched = flow(read_files(spark, tmp_path / "in", SCHEMA))
    some, every = Sink("some"), Sink("every")
    query = start_bounded(
        counts.write_to(some, name="some", max_gap=6),
        matched.write_to(every, name="every"),
        checkpoint=tmp_path / "ck",
        goal=GOAL,
        shed=tg.Shed(window=0.8, sift="none"),
    )
    assert query.await_termination(PATIENCE_SECONDS)
    exact_rows = Sink()
    _, matched = flow(spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")))
    tg.start(matched.write_to(exact_rows))
    assert set(every.counted) <= set(exact_rows.counted)
    last = max(row[0] for row in every.rows)
    assert {repr(row) for row in exact_rows.rows if row[0] <= last} == set(every.counted)
    assert len(some.rows) < 0.7 * len(every.rows)
