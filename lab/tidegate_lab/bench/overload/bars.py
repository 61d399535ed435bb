"""The targets of an overloaded join, each with a fixed id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.overload.run import Batch, Run, p95
from tidegate_lab.plots.bars import at_least, at_most

#: After a step, results may be late for so long.
SETTLING_SECONDS = 10.0
OUTPUT_OVER_RANDOM = 2.5
#: Work offered over work done that the bars ask for.
OVERLOAD = 4.0
#: A backlog that grows shows in batches that do: the last third against the first.
FLAT = 1.2
SELECTIVE, RANDOM = "auto", "random_drop"


def overload_bars(alone: Run, together: Mapping[str, Run], goal_seconds: float) -> list[Bar]:
    """Latency of a policy that has the machine to itself; output of policies that share it."""
    held = alone.rush(SETTLING_SECONDS)
    bars = [
        at_most("overload.latency_p95", p95(held) if held else None, "s", goal_seconds),
        at_most("overload.back_after", _back_after(alone, goal_seconds), "s", SETTLING_SECONDS),
        at_most("overload.backlog_growth", _growth(held), "x", FLAT),
        at_least("overload.work_offered", work_offered(held), "x", OVERLOAD),
    ]
    if SELECTIVE in together and RANDOM in together:
        ours, random = (_output(together[policy].rush(SETTLING_SECONDS)) for policy in (SELECTIVE, RANDOM))
        ratio = ours / random if random else None
        bars.append(at_least("overload.output_over_random", ratio, "x", OUTPUT_OVER_RANDOM))
    return bars


def rows_of_report(alone: Run, together: Mapping[str, Run], goal_seconds: float) -> list[dict[str, Any]]:
    """One line a policy and run, with every batch as raw sample."""
    rows = []
    for setting, run in [("alone", alone), *(("side by side", run) for run in together.values())]:
        held = run.rush(SETTLING_SECONDS)
        rows.append(
            {
                "policy": run.policy,
                "setting": setting,
                "rows_per_second": 2 * run.story.rush_rate,
                "batches_in_rush": len(run.rush()),
                "batch_seconds": median(b.seconds for b in held) if held else None,
                "latency_p95": p95(held) if held else None,
                "fraction": median(b.fraction for b in held) if held else None,
                "budget_used": budget_used(held, goal_seconds),
                "work_offered": work_offered(held),
                "pairs_per_second": _output(held),
                "batches": [asdict(b) for b in run.batches],
            }
        )
    return rows


def work_offered(held: list[Batch]) -> float | None:
    """Work offered over work done: pairs in reach over pairs looked at."""
    looked = sum(b.probed_pairs for b in held)
    return sum(b.candidates for b in held) / looked if looked else None


def budget_used(held: list[Batch], goal_seconds: float) -> float | None:
    """The part of the time of batches, less their fixed cost, that was used; fair rivals use the same."""
    budget = goal_seconds / 2
    shares = [
        (batch.seconds - batch.fixed_seconds) / (budget - batch.fixed_seconds)
        for batch in held
        if batch.fixed_seconds < budget
    ]
    return median(shares) if shares else None


def _back_after(run: Run, goal_seconds: float) -> float | None:
    """Seconds from the step to the commit of the last batch whose rows were late."""
    late = [b.began + b.seconds for b in run.rush() if b.latency_p95 > goal_seconds]
    return max(late, default=run.story.calm_seconds) - run.story.calm_seconds if run.rush() else None


def _growth(held: list[Batch]) -> float | None:
    third = len(held) // 3
    if not third:
        return None
    return median(b.rows for b in held[-third:]) / median(b.rows for b in held[:third])


def _output(held: list[Batch]) -> float:
    """Pairs a second."""
    if len(held) < 2:
        return 0.0
    return sum(b.outputs for b in held[:-1]) / (held[-1].began - held[0].began)
