"""One controller for one goal: after each batch, the levels of everything that can be left out in the next.

Ours: every paper adapts its own mechanism, and takes all the time of the machine for its own.

    what b did, how long it took ─▶ load_model ─┐
    what b+1 would do in full ──────────────────┼─▶ prospect ─▶ levels of b+1: r, z and p
    what can be left out, at what loss ─────────┘

The order of the goal: rebalance and add instances first (they lose nothing: `uneven_seconds` and
`behind_seconds` say what that could gain, balancing acts), then skip what cannot matter and shed where the
weighted loss per second is least, all in one allocation; then shut outputs off that may be; and when even
that is not enough, keep the freshest rows (`keep_share`) and say so (`warnings`).

    seconds ▲ ──────────────────────────────── batch_seconds
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ above: deeper, at once     ↑ headroom, learnt
            │ ──────────────────────────────── target
            │ ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ below for a while: easier
            │

Guarantee: a state machine; telemetry in, decision out; `snapshot` → `restore` gives the same answers. While
the predicted time of the levels in force stays in the band, nothing moves. Going deeper gives no point
anything back and going easier takes from none, so one slow batch shifts nothing around; only when another mix
would lose clearly less for a while are levels set anew. Easing waits, and longer each time that it had to be
taken back: on steady input levels come to rest. Work that takes no more than `least_share` of the time is
always done: where overhead alone is too much, leaving out everything would be late just the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tidegate.control.cost_model import CostSettings, Effort
from tidegate.control.headroom import Headroom, HeadroomSettings
from tidegate.control.load_model import LoadModel
from tidegate.control.offers import Offer
from tidegate.control.prospect import Levels, Prospect
from tidegate.errors import FlowError, explain

#: Easing that is taken back within so many batches was too early; without that for so many, all is forgiven.
_TOO_EARLY, _FORGIVEN = 25, 60
#: A little time to spare must last so many times as long as much of it, and this is much.
_LITTLE, _MUCH = 4, 0.75
#: A point that does less than this part of what it could may always come up to it.
_RISE_ALWAYS = 0.02
#: A batch with less than this part of its time left is late anyway: nothing is gained by leaving out more.
_WORTH_A_HURRY = 0.4
#: Another mix is worth a change when it gives this much more than is given now.
_REGRET = 0.03


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
    headroom: HeadroomSettings = field(default_factory=HeadroomSettings)
    #: Levels are eased soon when less than this part of the target would be used, and in time when less than
    #: that.
    keep_above: float = 0.9
    rest_above: float = 0.97
    least_share: float = 0.1
    #: What a point does becomes at most so many times as much from one batch to the next.
    rise_max: float = 2.5
    #: Batches in a row that must have had time to spare: at first, and after easing was often taken back.
    patience: int = 2
    patience_most: int = 32
    cost: CostSettings = field(default_factory=CostSettings)

    def __post_init__(self) -> None:
        parts = self.keep_above, self.rest_above, self.least_share
        counts = 1 <= self.patience <= self.patience_most
        if not (
            self.batch_seconds > 0 and all(0 < part <= 1 for part in parts) and counts and self.rise_max > 1
        ):
            raise FlowError(
                explain(
                    "A goal has some time, parts in (0, 1], patience of 1 and more, and rise_max above 1",
                    got=self,
                )
            )


@dataclass(frozen=True)
class BatchSeen:
    """What a batch did."""

    busy_seconds: float
    efforts: Mapping[str, Effort]
    #: By operator whose time is measured: seconds that it took; and all that balance would save.
    seconds: Mapping[str, float] = field(default_factory=dict)
    uneven_seconds: float = 0.0
    #: Seconds that sources are behind.
    behind_seconds: float = 0.0
    #: False: it had no rows, or ran on cold workers, and says nothing that lasts.
    teaches: bool = True


@dataclass(frozen=True)
class Decided:
    """What the next batch does, and what is expected of it."""

    #: By point: r, z, p, or 1 for an output that is shut off.
    levels: Levels
    #: Seconds: with these levels, with nothing left out, and of a batch that does nothing.
    planned: float
    full: float
    fixed: float
    #: By output: the largest share of its results that will be missing.
    lost: Mapping[str, float]
    #: Seconds that are missing in spite of everything, and the part of the rows, the freshest, that fits.
    short: float = 0.0
    keep_share: float = 1.0
    headroom: float = 0.0
    uneven_seconds: float = 0.0
    behind_seconds: float = 0.0
    #: What was predicted for the batch that has just run, and what it took.
    predicted: float | None = None
    took: float | None = None

    def told(self) -> dict[str, Any]:
        """For telemetry."""
        return asdict(self)

    @property
    def sheds(self) -> bool:
        return any(share > 0 for share in self.lost.values())


class OneGoal:
    """Levels of all points, by one model of the load."""

    def __init__(self, settings: GoalSettings) -> None:
        self.settings = settings
        self.model = LoadModel(settings.cost)
        self._headroom = Headroom(settings.headroom)
        self._levels: dict[str, float] = {}
        self._predicted: float | None = None
        #: Batches in a row with time to spare, with a little of it, and with a better mix at hand.
        self._spare, self._slack, self._regretted = 0, 0, 0
        self._patience = settings.patience
        #: Batches since levels were eased.
        self._since_easing = _FORGIVEN

    def adapt(self, batch: BatchSeen, ahead: Mapping[str, Effort], offers: Sequence[Offer]) -> Decided:
        """Learn from a batch; decide for the next, which would do `ahead` if nothing were left out."""
        predicted = self._predicted
        if batch.teaches:
            self.model.observe(batch.efforts, batch.busy_seconds, batch.seconds)
            if predicted is not None:
                self._headroom.observe(predicted, batch.busy_seconds, self.settings.batch_seconds)
        prospect = Prospect(self.model, ahead, offers, self.settings.weights, self.settings.loss_max)
        self._levels = {point: self._levels.get(point, level) for point, level in prospect.nothing.items()}
        if batch.teaches:
            self._move(prospect)
        decided = self._decided(prospect, batch, predicted, self._next_levels(prospect, batch))
        self._predicted = decided.planned
        return decided

    def _target(self, prospect: Prospect) -> float:
        """The time to be used: what there is, less headroom; never so little that nothing would be done."""
        return max((1 - self._headroom.part) * self.settings.batch_seconds, self._least(prospect))

    def _move(self, prospect: Prospect) -> None:
        """Deeper at once, easier after a while, another mix after a while; or as it is."""
        target, planned = self._target(prospect), prospect.seconds(self._levels)
        self._since_easing += 1
        if self._since_easing > _FORGIVEN:
            self._patience = self.settings.patience
        if planned > target + self._headroom.part / 2 * self.settings.batch_seconds:
            if self._since_easing <= _TOO_EARLY:
                self._patience = min(self.settings.patience_most, 2 * self._patience)
            self._spare, self._slack, self._since_easing = 0, 0, max(self._since_easing, _TOO_EARLY + 1)
            self._levels = prospect.fit(target, deeper=self._levels).levels
            return
        sheds = self._levels != prospect.nothing
        used = planned / target
        self._spare = self._spare + 1 if sheds and used < self.settings.keep_above else 0
        self._slack = self._slack + 1 if sheds and used < self.settings.rest_above else 0
        # Where there is much time to spare the rush is over: that is not tried, it is known.
        patience = self.settings.patience if used < _MUCH else self._patience
        if self._spare >= patience or self._slack >= _LITTLE * self._patience:
            self._spare, self._slack, self._since_easing = 0, 0, 0
            self._levels = self._not_too_fast(prospect, prospect.fit(target, easier=self._levels).levels)
        elif sheds:
            self._mix(prospect, planned)

    def _not_too_fast(self, prospect: Prospect, levels: Levels) -> dict[str, float]:
        """A model that errs must not undo in one batch what it took many to learn."""
        limited = {}
        for point, level in levels.items():
            offer = prospect.offers[point]
            done = offer.done(self._levels[point])
            most = max(self.settings.rise_max * done, _RISE_ALWAYS)
            limited[point] = level if offer.whole or offer.done(level) <= most else offer.level(most)
        return limited

    def _mix(self, prospect: Prospect, target: float) -> None:
        """Set levels anew where that has been better for a while."""
        other = prospect.fit(target).levels
        here, there = prospect.loss(self._levels), prospect.loss(other)
        whole = sum(self.settings.weights.get(output, 1.0) for output in prospect.lost(other))
        better = here - there > _REGRET * (whole - here)
        self._regretted = self._regretted + 1 if better else 0
        if self._regretted > self._patience:
            self._regretted = 0
            self._levels = self._not_too_fast(prospect, other)

    def _next_levels(self, prospect: Prospect, batch: BatchSeen) -> Levels:
        """The levels in force; deeper, this once, where rows that waited long can be in time yet."""
        whole, latency = self.settings.batch_seconds, self.settings.latency_seconds
        if latency is None:
            return self._levels
        left = latency - batch.busy_seconds
        if not _WORTH_A_HURRY * whole <= left < whole:
            return self._levels
        target = max((1 - self._headroom.part) * left, self._least(prospect))
        if prospect.seconds(self._levels) <= target:
            return self._levels
        return prospect.fit(target, deeper=self._levels).levels

    def _least(self, prospect: Prospect) -> float:
        """Never so little time that nothing would be done."""
        return prospect.seconds(prospect.deepest) + self.settings.least_share * self.settings.batch_seconds

    def _decided(
        self, prospect: Prospect, batch: BatchSeen, predicted: float | None, levels: Levels
    ) -> Decided:
        planned, part = prospect.seconds(levels), self._headroom.part
        short = max(0.0, planned - (1 - part / 2) * self.settings.batch_seconds)
        return Decided(
            levels=dict(levels),
            planned=planned,
            full=prospect.seconds(prospect.nothing),
            fixed=prospect.fixed,
            lost=prospect.lost(levels),
            short=short,
            keep_share=self._keep_share(prospect, planned) if short else 1.0,
            headroom=part,
            uneven_seconds=batch.uneven_seconds,
            behind_seconds=batch.behind_seconds,
            predicted=predicted,
            took=batch.busy_seconds,
        )

    def _keep_share(self, prospect: Prospect, planned: float) -> float:
        """The part of the rows that fits; 1 where fewer rows would not help, because overhead is too much."""
        target = (1 - self._headroom.part) * self.settings.batch_seconds
        room = target - prospect.fixed
        if room < self.settings.least_share * target:
            return 1.0
        return min(1.0, room / max(planned - prospect.fixed, 1e-9))

    def snapshot(self) -> dict[str, Any]:
        return {
            "model": self.model.snapshot(),
            "headroom": self._headroom.snapshot(),
            "levels": self._levels,
            "predicted": self._predicted,
            "calm": [self._spare, self._slack, self._regretted, self._patience, self._since_easing],
        }

    @classmethod
    def restore(cls, raw: Mapping[str, Any], settings: GoalSettings) -> OneGoal:
        restored = cls(settings)
        restored.model = LoadModel.restore(raw["model"], settings.cost)
        restored._headroom = Headroom.restore(raw["headroom"], settings.headroom)
        restored._levels, restored._predicted = dict(raw["levels"]), raw["predicted"]
        restored._spare, restored._slack, restored._regretted, restored._patience, restored._since_easing = (
            raw["calm"]
        )
        return restored


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
                why=f"Only the freshest {decided.keep_share:.0%} of its rows are in time",
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
