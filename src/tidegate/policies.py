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

Each is a frozen value that describes a strategy; the query makes the running one from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tidegate.errors import FlowError
from tidegate.quantities import Duration, duration_us, is_number, is_whole

__all__ = [
    "Adaptive",
    "ContRand",
    "FastJoin",
    "Hash",
    "LsStream",
    "Partial",
    "Random",
    "RandomDrop",
    "Selective",
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
    #: Every row is stored, so that skipped pairs can be repaired.
    stores_all: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """The algorithms of the selective join paper: rate, time correlation and join direction.

    `explore_ratio`: the share of probing rows that are processed fully, to learn (the paper's γ).
    `rate_period`, `correlation_period`: the paper's T_r and T_c. `basic_window`: the length of a basic
    window; None means a tenth of the window. These three have no effect yet: a query adapts once per batch,
    with basic windows of a tenth of the window, and warns in its log if they are given.
    `time_correlation`, `direction`: switch algorithms 3 and 4 off.

    >>> Adaptive(explore_ratio=0.2).explore_ratio
    0.2
    """

    word: ClassVar[str] = "adaptive"
    stores_all: ClassVar[bool] = True

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

    @property
    def ignored(self) -> tuple[str, ...]:
        """The parameters that were given and have no effect yet."""
        changed = {name: getattr(self, name) for name in ("rate_period", "correlation_period")}
        found = [
            name for name, given in changed.items() if duration_us(given, name) != duration_us(PERIOD, name)
        ]
        return (*found, *(["basic_window"] if self.basic_window is not None else []))


@dataclass(frozen=True)
class Partial:
    """Every row is stored and probes the newest part of the window.

    >>> Partial()
    Partial()
    """

    word: ClassVar[str] = "partial"
    stores_all: ClassVar[bool] = True


@dataclass(frozen=True)
class RandomDrop:
    """Drops rows before the join, by a hash of the row. Dropped rows cannot be repaired.

    >>> RandomDrop()
    RandomDrop()
    """

    word: ClassVar[str] = "random_drop"
    stores_all: ClassVar[bool] = False


@dataclass(frozen=True)
class WindowReduction:
    """Shortens the windows: rows leave the state early. Such pairs cannot be repaired.

    >>> WindowReduction()
    WindowReduction()
    """

    word: ClassVar[str] = "window_reduction"
    stores_all: ClassVar[bool] = False


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
