"""One step of the goal loop as a value: settings, the batch that ran, and the state before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.control.actuators.join_shedding import OverloadSettings, Worth
from tidegate.control.actuators.sampling import EstimateSettings
from tidegate.control.actuators.sifting import SiftSettings
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.goal.backpressure import TakenRows
from tidegate.control.goal.goal_values import GoalSettings
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.progress import LatencyProgress
from tidegate.model.reports import MatchReport, TaskReport
from tidegate.sift.filter.decision import Counters
from tidegate.window.drop.network import Network


@dataclass(frozen=True)
class KeepSettings:
    """The goal, and everything that may be shed for it."""

    goal: GoalSettings
    trigger_seconds: float
    #: Streams, operators and outputs, and the flow of rows between them.
    network: Network
    parallelism: int = 1
    overload: OverloadSettings | None = None
    sifting: SiftSettings | None = None
    dropping: DropSettings | None = None
    estimating: EstimateSettings | None = None
    #: What is decided is reported and not done (`control/observing.py`).
    observes: bool = False

    def paced(self, busy_seconds: float, predicted: float | None) -> float:
        """How long a batch counts as having taken, for the rows of the next one.

        Under a goal that only observes, that is as long as it was predicted to take with what it would have
        left out: else each long batch would be a reason to leave out more of the next one.
        """
        if not self.observes or predicted is None:
            return busy_seconds
        return min(busy_seconds, max(self.goal.batch_seconds, predicted))

    @property
    def freshest(self) -> tuple[str, ...]:
        """Joins that may drop stale rows when nothing else suffices."""
        return tuple(sorted(self.goal.freshest or ()))

    @property
    def approximate(self) -> frozenset[str]:
        """Windows that may be estimated from a sample of their rows."""
        return frozenset() if self.estimating is None else frozenset(self.estimating.windows)


@dataclass(frozen=True)
class Ran:
    """What a batch did, and how long it took."""

    reports: Sequence[TaskReport]
    matched: Sequence[MatchReport]
    #: By match: rows in front of its sifter.
    entered: Mapping[str, int]
    busy_seconds: float
    cold: bool
    #: What the pairs of joins are worth, where the user says so.
    worth: Worth = field(default_factory=dict)
    #: By stream: what the batch took of its source.
    taken: Mapping[str, TakenRows] = field(default_factory=dict)
    #: The measured latency of its rows; None if it was not measured.
    latency: LatencyProgress | None = None
    #: By match whose rows are dropped at the sources: what they counted by region.
    at_sources: Mapping[str, Counters] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One batch, with the state before and after it."""

    settings: KeepSettings
    before: Manifest
    plan: Plan
    ran: Ran
    after: Manifest
    operators: Mapping[str, OperatorTraits]
