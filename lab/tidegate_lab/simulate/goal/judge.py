"""The judge: plays scenarios by seed, and holds the controller against its bars.

Seeds below 1000 are for developing. Seeds from 1000 on are for the table alone: each time they are played is
counted in `judged.json`, and the count stands in the table, because a controller can be tuned to any scenario
that is looked at often enough.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.observe.json_frame import Bar
from tidegate_lab.simulate.goal.metrics import METRICS, Verdict, verdict
from tidegate_lab.simulate.goal.played import Controller, play
from tidegate_lab.simulate.goal.product import GoalLoop
from tidegate_lab.simulate.goal.references import references
from tidegate_lab.simulate.goal.scenario import Scenario, scenario

#: The first seed that is played for the table alone, and where its plays are counted.
HELD_BACK = 1000
COUNTED = Path(__file__).with_name("judged.json")

#: Makes the controller that is judged.
Maker = Callable[[Scenario], Controller]


@dataclass(frozen=True)
class Judged:
    """One scenario and its verdict."""

    seed: int
    rate: str
    source: str
    disturbance: str
    verdict: Verdict

    def row(self) -> dict[str, Any]:
        found = {"seed": self.seed, "rate": self.rate, "source": self.source, "disturbance": self.disturbance}
        return found | asdict(self.verdict)


def seeds_in(text: str) -> range:
    """The seeds `first:beyond`, or one seed."""
    first, _, beyond = text.partition(":")
    return range(int(first), int(beyond) if beyond else int(first) + 1)


def judge(seed: int, maker: Maker = GoalLoop) -> Judged:
    """Play one scenario."""
    one = scenario(seed)
    run = play(one, maker(one))
    return Judged(seed, one.rate.kind, one.rate.source, one.disturbance, verdict(run, references(one)))


def values(judged: Iterable[Judged], metric: str) -> list[float]:
    """A metric of all scenarios that say something about it."""
    found = [getattr(one.verdict, metric) for one in judged]
    return [value for value in found if value is not None]


def headline(judged: Sequence[Judged]) -> dict[str, float]:
    """By name: median and worst 5th percentile of every metric, and how many come near the fixed plan."""
    found: dict[str, float] = {}
    for metric, more_is_better in METRICS.items():
        some = values(judged, metric)
        if some:
            found[f"{metric}.median"] = float(np.median(some))
            found[f"{metric}.p5"] = float(np.quantile(some, 0.05 if more_is_better else 0.95))
    # Of all batches of all scenarios, because a median says nothing about the worse half.
    batches = [(one.verdict.on_time, one.verdict.judged) for one in judged]
    counts = [(share * count, count) for share, count in batches if share is not None]
    if counts:
        found["on_time.all"] = sum(one for one, _ in counts) / sum(count for _, count in counts)
    of_fixed = values(judged, "of_fixed")
    found["of_fixed.share"] = float(np.mean([one >= OF_FIXED for one in of_fixed]))
    return found


#: Recall relative to the best fixed plan that a scenario needs.
OF_FIXED = 0.95
#: By number of `headline`: the least value (or with a minus the largest), and what it is measured in.
BARS: Mapping[str, tuple[str, float, str]] = {
    "on_time.median": (">=", 0.99, "of batches"),
    "needless_loss.median": ("<=", 0.005, "of results"),
    "budget_use.median": (">=", 0.9, "of a controller that knows the noise"),
    "reversals.median": ("<=", 1.0, "per 10 steady batches"),
    "of_fixed.share": (">=", 0.97, f"of scenarios with {OF_FIXED} of the best fixed plan's recall"),
    "of_clairvoyant.median": (">=", 0.9, "of a clairvoyant plan's recall"),
}


def bars(found: Mapping[str, float]) -> list[Bar]:
    """What was asked for, with what was measured."""
    said = []
    for name, (sign, target, unit) in BARS.items():
        value = found.get(name)
        holds = value is not None and (value >= target if sign == ">=" else value <= target)
        said.append(Bar(f"control.{name}", value, unit, f"{sign} {target}", holds))
    return said


def times_judged() -> int:
    """How often the seeds that are held back were played."""
    return int(json.loads(COUNTED.read_text(encoding="utf-8"))["plays"]) if COUNTED.exists() else 0


def count_a_play() -> int:
    """Count one play of the seeds that are held back, before it begins."""
    plays = times_judged() + 1
    COUNTED.write_text(json.dumps({"plays": plays}) + "\n", encoding="utf-8")
    return plays
