"""What happens under overload: a latency goal, and what may be shed to meet it.

    tg.start(…, trigger="1 second", goal=tg.Goal(latency="2 seconds"))                    the defaults
    tg.start(…, goal=tg.Goal(latency="2 seconds", loss_max=0.2, priority={"near": 5}))    limits on loss
    tg.start(…, goal=tg.Goal(latency="2 seconds"), shed=tg.Shed(join="partial"))          how to shed

Without a goal nothing is shed, however long a batch takes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from tidegate.errors import FlowError
from tidegate.quantities import duration_us, is_number, is_whole, size_bytes

JOIN_POLICIES = ("auto", "selective", "adaptive", "partial", "random", "window-reduction", "none")
RATE_RULES = ("model", "paper")
#: Policies that store every row, so that skipped pairs can be repaired.
KEEPING_POLICIES = ("auto", "selective", "adaptive", "partial", "none")
WHEN_IDLE, AT_THE_END = "when idle", "at the end"
SIFT_POLICIES = ("auto", "flexp", "dedp", "qedp", "ugrid", "volume", "count", "random", "none")
WINDOW_POLICIES = ("auto", "none")
REGIONS_MAX = 10_000


@dataclass(frozen=True)
class Goal:
    """Results are committed at most `latency` after their rows were available at the source.

    `loss_max`: the largest share of an output's results that may be shed (of approximate windows: of their
    input rows), one number for all outputs or one per named output; None means no limit.
    `state_max`: the bytes that may be stored; joins drop state beyond it, oldest and least productive first.
    `priority`: the weight of an output's loss, 1 by default; with twice the weight an output loses half as
    much for the same time.

    When all other shedding is not enough, joins drop their oldest rows and report it. With repair, and for
    outputs with a `loss_max`, they process all rows and results are overdue.
    """

    latency: str
    loss_max: float | Mapping[str, float | None] | None = None
    state_max: str | None = None
    priority: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.latency_us == 0:
            raise FlowError(
                "The latency of a goal is zero",
                got=repr(self.latency),
                why="Every batch takes some time",
                do="Give a duration such as '2 seconds'",
            )
        bounds = self.loss_max if isinstance(self.loss_max, Mapping) else {"": self.loss_max}
        for name, bound in bounds.items():
            if bound is not None and not is_number(bound, 0, 1):
                raise FlowError(
                    f"The loss_max of {f'the output {name!r}' if name else 'a goal'} is a share",
                    got=repr(bound),
                    do="Give a number from 0 (nothing may be lost) to below 1, or None",
                )
        if self.priority is not None and not isinstance(self.priority, Mapping):
            raise FlowError(
                "The priority of a goal says for each output what its loss counts",
                got=repr(self.priority),
                do='Name the outputs with their weights: priority={"near": 5}; what is not named has 1',
            )
        for name, weight in (self.priority or {}).items():
            if not is_number(weight, 0) or weight == 0:
                raise FlowError(
                    f"The priority of the output {name!r} is not a weight",
                    got=repr(weight),
                    why="With none, all of it would be the first to go",
                    do="Give a finite number above zero; what is not named has 1",
                )
        if self.state_max is not None:
            size_bytes(self.state_max, "state_max of the goal")

    @property
    def state_bytes(self) -> int | None:
        """Bytes that may be stored."""
        return None if self.state_max is None else size_bytes(self.state_max, "state_max of the goal")

    def weights(self, outputs: Collection[str]) -> dict[str, float]:
        """The weight of each output's loss; raises for names that no output has."""
        self._check_known("priority", self.priority or {}, outputs)
        return {name: float((self.priority or {}).get(name, 1.0)) for name in outputs}

    def bounds(self, outputs: Collection[str]) -> dict[str, float]:
        """The largest loss of each output that has one; raises where nothing may be shed at all."""
        if isinstance(self.loss_max, Mapping):
            self._check_known("loss_max", self.loss_max, outputs)
            bounds = {name: float(bound) for name, bound in self.loss_max.items() if bound is not None}
        else:
            bounds = {} if self.loss_max is None else dict.fromkeys(outputs, float(self.loss_max))
        if outputs and all(bounds.get(name) == 0 for name in outputs):
            raise FlowError(
                "A goal with a loss_max of 0 for every output leaves nothing to be left out",
                got=f"loss_max={self.loss_max!r}",
                why="A latency that is kept by losing nothing needs no goal",
                do="Allow some output a loss, or use goal=None",
            )
        return bounds

    def _check_known(self, what: str, given: Mapping[str, Any], outputs: Collection[str]) -> None:
        unknown = sorted(set(given) - set(outputs), key=str)
        if unknown:
            raise FlowError(
                f"The {what} of the goal names outputs that there are not",
                got=", ".join(map(repr, unknown)),
                why="It would be ignored",
                do=f"Use the names given to write_to: {', '.join(map(repr, sorted(outputs)))}",
            )

    @property
    def latency_us(self) -> int:
        return duration_us(self.latency, "latency of the goal")

    def batch_seconds(self, trigger_us: int) -> float:
        """The time budget of a batch, from its trigger to its commit.

        A row that just missed a batch waits until the next one begins, after max(batch, trigger), and then
        for that whole batch: max(batch, trigger) + batch = latency.
        """
        if trigger_us >= self.latency_us:
            raise FlowError(
                "The goal cannot be met: batches begin further apart than results may take",
                got=f"a trigger of {trigger_us / 1e6:g} s, a latency of {self.latency_us / 1e6:g} s",
                do="Use a trigger of half the latency or less, or trigger=None",
            )
        return min(self.latency_us / 2, self.latency_us - trigger_us) / 1e6


