"""Measures the machine, to choose the steady rate of a day whose spike is an overload.

A short burst at a guessed rate runs under a policy that only sheds; its comparisons per second are the
capacity. Comparisons grow with the square of the rate, which gives the rate for the day.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tidegate_lab.bench.day.contenders import partial
from tidegate_lab.bench.day.feed import prepare
from tidegate_lab.bench.day.run import play
from tidegate_lab.workloads.day import SCRIPT_WINDOW_SECONDS, Day, Segment, rate_of

#: Pairs a second that no two cores of today can compare.
GUESSED_PAIRS = 8e8
RUSH_SECONDS = 40.0
#: What is compared from here on, when the window is full and the policy has settled.
SETTLED_SECONDS = 25.0
#: The part of what fits that calm takes. The step to four times the rows is sixteen times the pairs, half of
#: what fits; the spike is three times too much. With 0.06, making up for it takes longer than what is left.
CALM_PART = 0.03


def calm_rate(seed: int, temp: Path | None, say: Callable[[str], None]) -> float:
    """Rows a second of each stream in calm."""
    say("measuring what fits …")
    rush = Day(rate_of(GUESSED_PAIRS, SCRIPT_WINDOW_SECONDS), (Segment("rush", RUSH_SECONDS),), seed=seed)
    with TemporaryDirectory(prefix="tidegate-rush-", dir=temp) as folder:
        run = play(prepare(rush, Path(folder)), {"partial": partial}, temp, say)["partial"]
    settled = run.between(SETTLED_SECONDS, RUSH_SECONDS) or run.batches[-1:]
    fits = median(batch.told.compared / max(1.0, batch.told.ended - batch.told.began) for batch in settled)
    rate = rate_of(CALM_PART * fits, SCRIPT_WINDOW_SECONDS)
    say(f"{fits / 1e6:,.0f} M pairs a second fit; calm: {rate:,.0f} rows/s of each stream")
    return rate
