"""What one controller is given and gives back: the goal as numbers, a batch as it went, what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.control.goal.cost_model import CostSettings, Effort
from tidegate.control.goal.hysteresis import HysteresisSettings
from tidegate.control.goal.load_model import Took
from tidegate.control.goal.optimiser import Levels
from tidegate.control.goal.safety_margin import SafetyMarginSettings
from tidegate.errors import FlowError, explain
from tidegate.model.json_values import Snapshot


@dataclass(frozen=True)
class GoalSettings:
    """What is to be kept, and how calmly."""

    #: Time that a batch may take.
    batch_seconds: float
    #: Time from the arrival of a row to its results, where a batch after a long one is to be shorter for it.
    latency_seconds: float | None = None
    #: By output: what its loss counts (1 unless said), and the largest share of its results that may be lost.
    weights: Mapping[str, float] = field(default_factory=dict)
    loss_max: Mapping[str, float] = field(default_factory=dict)
    safety_margin: SafetyMarginSettings = field(default_factory=SafetyMarginSettings)
    hysteresis: HysteresisSettings = field(default_factory=HysteresisSettings)
    #: Work that takes no more than this part of the time is always done.
    least_share: float = 0.1
    #: What a point does becomes at most so many times as much from one batch to the next.
    rise_max: float = 2.5
    #: Time between two triggers, 0 where batches follow each other; None where all batches are alike.
    trigger_seconds: float | None = None
    cost: CostSettings = field(default_factory=CostSettings)
    #: Operators that may be given the freshest of their rows alone, when nothing else is enough; None: all.
    freshest: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if not (self.batch_seconds > 0 and 0 < self.least_share <= 1 and self.rise_max > 1):
            raise FlowError(
                "A goal has some time, of which a part in (0, 1] is always used, and rise_max is above 1",
                got=self,
            )


@dataclass(frozen=True)
class BatchSeen:
    """What a batch did."""

    busy_seconds: float
    efforts: Mapping[str, Effort]
    #: By operator whose time is measured: what it took; and all that balance would save.
    seconds: Mapping[str, Took] = field(default_factory=dict)
    uneven_seconds: float = 0.0
    #: Seconds that sources are behind.
    behind_seconds: float = 0.0
    #: False: it had no rows, or ran on cold workers, and says nothing that lasts.
    teaches: bool = True
    #: It had no rows, and workers were warm: all of it was overhead.
    empty: bool = False
    #: False: what is left out is decided for longer than a batch (whole windows), so that a batch does all or
    #: nothing of it, and its time says nothing about how well the average is foreseen.
    foreseeable: bool = True
    #: The part of the rows of the next batch that later ones are expected to have as well.
    lasting: float = 1.0


@dataclass(frozen=True)
class Decided:
    """What the next batch does, and what is expected of it."""

    #: By point: r, z, p, or 1 for an output that is shut off.
    levels: Levels
    #: Seconds: with these levels, with nothing left out, and of a batch that does nothing.
    planned: float
    full: float
    fixed: float
    #: The same with everything left out that may be.
    deepest: float
    #: By output: the largest share of its results that will be missing.
    lost: Mapping[str, float]
    #: Seconds that are missing in spite of these levels; the part of the rows, the freshest, that is let in
    #: for it; and the seconds that are expected with those rows alone.
    short: float = 0.0
    keep_share: float = 1.0
    expected: float = 0.0
    safety_margin: float = 0.0
    uneven_seconds: float = 0.0
    behind_seconds: float = 0.0
    #: What was predicted for the batch that has just run, and what it took.
    predicted: float | None = None
    took: float | None = None

    def metrics(self) -> Snapshot:
        """For telemetry."""
        # Plain values all of them: nothing that `asdict` would have to copy, in every batch.
        return dict(vars(self))


def warnings(settings: GoalSettings, decided: Decided) -> list[str]:
    """What only the run can tell of a goal that cannot be kept, with the numbers."""
    said = []
    if decided.fixed > settings.batch_seconds:
        said.append(
            explain(
                "The goal cannot be met: a batch that does nothing takes longer than a batch may",
                got=f"{decided.fixed:.3f} s of {settings.batch_seconds:.3f} s",
                do="Allow a longer latency",
            )
        )
    elif decided.short > 0:
        said.append(
            explain(
                "The next batch is too long whatever may be left out of it",
                got=f"{decided.planned:.3f} s planned of {settings.batch_seconds:.3f} s, "
                f"{decided.full:.3f} s with nothing left out",
                why=f"Only the freshest {decided.keep_share:.0%} of its rows are let in: the others are lost"
                if decided.keep_share < 1
                else "Its rows come too late",
                do="Allow a larger loss_max or a longer latency, or give the query more cores",
            )
        )
    at_bound = [
        name for name, most in settings.loss_max.items() if decided.lost.get(name, 0.0) >= 0.999 * most
    ]
    if decided.short > 0 and at_bound:
        said.append(
            explain(
                "The loss_max of outputs is in the way of the latency",
                got=", ".join(f"{name}: {settings.loss_max[name]:.1%}" for name in sorted(at_bound)),
                do="Raise it for outputs that can bear it",
            )
        )
    return said


def state_warnings(stored_bytes: int, most_bytes: int) -> list[str]:
    """What is stored after a batch, and may not be."""
    if stored_bytes <= most_bytes:
        return []
    return [
        explain(
            "More is stored than state_max allows",
            got=f"{stored_bytes:,} of {most_bytes:,} bytes",
            why="The newest part of every window is kept whatever it takes, and only inner and semi joins may"
            " give up any",
            do="Allow more, make windows shorter, or keep fewer columns in front of joins",
        )
    ]
