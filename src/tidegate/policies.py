"""Strategies with parameters of their own, for `tg.Shed(join=…)` and `tg.Balance(strategy=…)`.

    tg.Shed(join="adaptive")                                       a word: the strategy with its defaults
    tg.Shed(join=policies.Adaptive(explore_ratio=0.2))             the same with a parameter
    tg.Balance(strategy=policies.FastJoin(threshold=1.5))

Shedding, when a batch of joins would take too long:

    Selective          every row is stored and probes the most productive parts of both windows
    Adaptive           the algorithms of the selective join paper
    Partial            every row is stored and probes the newest part of the window
    RandomDrop         drops rows before the join
    WindowReduction    shortens the windows

Balancing:

    Hash               every key stays where its hash puts it
    Random             a row is stored on any instance and probes all of them
    ContRand           by key to a group of instances, random among them
    FastJoin           moves keys from the heaviest instance to the lightest
    LsStream           moves partitions away from stragglers

Each is a frozen value that describes a strategy; the query makes the running one from it. A join policy of
your own is an object that keeps the protocol `JoinStrategy` (docs/overload.md has an example); it works with
the values `Decision`, `ProbeOrder`, `Telemetry` and `AgeCounts`. A balancing strategy of your own keeps the
protocol `Strategy`: from the `Load` of a batch to the `Assignment` of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from tidegate.control.actuators.policy import AgeCounts, Decision, ProbeOrder, Shape, Telemetry
from tidegate.errors import FlowError
from tidegate.quantities import Duration, duration_us, is_number, is_whole
from tidegate.route.assignment import Assignment
from tidegate.route.load import Load
from tidegate.route.strategy import Strategy

__all__ = [
    "Adaptive",
    "AgeCounts",
    "Assignment",
    "ContRand",
    "Decision",
    "FastJoin",
    "Hash",
    "JoinStrategy",
    "Load",
    "LsStream",
    "Partial",
    "ProbeOrder",
    "Random",
    "RandomDrop",
    "RunningJoinStrategy",
    "Selective",
    "Shape",
    "Strategy",
    "Telemetry",
    "WindowReduction",
]

#: The paper's T_r and T_c.
PERIOD = "5 seconds"


@dataclass(frozen=True)
class Selective:
    """Every row is stored and probes the most productive parts of both windows, learnt while running.

    >>> Selective()
    Selective()
    """

    word: ClassVar[str] = "selective"


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """The algorithms of the selective join paper: rate, time correlation and join direction.

    `explore_ratio`: the share of probing rows that are processed fully, to learn (the paper's γ); a larger
    one follows a change sooner and costs more. `rate_period`: the time between two changes of the probe ratio
    with `rate="paper"` (T_r); with other rates it has no effect. `correlation_period`: the time between two
    changes of what is probed (T_c). Both end with the batch nearest to them; counts add up meanwhile. A
    shorter one reacts sooner, and to chance. `basic_window`: the length of a basic window; None means a tenth
    of the window. Shorter ones follow a correlation more closely, and each is stored and probed by itself; a
    checkpoint keeps those that it began with. `time_correlation`, `direction`: switch algorithms 3 and 4 off.

    >>> Adaptive(explore_ratio=0.2).explore_ratio
    0.2
    """

    word: ClassVar[str] = "adaptive"

    rate_period: Duration = PERIOD
    correlation_period: Duration = PERIOD
    explore_ratio: float = 0.1
    basic_window: Duration | None = None
    time_correlation: bool = True
    direction: bool = True

    def __post_init__(self) -> None:
        check_explore_ratio(self.explore_ratio, "Adaptive")
        for name in ("rate_period", "correlation_period", "basic_window"):
            given = getattr(self, name)
            if given is not None and duration_us(given, f"{name} of Adaptive") == 0:
                raise FlowError(
                    f"{name} of Adaptive is zero",
                    code="POLICY_PERIOD_ZERO",
                    got=repr(given),
                    do="Give a positive duration such as '5 seconds'",
                )


@dataclass(frozen=True)
class Partial:
    """Every row is stored and probes the newest part of the window.

    >>> Partial()
    Partial()
    """

    word: ClassVar[str] = "partial"


@dataclass(frozen=True)
class RandomDrop:
    """Drops rows before the join, by a hash of the row. Dropped rows cannot be repaired.

    >>> RandomDrop()
    RandomDrop()
    """

    word: ClassVar[str] = "random_drop"


@dataclass(frozen=True)
class WindowReduction:
    """Shortens the windows: rows leave the state early. Such pairs cannot be repaired.

    >>> WindowReduction()
    WindowReduction()
    """

    word: ClassVar[str] = "window_reduction"


class RunningJoinStrategy(Protocol):
    """The running policy of one join. It runs on the driver, once per batch: first `learn`, then `decide`.

    It must be a function of its snapshot and of what it is given, without clock or random numbers, so that a
    batch that is repeated after a crash is decided alike.

    >>> class Newest:
    ...     def __init__(self, windows):
    ...         self.ages = windows.ages
    ...
    ...     def decide(self, ratio):
    ...         left, right = (ProbeOrder(ratio, tuple(range(ages))) for ages in self.ages)
    ...         return Decision((left, right))
    ...
    ...     def learn(self, telemetry):
    ...         pass
    ...
    ...     def snapshot(self):
    ...         return {}
    """

    def decide(self, ratio: float) -> Decision:
        """Which parts of both windows new rows probe, if they are to do this part of all work (0 … 1).

        `ratio` follows from the goal or from `Shed(rate=…)`. Rows that skip parts of windows teach nothing
        about them, so `full_share` makes some rows probe everything.
        """

    def learn(self, telemetry: Telemetry) -> None:
        """What the last batch found, by age of basic window."""

    def snapshot(self) -> Mapping[str, Any]:
        """All that it knows, as JSON; the checkpoint keeps it, and `build` gets it back."""


@runtime_checkable
class JoinStrategy(Protocol):
    """A join policy of your own, for `tg.Shed(join=…)`: a description that makes a running one for each join.

    `word` is its name: what a policy of another name learnt is not given to it. All rows are stored, so it
    can be used with `repair`. Windows are as in the papers: age 0 is the newest basic window, and a new row
    probes older rows.

    >>> class Newest:
    ...     word = "newest"
    ...
    ...     def build(self, windows, snapshot):
    ...         return RunningNewest(windows)
    >>> isinstance(Newest(), JoinStrategy)
    True
    """

    @property
    def word(self) -> str: ...

    def build(self, windows: Shape, snapshot: Mapping[str, Any] | None) -> RunningJoinStrategy:
        """The running policy of one join; `snapshot` is None at its beginning.

        A new one is built before every batch, from the snapshot of the last.
        """


JoinPolicy = Selective | Adaptive | Partial | RandomDrop | WindowReduction


@dataclass(frozen=True)
class Hash:
    """Every key stays where its hash puts it; nothing moves.

    >>> Hash()
    Hash()
    """

    word: ClassVar[str] = "hash"


@dataclass(frozen=True)
class Random:
    """A row is stored on any instance and probes all of them: even for any keys, and the most work.

    >>> Random()
    Random()
    """

    word: ClassVar[str] = "random"


@dataclass(frozen=True, kw_only=True)
class ContRand:
    """By key to one of `groups` groups of instances, random inside it (BiStream-ContRand).

    Fewer groups share a hot key among more instances, and make every row visit more of them. None: groups of
    four instances.

    >>> ContRand(groups=2)
    ContRand(groups=2)
    """

    word: ClassVar[str] = "contrand"

    groups: int | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and not is_whole(self.groups):
            raise _out_of_range(self, "groups", "a whole number of groups, 1 or more, or None")


@dataclass(frozen=True, kw_only=True)
class FastJoin:
    """Moves keys from the heaviest instance to the lightest (the FastJoin paper).

    `threshold`: the ratio of the heaviest load to the lightest that triggers a migration; lower balances more
    and moves more. `search`: how keys are chosen, `greedy` (GreedyFit) or `annealing` (SAFit).

    >>> FastJoin(threshold=1.5)
    FastJoin(threshold=1.5, search='greedy')
    """

    word: ClassVar[str] = "fastjoin"

    threshold: float = 2.2
    search: Literal["greedy", "annealing"] = "greedy"

    def __post_init__(self) -> None:
        if not is_number(self.threshold, 1):
            raise _out_of_range(self, "threshold", "1 or more; the paper uses 2.2")
        if self.search not in ("greedy", "annealing"):
            raise _out_of_range(self, "search", "'greedy' or 'annealing'")


@dataclass(frozen=True, kw_only=True)
class LsStream:
    """Moves whole partitions from the straggler to the least loaded instance (the Ls-Stream paper).

    `threshold`: the relative deviation of loads that triggers a move; lower balances better and moves more.
    `memory_weight`: the share of memory in the load; the rest is compute. `speeds`: the relative speed of
    each instance; None means that all are equal.

    >>> LsStream(memory_weight=0.2).threshold
    1.0
    """

    word: ClassVar[str] = "ls_stream"

    threshold: float = 1.0
    memory_weight: float = 0.5
    speeds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not is_number(self.threshold, 0):
            raise _out_of_range(self, "threshold", "0 or more; the paper uses 1 and advises 1 to 2")
        if not (is_number(self.memory_weight, 0) and self.memory_weight <= 1):
            raise _out_of_range(self, "memory_weight", "a number from 0 (compute only) to 1 (memory only)")
        speeds = self.speeds
        if speeds is not None and not (
            isinstance(speeds, tuple | list)
            and speeds
            and all(is_number(one, 0) and one > 0 for one in speeds)
        ):
            raise _out_of_range(self, "speeds", "one number above 0 per instance, such as (1, 1, 2), or None")


BalanceStrategy = Hash | Random | ContRand | FastJoin | LsStream


def check_explore_ratio(given: object, owner: str) -> None:
    """Refuse an exploration ratio that explores nothing, or more than everything."""
    if not (is_number(given, 0) and 0 < given <= 1):
        raise FlowError(
            f"explore_ratio of {owner} is out of range",
            code="SHED_EXPLORE_RATIO_RANGE",
            got=repr(given),
            why="Without exploration the productive parts of the windows are never found",
            do="Give a number above 0 and up to 1; the paper takes 0.1",
        )


def _out_of_range(policy: Any, name: str, valid: str) -> FlowError:
    return FlowError(
        f"{name} of {type(policy).__name__} is out of range",
        code="POLICY_PARAMETER_RANGE",
        got=f"{name}={getattr(policy, name)!r}",
        do=f"Give {valid}",
    )
