"""The targets of the controller on a scripted day, each with a fixed id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.day.over_time import exact_from, fate_of, right_share
from tidegate_lab.bench.day.recorded import Batch, Recorded, percentile
from tidegate_lab.bench.day.run import CORES
from tidegate_lab.bench.day.turns import Second
from tidegate_lab.plots.bars import at_least, at_most
from tidegate_lab.workloads.day import CALM, SPIKE
from tidegate_lab.workloads.day_answer import Answer

OURS, WITHOUT_GOAL = "tidegate", "tidegate, no goal"
#: After a step, results may be late for so long.
SETTLING_SECONDS = 10.0
OVERHEAD_MAX = 0.03
#: Seconds of rows until Java is warm.
WARM_SECONDS = 30

Runs = Mapping[str, Recorded]


def day_bars(runs: Runs, answer: Answer, calm: Sequence[Second], goal_seconds: float) -> list[Bar]:
    """Of our own run, and of calm with and without a goal, in turns."""
    bars = [at_most("overload.controller_overhead", overhead(calm), "", OVERHEAD_MAX)] if calm else []
    ours = runs.get(OURS)
    if ours is None:
        return bars
    return [
        at_most("overload.p95_after_step_seconds", back_after(ours, goal_seconds), "s", SETTLING_SECONDS),
        at_most("overload.p95_held", _held(ours), "s", goal_seconds),
        at_most("overload.calm_shed_rows", _calm_shed(ours), "", 0),
        *bars,
        at_least(
            "overload.union_exact_after_repair",
            right_share(ours, answer, ours.day.seconds + goal_seconds),
            "",
            1.0,
        ),
        at_most("overload.repair_batches_over_goal", _repairs_over(ours, goal_seconds), "", 0),
    ]


def back_after(run: Recorded, goal_seconds: float) -> float | None:
    """Seconds from the spike's beginning to the commit of the last late batch of those that it brought."""
    begin = run.day.begin_of(SPIKE)
    if begin is None:
        return None
    end = next(end for first, end, _ in run.day.spans if first == begin)
    brought = run.between(begin, max(end, begin + SETTLING_SECONDS))
    late = [batch.told.ended for batch in brought if (run.latency(batch) or 0.0) > goal_seconds]
    return max(late, default=begin) - begin if brought else None


def overhead(calm: Sequence[Second]) -> float | None:
    """What a goal adds to a batch that leaves nothing out: of the driver's time and of the tasks'."""
    pairs = _pairs(calm)
    if not pairs:
        return None
    deciding = median(ours.goal_seconds for ours, _ in pairs)
    counting = median(ours.task_seconds - without.task_seconds for ours, without in pairs) / CORES
    return (deciding + counting) / median(without.batch_seconds or 0.0 for _, without in pairs)


def ratios_of(calm: Sequence[Second]) -> list[float]:
    """The batch with a goal over the one without."""
    return [(ours.batch_seconds or 0.0) / (without.batch_seconds or 1.0) for ours, without in _pairs(calm)]


def _pairs(calm: Sequence[Second]) -> list[tuple[Second, Second]]:
    """The same rows with a goal and without, once all is warm."""
    by_number: dict[int, dict[str, Second]] = {}
    for one in calm:
        if one.batch_seconds is not None and one.number >= WARM_SECONDS:
            by_number.setdefault(one.number, {})[one.contender] = one
    return [(both[OURS], both[WITHOUT_GOAL]) for both in by_number.values() if len(both) > 1]


def _held(run: Recorded) -> float | None:
    """The p95 from ten seconds after the spike's beginning to the end of the day."""
    begin = run.day.begin_of(SPIKE)
    if begin is None:
        return None
    return percentile(run.waits(run.between(begin + SETTLING_SECONDS)), 95)


def _calm_shed(run: Recorded) -> float:
    """Rows dropped and pairs skipped in calm, when the window holds no rows of a rush any more."""
    shed = 0
    for begin, end, segment in run.day.spans:
        if segment.name == CALM:
            settled = begin + run.day.window_seconds + SETTLING_SECONDS if begin else begin
            shed += sum(batch.told.skipped + batch.told.dropped for batch in run.between(settled, end))
    return float(shed)


def _repairs_over(run: Recorded, goal_seconds: float) -> float | None:
    """Batches that brought results of earlier rows and were late; None where nothing was made up for."""
    repairs = [batch for batch in run.batches if batch.repairs]
    if not repairs:
        return None if any(batch.told.skipped for batch in run.batches) else 0.0
    return float(sum(_wait(run, batch) > goal_seconds for batch in repairs))


def _wait(run: Recorded, batch: Batch) -> float:
    """The p95 of its rows; of a batch without rows, how long the next ones would have waited for it."""
    found = run.latency(batch)
    return batch.told.ended - batch.told.began if found is None else found


def rows_of_report(
    runs: Runs, answer: Answer, calm: Sequence[Second], goal_seconds: float
) -> list[dict[str, Any]]:
    """One line a run, with every batch as raw sample; and one of calm in turns."""
    rows = [_row(run, answer, goal_seconds) for run in runs.values()]
    return [*rows, _row_of_turns(calm)] if calm else rows


def _row_of_turns(calm: Sequence[Second]) -> dict[str, Any]:
    ratios = ratios_of(calm)
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist() if ratios else (None,) * 3
    return {
        "setting": "calm, in turns",
        "pairs": len(ratios),
        "ratio": middle,
        "ratio_low": low,
        "ratio_high": high,
        "seconds": [asdict(one) for one in calm],
    }


def _row(run: Recorded, answer: Answer, goal_seconds: float) -> dict[str, Any]:
    waits = run.waits()
    rows = float(waits[:, 1].sum())
    row: dict[str, Any] = {
        "contender": run.contender,
        "setting": "day",
        "latency_p50": percentile(waits, 50),
        "latency_p95": percentile(waits, 95),
        "rows_in_time": float(waits[waits[:, 0] <= goal_seconds, 1].sum()) / rows if rows else None,
        "rows_left_over": sum(left for _, left in run.left_over()),
        "batch_seconds": median([b.told.ended - b.told.began for b in run.batches if b.told.rows]),
    }
    fate = fate_of(run, answer, goal_seconds)
    total = max(1, int(fate.exact.sum()))
    row |= {
        "results": int((fate.in_time + fate.too_late).sum()),
        "recall_in_time": float(fate.in_time.sum()) / total,
        "lost_too_late": float(fate.too_late.sum()) / total,
        "lost_never": float(fate.never.sum()) / total,
        "answer_at_the_end": right_share(run, answer, run.day.seconds + goal_seconds),
        "exact_from": exact_from(run, answer, goal_seconds),
    }
    return row | {"batches": [_sample(run, batch) for batch in run.batches]}


def _sample(run: Recorded, batch: Batch) -> dict[str, Any]:
    waits = run.waits([batch])
    return {
        **asdict(batch.told),
        "results": batch.results,
        "latency_p50": percentile(waits, 50),
        "latency_p95": percentile(waits, 95),
        "found": [list(one) for one in batch.found],
    }
