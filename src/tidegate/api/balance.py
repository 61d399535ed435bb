"""How work is distributed over the instances of joins.

    tg.start(…)                                                  balances by measured cost, splits hot keys
    tg.start(…, balance=tg.Balance(strategy="fastjoin"))         the algorithm of the FastJoin paper
    tg.start(…, balance=tg.Balance(strategy=policies.LsStream(threshold=1.5)))
    tg.start(…, balance=tg.Balance(strategy="none"))             state never moves

Balancing moves work between instances and loses nothing, so it needs no goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tidegate.errors import FlowError
from tidegate.policies import BalanceStrategy, ContRand, FastJoin, Hash, LsStream, Random, Strategy
from tidegate.quantities import is_whole

StrategyName = Literal["auto", "hash", "random", "contrand", "fastjoin", "ls_stream", "none"]
Topology = Literal["together", "biclique"]

TOGETHER: Topology = "together"
BICLIQUE: Topology = "biclique"
STRATEGIES: tuple[str, ...] = get_args(StrategyName)
_STRATEGIES = {kind.word: kind for kind in (Hash, Random, ContRand, FastJoin, LsStream)}


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Which instances store and probe rows, and when that changes.

    `strategy`: a word, an object of `tidegate.policies` with parameters of its own, or one of your own that
    keeps the protocol `tidegate.policies.Strategy`:

        auto         moves partitions by measured cost, with the least state moved, and splits hot keys
        hash, none   by key; nothing moves
        random       a row is stored on any instance and probes all
        contrand     by key to a group of instances, random among them
        fastjoin     moves keys from the heaviest instance to the lightest
        ls_stream    moves partitions away from stragglers

    `topology`: `together` (both sides of a key on one instance) or `biclique` (as in the papers: one half of
    the instances stores left rows and probes them with right rows, the other half the opposite).
    `scale`: the least and the largest number of instances, for autoscaling; None keeps the number.

    >>> Balance(strategy="fastjoin").strategy
    'fastjoin'
    """

    strategy: StrategyName | BalanceStrategy | Strategy = "auto"
    topology: Topology = TOGETHER
    scale: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        known = isinstance(self.strategy, BalanceStrategy | Strategy)
        if not known and self.strategy not in STRATEGIES:
            new = {"ls-stream": "ls_stream"}.get(str(self.strategy))
            words = ", ".join(STRATEGIES)
            raise FlowError(
                "Unknown strategy of Balance",
                code="BALANCE_STRATEGY_UNKNOWN",
                got=repr(self.strategy),
                do=f"Use {new!r}" if new else f"Use one of {words}, or an object of tidegate.policies",
            )
        if self.topology not in get_args(Topology):
            raise FlowError(
                "Unknown topology of Balance",
                code="BALANCE_TOPOLOGY_UNKNOWN",
                got=repr(self.topology),
                do=f"Use one of {', '.join(get_args(Topology))}",
            )
        if self.scale is not None and not _is_pair(self.scale):
            raise FlowError(
                "scale of Balance is not a range of instances",
                code="BALANCE_SCALE_RANGE",
                got=repr(self.scale),
                do="Give scale=(least, largest), whole numbers with 1 <= least <= largest",
            )

    @property
    def named(self) -> BalanceStrategy | Strategy | None:
        """The strategy that was chosen; None for `auto`."""
        if not isinstance(self.strategy, str):
            return self.strategy
        if self.strategy == "auto":
            return None
        return _STRATEGIES["hash" if self.strategy == "none" else self.strategy]()

    @property
    def moves(self) -> bool:
        """Whether state moves without the user's action."""
        return not isinstance(self.named, Hash | Random | ContRand)

    @property
    def copies(self) -> bool:
        """Whether rows visit several instances."""
        return isinstance(self.named, Random | ContRand)

    @property
    def word(self) -> str:
        """The name of the strategy."""
        if isinstance(self.named, Strategy):
            return self.named.name
        return "auto" if self.named is None else self.named.word


def _is_pair(given: object) -> bool:
    if not isinstance(given, tuple | list) or len(given) != 2:
        return False
    return all(map(is_whole, given)) and given[0] <= given[1]