def _is_share(given: object) -> TypeGuard[float]:
    return is_number(given, 0) and given <= 1


@dataclass(frozen=True)
class Shed:
    """How work is shed.

    `join`: `auto` (content-aware probes in joins of sets without a key: each row probes the windows in which
    its items occur; otherwise, and with repair or a utility, as `selective`), `selective` (the most
    productive parts of both windows, the same for all rows, learnt while running), `adaptive` (the paper's
    algorithms; see `time_correlation`, `direction` and `sampling`), `partial` (the newest part), `random`
    (drops rows before the join), `window-reduction` (shortens the windows), `none`.
    `rate`: the probe ratio follows from learnt costs (`model`) or is adjusted by feedback (`paper`,
    algorithm 1).
    `utility`: an expression over the joined row for the worth of a pair; by default all count the same.
    `sift`: how the data space in front of a match is cut into regions: `auto` (ours), `flexp` (QDPart),
    `dedp`, `qedp`, `ugrid` (the paper's others), `volume`, `count`, `random` (one region), `none`.
    `regions`: their largest number. `fairness`: the largest difference between the drop thresholds of two
    regions that queries ask about: 0 means equal thresholds, 1 the best total for all queries.
    `window`: the share of windows that is dropped from outputs with a `max_gap`: `auto` (as many as needed),
    `none`, or a fixed share in 0 … 1. For approximate windows it is the share of rows.
    `repair`: skipped pairs are found later in spare time (`when idle`), when the query stops (`at the end`),
    or never (None). It needs a policy that stores every row, and applies to joins whose results go straight
    to outputs; other joins then shed nothing. Their rows get a column `repaired_batch`: null in rows that
    came in time, otherwise the batch that skipped them. With "available now" every batch repairs its debt
    before it ends. `repair_max`: bytes that may be kept beyond their windows for repair; beyond that the
    oldest debts are written off and reported.
    """

    join: str = "auto"
    utility: Any = None
    rate: str = "model"
    sift: str = "auto"
    regions: int = 32
    fairness: float = 0.5
    window: str | float = "auto"
    time_correlation: bool = True
    direction: bool = True
    sampling: float = 0.1
    repair: str | None = None
    repair_max: str = "1 GB"

    @property
    def repair_bytes(self) -> int:
        return size_bytes(self.repair_max, "repair_max")

    def __post_init__(self) -> None:
        self._check_repair()
        for name, known in (("join", JOIN_POLICIES), ("rate", RATE_RULES), ("sift", SIFT_POLICIES)):
            if getattr(self, name) not in known:
                raise FlowError(
                    f"Shed does not know {name}={getattr(self, name)!r}", do=f"Use one of {', '.join(known)}"
                )
        if not is_whole(self.regions) or self.regions > REGIONS_MAX:
            raise FlowError(
                "A sifter has some regions, and not too many to be sent around",
                got=f"regions={self.regions!r}",
                do=f"Give a whole number from 1 to {REGIONS_MAX}; 16 to 100 are plenty",
            )
        if not _is_share(self.fairness):
            raise FlowError(
                "Fairness is a difference of shares",
                got=f"fairness={self.fairness!r}",
                do="Give a number in 0 … 1",
            )
        if self.window not in WINDOW_POLICIES and not _is_share(self.window):
            raise FlowError(
                f"Shed does not know window={self.window!r}",
                do=f"Use one of {', '.join(WINDOW_POLICIES)}, or the share of windows to drop, in 0 … 1",
            )
        if not _is_share(self.sampling) or self.sampling == 0:
            raise FlowError(
                "The sample of Shed must be some of the rows",
                got=f"sampling={self.sampling!r}",
                do="Give a number above 0 and up to 1",
            )

    def _check_repair(self) -> None:
        if self.repair not in (None, WHEN_IDLE, AT_THE_END):
            raise FlowError(
                f"Shed does not know repair={self.repair!r}", do=f"Use {WHEN_IDLE!r}, {AT_THE_END!r} or None"
            )
        if self.repair is not None and self.join not in KEEPING_POLICIES:
            raise FlowError(
                "What this policy leaves out cannot be repaired",
                got=f"join={self.join!r}, repair={self.repair!r}",
                why="It gives up rows, and what is not stored cannot be looked at later",
                do="Use join='selective', 'adaptive' or 'partial', or repair=None",
            )
        _ = self.repair_bytes  # raises now, not in the first burst
