from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate_lab.bench.overload.bars import overload_bars, rows_of_report
from tidegate_lab.bench.overload.feed import Story
from tidegate_lab.bench.overload.run import Batch, Run, p95

STORY = Story(calm_rate=10, rush_rate=40, calm_seconds=5, rush_seconds=30)


def batch(began: float, wait: float = 1.0, **changed: float) -> Batch:
    plain = Batch(int(began), began, 0.9, 80, ((wait, 40),), 0.25, 4000, 1000, 100)
    return replace(plain, **changed)  # type: ignore[arg-type]


def run(policy: str, outputs: int = 100) -> Run:
    calm = [batch(float(at)) for at in range(5)]
    settling = [batch(float(at), wait=3.0) for at in range(5, 9)]
    held = [batch(float(at), outputs=outputs) for at in range(9, 35)]
    return Run(policy, STORY, [*calm, *settling, *held])


def bar(id: str, alone: Run, together: dict[str, Run] | None = None) -> tuple[float | None, bool]:
    found = next(one for one in overload_bars(alone, together or {}, 2.0) if one.id == f"overload.{id}")
    return found.value, found.holds


def test_latency_is_judged_ten_seconds_after_the_step() -> None:
    assert bar("latency_p95", run("auto")) == (1.0, True)


def test_late_batches_say_how_long_it_took_to_come_back() -> None:
    value, holds = bar("back_after", run("auto"))
    assert value == pytest.approx(8 + 0.9 - 5)
    assert holds


def test_a_batch_that_is_late_near_the_end_is_not_overlooked() -> None:
    one = run("auto")
    late = replace(one, batches=[*one.batches[:-1], batch(34.0, wait=2.5)])
    assert bar("back_after", late)[1] is False


def test_batches_that_grow_are_a_backlog() -> None:
    one = run("auto")
    growing = [replace(b, rows=b.rows + 10 * i) for i, b in enumerate(one.batches)]
    assert bar("backlog_growth", replace(one, batches=growing))[1] is False
    assert bar("backlog_growth", one) == (1.0, True)


def test_output_is_compared_with_random_drop() -> None:
    runs = {"auto": run("auto", 300), "random_drop": run("random_drop", 100)}
    value, holds = bar("output_over_random", run("auto"), runs)
    assert value == pytest.approx(3.0)
    assert holds
    assert bar("work_offered", run("auto")) == (4.0, True)


def test_latency_counts_rows_not_batches() -> None:
    assert p95([batch(0.0, wait=1.0), replace(batch(1.0), waits=((9.0, 2),))]) == pytest.approx(1.0)


def test_every_batch_is_a_raw_sample_of_the_report() -> None:
    row, beside = rows_of_report(run("auto"), {"random_drop": run("random_drop")}, 2.0)
    assert (row["setting"], beside["setting"]) == ("alone", "side by side")
    assert len(row["batches"]) == 35
    assert row["batches_in_rush"] == 30
