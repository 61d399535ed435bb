"""The plot of a scripted day: eight panels over the same time axis, one curve per contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tidegate_lab.bench.day.over_time import Fate, Ints, binned, fate_of, overdue
from tidegate_lab.bench.day.recorded import Recorded, percentile
from tidegate_lab.plots.plots import Curve, Panel, Plot
from tidegate_lab.workloads.day import TICK_SECONDS, Day
from tidegate_lab.workloads.day_answer import Answer

#: The same contender has the same colour everywhere.
COLOURS = {"tidegate": 0, "random": 2, "spark": 1, "spark-capped": 4}
#: Bins of a day: fewer hide a spike, more scatter.
BINS = 80
#: Delays below this are all alike on the logarithmic axis.
DELAY_MIN = 0.3

Runs = Mapping[str, Recorded]
Line = tuple[list[float], list[float]]


def day_plot(runs: Runs, answer: Answer, goal_seconds: float) -> Plot:
    day = next(iter(runs.values())).day
    fates = {name: fate_of(run, answer, goal_seconds) for name, run in runs.items()}

    def panel(title: str, y_label: str, line: Callable[[str], Line]) -> Panel:
        curves = [_curve(name, *line(name)) for name in runs]
        return Panel(
            "", y_label, [one for one in curves if one.x], title, spans=_spans(day), ticks=_names(day)
        )

    delay = panel("Delay of rows, p95 (log scale)", "seconds", lambda n: _delay(runs[n]))
    goal = Curve("goal", [0.0, day.seconds], [goal_seconds] * 2, "dotted", colour=6)
    panels = [
        replace(panel("Offered, both streams", "rows a second", lambda n: ([], [])), curves=[_offered(day)]),
        replace(delay, curves=[*delay.curves, goal], y_log=True),
        panel("Results that come out", "a second", lambda n: _output(runs[n])),
        panel("Recall in time", "part", lambda n: _share(runs[n], fates[n], fates[n].in_time)),
        panel(
            "Lost to lateness: came, but after the goal",
            "part",
            lambda n: _share(runs[n], fates[n], fates[n].too_late),
        ),
        panel("Lost for good: never came", "part", lambda n: _share(runs[n], fates[n], fates[n].never)),
        replace(
            panel("Imbalance: heaviest instance over an even share", "×", lambda n: _imbalance(runs[n])),
            y_from=1.0,
        ),
        panel("Debt: results overdue", "results", lambda n: _debt(runs[n], answer, goal_seconds)),
    ]
    # The lowest ones have the seconds, all others the names of the segments.
    panels[-2:] = [replace(one, x_label="seconds of the day", ticks=()) for one in panels[-2:]]
    return Plot(
        "overload-day",
        "One day of a join that gets more than the machine can take",
        f"{day.calm_rate:,.0f} rows a second of each stream in calm; goal {goal_seconds:g} s, trigger 1 s.\n"
        "A result is in time when it is committed within the goal after the row that makes it possible came.",
        panels,
        columns=2,
        one_legend=True,
        panel_inches=(6.4, 2.3),
    )


def _curve(name: str, x: list[float], y: list[float]) -> Curve:
    return Curve(name, x, y, colour=COLOURS.get(name, 7))


def _spans(day: Day) -> list[tuple[float, float, str]]:
    """Shades only: names would lie on the curves."""
    return [(begin, end, "") for begin, end, _ in day.spans]


def _names(day: Day) -> list[tuple[float, str]]:
    return [((begin + end) / 2, segment.name) for begin, end, segment in day.spans]


def _offered(day: Day) -> Curve:
    rates = [2 * rate for _, rate in day.rate.levels]
    return Curve("offered", (np.arange(day.ticks) * TICK_SECONDS).tolist(), rates, "steps", colour=7)


def _delay(run: Recorded) -> Line:
    """By the time that rows came: what they had to wait."""
    by_bin: dict[int, list[tuple[float, int]]] = {}
    ends = [(tick, rows, batch.told.ended) for batch in run.batches for tick, rows in batch.taken]
    for tick, rows, end in ends + [(tick, rows, run.ended) for tick, rows in run.left_over()]:
        if tick:
            at = int(run.arrived[tick] / _width(run.day))
            by_bin.setdefault(at, []).append((end - run.arrived[tick], rows))
    waits = {at: percentile(np.array(some, np.float64), 95) for at, some in sorted(by_bin.items())}
    middles = [(at + 0.5) * _width(run.day) for at in waits]
    return middles, [max(DELAY_MIN, wait or 0.0) for wait in waits.values()]


def _output(run: Recorded) -> Line:
    ended, results = [b.told.ended for b in run.batches], [b.results for b in run.batches]
    x, sums = binned(ended, results, run.day.seconds, _width(run.day))
    return x, (sums / _width(run.day)).tolist()


def _share(run: Recorded, fate: Fate, part: Ints) -> Line:
    """By the time that results became possible."""
    x, whole = binned(run.arrived, fate.exact, run.day.seconds, _width(run.day))
    _, some = binned(run.arrived, part, run.day.seconds, _width(run.day))
    kept = np.flatnonzero(whole > 0)
    return [x[i] for i in kept], (some[kept] / whole[kept]).tolist()


def _imbalance(run: Recorded) -> Line:
    """Means of some batches: single ones scatter."""
    uneven = [(b.told.ended, b.told.imbalance) for b in run.batches if b.told.imbalance and b.told.rows]
    at = [end for end, _ in uneven]
    x, sums = binned(at, [imbalance for _, imbalance in uneven], run.day.seconds, _width(run.day))
    _, counts = binned(at, np.ones(len(at)), run.day.seconds, _width(run.day))
    kept = np.flatnonzero(counts)
    return [x[i] for i in kept], (sums[kept] / counts[kept]).tolist()


def _debt(run: Recorded, answer: Answer, goal_seconds: float) -> Line:
    at, missing = overdue(run, answer, goal_seconds)
    inside = (at >= 0) & (at <= run.day.seconds)
    return at[inside].tolist(), missing[inside].astype(float).tolist()


def _width(day: Day) -> float:
    return max(2 * TICK_SECONDS, day.seconds / BINS)
