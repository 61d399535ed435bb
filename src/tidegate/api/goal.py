"""What happens under overload: a latency goal, and what may be shed to meet it.

    tg.start(…, trigger="1 second", goal=tg.Goal(latency="2 seconds"))                    the defaults
    tg.start(…, goal=tg.Goal(latency="2 seconds", max_loss=0.2, max_state="4 GB"))        limits
    tg.start(…, goal=tg.Goal(latency="2 seconds", observe=True))                          shed nothing, report
    tg.start(…, goal=tg.Goal(latency="2 seconds"), shed=tg.Shed(join="partial"))          how to shed

Without a goal nothing is shed, however long a batch takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from tidegate.errors import FlowError
from tidegate.policies import (
    Adaptive,
    JoinPolicy,
    JoinStrategy,
    Partial,
    RandomDrop,
    Selective,
    WindowReduction,
    check_explore_ratio,
)
from tidegate.quantities import Duration, duration_us, is_number, is_whole, size_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column

JoinPolicyName = Literal[
    "auto", "selective", "adaptive", "partial", "random_drop", "window_reduction", "none"
]
RateRuleName = Literal["auto", "paper"]
SiftPolicyName = Literal["auto", "flexp", "dedp", "qedp", "ugrid", "volume", "count", "random", "none"]
WindowPolicyName = Literal["auto", "none"]
RepairTime = Literal["idle", "on_stop"]

IDLE: RepairTime = "idle"
ON_STOP: RepairTime = "on_stop"
JOIN_POLICIES: tuple[str, ...] = get_args(JoinPolicyName)
SIFT_POLICIES: tuple[str, ...] = get_args(SiftPolicyName)
REGIONS_MAX = 10_000
_JOIN_POLICIES = {kind.word: kind for kind in (Selective, Adaptive, Partial, RandomDrop, WindowReduction)}


@dataclass(frozen=True)
class Goal:
    """A promise about results: they are published at most `latency` after their rows were available.

    `max_loss`: the largest share of an output's results that may be shed (of approximate windows: of their
    input rows), from 0 to below 1; None means no limit. `write_to(max_loss=…)` overrides it for one output.
    `max_state`: the size of the state ("4 GB"); joins drop rows beyond it, oldest and least productive first.
    `observe`: shed nothing, and report what would have been shed. Batches take from sources what they take
    without a goal.

    When all other shedding is not enough, joins drop their oldest rows and report it. With repair, and for
    outputs with a `max_loss`, they process all rows and results are overdue.

    >>> Goal("2 seconds", max_loss=0.2).max_loss
    0.2
    """

    latency: Duration
    _: KW_ONLY
    max_loss: float | None = None
    max_state: str | None = None
    observe: bool = False

    def __post_init__(self) -> None:
        if self.latency_us == 0:
            raise FlowError(
                "The latency of a goal is zero",
                code="GOAL_LATENCY_ZERO",
                got=repr(self.latency),
                why="Every batch takes some time",
                do="Give a duration such as '2 seconds'",
            )
        check_loss(self.max_loss, "a goal")
        if self.max_state is not None:
            size_bytes(self.max_state, "max_state of the goal")
        if not isinstance(self.observe, bool):
            raise FlowError(
                "observe of the goal is True or False",
                code="GOAL_OBSERVE_TYPE",
                got=f"observe={self.observe!r}",
                do="Write observe=True to shed nothing and to be told what would have been shed",
            )

    @property
    def latency_us(self) -> int:
        """The latency in microseconds."""
        return duration_us(self.latency, "latency of the goal")

    @property
    def state_bytes(self) -> int | None:
        """The largest size of the state in bytes."""
        return None if self.max_state is None else size_bytes(self.max_state, "max_state of the goal")

    def batch_seconds(self, trigger_us: int) -> float:
        """The time budget of a batch, from its trigger to its commit.

        A row that just missed a batch waits until the next one begins, after max(batch, trigger), and then
        for that whole batch: max(batch, trigger) + batch = latency.
        """
        if trigger_us >= self.latency_us:
            raise FlowError(
                "The goal cannot be met: batches begin further apart than results may take",
                code="GOAL_LATENCY_BELOW_TRIGGER",
                got=f"a trigger of {trigger_us / 1e6:g} s, a latency of {self.latency_us / 1e6:g} s",
                do="Use a trigger of half the latency or less, or trigger=None",
            )
        return min(self.latency_us / 2, self.latency_us - trigger_us) / 1e6


def check_loss(given: object, owner: str) -> None:
    """Refuse a `max_loss` that is not a share; `owner` names what has it."""
    if given is not None and not is_number(given, 0, 1):
        raise FlowError(
            f"max_loss of {owner} is not a share",
            code="MAX_LOSS_RANGE",
            got=repr(given),
            do="Give a number from 0 (nothing may be lost) to below 1, or None for no limit",
        )


@dataclass(frozen=True, kw_only=True)
class Shed:
    """How work is shed under a goal.

    `join`: a word, an object of `tidegate.policies` with parameters of its own, or one of your own that keeps
    the protocol `tidegate.policies.JoinStrategy`:

        auto                content-aware probes in joins of sets without a key (each row probes the windows
                            in which its items occur); random drop where equal keys alone decide, because a
                            probe then costs only what it finds; otherwise, and with repair, a utility or a
                            max_loss, `selective`
        selective           the most productive parts of both windows, the same for all rows, learnt
        adaptive            the algorithms of the selective join paper
        partial             the newest part of the window
        random_drop         drops rows before the join
        window_reduction    shortens the windows
        none                joins skip nothing

    `rate`: the probe ratio of joins and the admit ratio of matches follow from measured costs (`auto`), or
    from feedback (`paper`: algorithm 1 of the selective join paper; the sifters paper leaves its throttler
    open and gets the same rule), or are this number in every batch, above 0 and up to 1. Window drops always
    follow the load equation of their paper, with measured costs and selectivities.
    `utility`: an expression over the joined row for the worth of a pair; by default all count the same.
    `sift`: how the data space in front of a match is cut into regions: `auto` (ours), `flexp` (QDPart),
    `dedp`, `qedp`, `ugrid` (the paper's others), `volume`, `count`, `random` (one region), `none`.
    `regions`: their largest number. `fairness`: the largest difference between the drop thresholds of two
    regions that queries ask about: 0 means equal thresholds, 1 the best total for all queries.
    `window`: the share of windows that is dropped from outputs with a `max_gap`: `auto` (as many as needed),
    `none`, or a fixed share in 0 … 1. For approximate windows it is the share of rows.
    `repair`: skipped pairs are found later in spare time (`idle`), when the query stops (`on_stop`), or
    never (None). It needs a policy that stores every row, and applies to joins whose results go straight to
    outputs; other joins then shed nothing. `write_to(repair_column=…)` marks repaired rows.
    `max_repair_state`: the size of what may be kept beyond its window for repair; beyond that the oldest
    debts are written off and reported.
    `explore_ratio`: the share of probing rows that `adaptive` processes fully, to learn. Others choose it.

    >>> Shed(join="partial", repair="idle").repair
    'idle'
    """

    join: JoinPolicyName | JoinPolicy | JoinStrategy = "auto"
    rate: RateRuleName | float = "auto"
    utility: str | Column | None = None
    sift: SiftPolicyName = "auto"
    regions: int = 32
    fairness: float = 0.5
    window: WindowPolicyName | float = "auto"
    repair: RepairTime | None = None
    max_repair_state: str = "1 GB"
    explore_ratio: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.join, JoinPolicy | JoinStrategy):
            _check_word("join", self.join, get_args(JoinPolicyName), _MOVED_WORDS, code="SHED_JOIN_UNKNOWN")
        if not (_is_share(self.rate) and self.rate):
            _check_word(
                "rate", self.rate, get_args(RateRuleName), {"model": "auto"}, code="SHED_RATE_UNKNOWN"
            )
        _check_word("sift", self.sift, SIFT_POLICIES, code="SHED_SIFT_UNKNOWN")
        if self.repair is not None:
            moved = {"when idle": IDLE, "at the end": ON_STOP}
            _check_word("repair", self.repair, get_args(RepairTime), moved, code="SHED_REPAIR_UNKNOWN")
        check_explore_ratio(self.explore_ratio, "Shed")
        self._check_sift()
        if self.window not in get_args(WindowPolicyName) and not _is_share(self.window):
            raise FlowError(
                "window of Shed is neither a known word nor a share",
                code="SHED_WINDOW_RANGE",
                got=repr(self.window),
                do="Use 'auto', 'none', or the share of windows to drop, from 0 to 1",
            )
        self._check_repair()

    @property
    def repair_bytes(self) -> int:
        """What may be kept beyond its window for repair."""
        return size_bytes(self.max_repair_state, "max_repair_state of Shed")

    @property
    def policy(self) -> JoinPolicy | JoinStrategy | None:
        """The policy that skips the pairs of joins; None if nothing is skipped."""
        if not isinstance(self.join, str):
            return self.join
        if self.join == "adaptive":
            return Adaptive(explore_ratio=self.explore_ratio)
        return (
            None
            if self.join == "none"
            else _JOIN_POLICIES["selective" if self.join == "auto" else self.join]()
        )

    def _check_sift(self) -> None:
        if not is_whole(self.regions) or self.regions > REGIONS_MAX:
            raise FlowError(
                "regions of Shed is out of range",
                code="SHED_REGIONS_RANGE",
                got=repr(self.regions),
                why="A sifter is sent to every source, so it must stay small",
                do=f"Give a whole number from 1 to {REGIONS_MAX}; 16 to 100 are plenty",
            )
        if not _is_share(self.fairness):
            raise FlowError(
                "fairness of Shed is not a share",
                code="SHED_FAIRNESS_RANGE",
                got=repr(self.fairness),
                do="Give a number from 0 (equal thresholds) to 1 (the best total)",
            )

    def _check_repair(self) -> None:
        policy = self.policy
        if self.repair is not None and isinstance(policy, RandomDrop | WindowReduction):
            raise FlowError(
                f"Pairs that {policy.word} skips cannot be repaired",
                code="SHED_REPAIR_IMPOSSIBLE",
                got=f"join={policy.word!r}, repair={self.repair!r}",
                why="It drops rows, and rows that are not stored cannot be probed later",
                do="Use join='selective', 'adaptive' or 'partial', or repair=None",
            )
        _ = self.repair_bytes  # raises now, not in the first burst


_MOVED_WORDS = {"random": "random_drop", "window-reduction": "window_reduction"}


def _check_word(
    name: str, given: object, known: tuple[str, ...], moved: Mapping[str, str] | None = None, *, code: str
) -> None:
    if isinstance(given, str) and given in known:
        return
    new = (moved or {}).get(given) if isinstance(given, str) else None
    objects = ", or an object of tidegate.policies" if name == "join" else ""
    raise FlowError(
        f"Unknown {name} of Shed",
        code=code,
        got=repr(given),
        do=f"Use {new!r}" if new else f"Use one of {', '.join(known)}{objects}",
    )


def _is_share(given: object) -> bool:
    return is_number(given, 0) and given <= 1
