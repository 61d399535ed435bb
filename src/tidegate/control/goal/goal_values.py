"""Inputs and results of the level controller: the goal as numbers, a finished batch, the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.control.goal.control_tuning import TUNING, ControlTuning
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.load_model import Took
from tidegate.control.goal.shed_options import Levels
from tidegate.errors import REPORT_BUG, FlowError, explain
from tidegate.model.json_values import Metrics, Snapshot
from tidegate.model.progress import (
    GOAL_BELOW_OVERHEAD,
    GOAL_UNREACHABLE,
    MAX_LOSS_REACHED,
    STATE_LIMIT_EXCEEDED,
)


@dataclass(frozen=True)
class GoalSettings:
    """The goal, and how fast levels may change."""

    #: Time that a batch may take.
    batch_seconds: float
    #: Time from the arrival of a row to its results; if set, a batch after a long one gets less time.
    latency_seconds: float | None = None
    #: By output: the weight of its loss (default 1), and the largest share of its results that may be lost.
    weights: Mapping[str, float] = field(default_factory=dict)
    max_loss: Mapping[str, float] = field(default_factory=dict)
    #: Time between two triggers, 0 if batches run back to back; None if all batches are alike.
    trigger_seconds: float | None = None
    #: Operators that may drop stale rows when nothing else suffices; None: all.
    freshest: frozenset[str] | None = None
    tuning: ControlTuning = TUNING

    def __post_init__(self) -> None:
        if not self.batch_seconds > 0:
            raise FlowError(
                "A goal needs a time budget",
                code="INTERNAL_TUNING_INVALID",
                got=self,
                do=REPORT_BUG,
            )


@dataclass(frozen=True)
class BatchSeen:
    """What a batch did."""

    busy_seconds: float
    efforts: Mapping[str, Effort]
    #: By measured operator: its time; and the seconds that perfect balance would save.
    seconds: Mapping[str, Took] = field(default_factory=dict)
    uneven_seconds: float = 0.0
    #: Seconds that sources are behind.
    behind_seconds: float = 0.0
    #: False: it had no rows or ran in a process that still warms up, so nothing lasting is learnt from it.
    teaches: bool = True
    #: It had no rows, and the process was warm: all of it was fixed cost.
    empty: bool = False
    #: It had rows, and the process still warmed up.
    cold: bool = False
    #: False: shedding is decided for longer than a batch (whole windows). A batch then does all or nothing,
    #: so its time says nothing about the error of the predicted average.
    foreseeable: bool = True
    #: The part of the rows of the next batch that later ones are expected to have as well.
    lasting: float = 1.0
    #: How long it counts as having taken, for the rows of the next batch; None: as long as it took.
    paced_seconds: float | None = None

    @property
    def pace(self) -> float:
        return self.busy_seconds if self.paced_seconds is None else self.paced_seconds


@dataclass(frozen=True)
class Decided:
    """What the next batch does, and what is expected of it."""

    #: By shed option: probe, admit, sample or drop ratio, or 1 for an output that is shut off.
    levels: Levels
    #: Seconds: at these levels, without shedding, and of an empty batch.
    planned: float
    full: float
    fixed: float
    #: The same at the deepest levels.
    deepest: float
    #: By output: the largest share of its results that will be missing.
    lost: Mapping[str, float]
    #: Seconds missing at these levels; the part of the rows, the freshest, that is therefore let in; and the
    #: seconds expected with those rows.
    short: float = 0.0
    keep_share: float = 1.0
    expected: float = 0.0
    safety_margin: float = 0.0
    uneven_seconds: float = 0.0
    behind_seconds: float = 0.0
    #: Predicted and actual seconds of the batch that has just run.
    predicted: float | None = None
    took: float | None = None

    def metrics(self) -> Snapshot:
        """For telemetry."""
        # Plain values all of them: nothing that `asdict` would have to copy, in every batch.
        return dict(vars(self))


def warnings(settings: GoalSettings, decided: Decided, observes: bool = False) -> list[Metrics]:
    """Warnings, with numbers, about a goal that measurements show cannot be kept."""
    stale = f"The oldest {1 - decided.keep_share:.0%} of its rows {'would be' if observes else 'are'} dropped"
    said: list[Metrics] = []
    if decided.fixed > settings.batch_seconds:
        said.append(
            _warning(
                GOAL_BELOW_OVERHEAD,
                "The goal cannot be met: the overhead alone exceeds the time budget of a batch",
                got=f"{decided.fixed:.3f} s of {settings.batch_seconds:.3f} s",
                do="Give a longer latency",
            )
        )
    elif decided.short > 0:
        said.append(
            _warning(
                GOAL_UNREACHABLE,
                f"Shedding {'would not be' if observes else 'is not'} enough to meet the goal in the next "
                "batch",
                got=f"{decided.planned:.3f} s planned of {settings.batch_seconds:.3f} s, {decided.full:.3f} "
                "s without shedding",
                why=stale if decided.keep_share < 1 else "Its results will be overdue",
                do="Give a larger max_loss or a longer latency, or run the query on more cores",
            )
        )
    at_bound = [
        name
        for name, most in settings.max_loss.items()
        if decided.lost.get(name, 0.0) >= (1 - settings.tuning.level.close) * most
    ]
    if decided.short > 0 and at_bound:
        said.append(
            _warning(
                MAX_LOSS_REACHED,
                f"max_loss {'would keep' if observes else 'keeps'} the query from meeting its goal",
                got=", ".join(f"{name}: {settings.max_loss[name]:.1%}" for name in sorted(at_bound)),
                do="Give a larger max_loss for these outputs, or a longer latency",
            )
        )
    return said


def state_warnings(stored_bytes: int, most_bytes: int, observes: bool = False) -> list[Metrics]:
    """Warnings about state that exceeds its limit after a batch."""
    if stored_bytes <= most_bytes:
        return []
    return [
        _warning(
            STATE_LIMIT_EXCEEDED,
            "The state exceeds max_state",
            got=f"{stored_bytes:,} of {most_bytes:,} bytes",
            why="The goal only observes, so no state is dropped"
            if observes
            else "The newest part of every window is always kept, and only inner and semi joins can drop "
            "state",
            do="Give a larger max_state, shorter windows, or select fewer columns before joins",
        )
    ]


def _warning(code: str, what: str, **parts: str) -> Metrics:
    return {"code": code, "message": explain(what, **parts)}
