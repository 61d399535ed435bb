"""How work is distributed over the instances of joins.

    tg.start(…)                                                balances by measured cost, splits hot keys
    tg.start(…, balance=tg.Balance(strategy="fastjoin"))       the algorithm of the FastJoin paper
    tg.start(…, balance=tg.Balance(strategy="none"))           state never moves

Balancing moves work between instances and loses nothing, so it needs no goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.errors import FlowError
from tidegate.quantities import is_number, is_whole

STRATEGIES = ("auto", "hash", "random", "contrand", "fastjoin", "ls-stream", "none")
TOGETHER, BICLIQUE = "together", "biclique"
#: The ratio heaviest / lightest is at least one, a deviation at least zero.
THRESHOLD_LEAST = {"fastjoin": 1.0, "ls-stream": 0.0}


@dataclass(frozen=True)
class Balance:
    """Which instances store and probe rows, and when that changes.

    `strategy`: `auto` (moves partitions by measured cost, with the least state moved, and splits hot keys),
    `hash` and `none` (by key, nothing moves), `random` (a row is stored on any instance and probes all),
    `contrand` (by key to `group` instances, random among them), `fastjoin`, `ls-stream`.
    `topology`: `together` (both sides of a key on one instance) or `biclique` (as in the papers: one half of
    the instances stores left rows and probes them with right rows, the other half the opposite).
    `threshold`: the imbalance that triggers a move, the paper's value by default (`fastjoin`: heaviest /
    lightest, 2.2; `ls-stream`: relative deviation, 1.0).
    `scale`: the least and the largest number of instances for autoscaling.
    """

    strategy: str = "auto"
    topology: str = TOGETHER
    threshold: float | None = None
    #: `contrand`: instances that share the keys of a subgroup.
    group: int = 4
    #: `ls-stream`: weight of memory against computing.
    gamma: float = 0.5
    #: `ls-stream`: speeds of the instances, where they differ.
    weights: tuple[float, ...] | None = None
    scale: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, known in (("strategy", STRATEGIES), ("topology", (TOGETHER, BICLIQUE))):
            if getattr(self, name) not in known:
                raise FlowError(
                    f"Balance does not know {name}={getattr(self, name)!r}",
                    do=f"Use one of {', '.join(known)}",
                )
        if self.threshold is not None and self.strategy not in THRESHOLD_LEAST:
            raise FlowError(
                f"The strategy {self.strategy!r} has no threshold",
                got=f"threshold={self.threshold}",
                do="Leave it out, or choose fastjoin or ls-stream",
            )
        if self.weights is not None and self.strategy != "ls-stream":
            raise FlowError(
                f"The strategy {self.strategy!r} knows no weights of instances",
                got=f"weights={self.weights}",
                why="They would be ignored",
                do="Leave them out (auto measures what instances take), or choose ls-stream",
            )
        self._check_numbers()
        if self.scale is not None and not _is_pair(self.scale):
            raise FlowError(
                "The bounds for the number of instances are the wrong way round or below one",
                got=repr(self.scale),
                do="Give scale=(least, largest), whole numbers with 1 <= least <= largest",
            )

    def _check_numbers(self) -> None:
        least = THRESHOLD_LEAST.get(self.strategy, 0.0)
        weights = self.weights if isinstance(self.weights, Sequence) else ()
        for name, good, valid in (
            (
                "threshold",
                self.threshold is None or is_number(self.threshold, least),
                f"{least:g} or more for {self.strategy}, or None for the paper's own",
            ),
            ("group", is_whole(self.group), "a whole number of instances, 1 or more"),
            (
                "gamma",
                is_number(self.gamma, 0) and self.gamma <= 1,
                "a number from 0 (compute only) to 1 (memory only)",
            ),
            (
                "weights",
                self.weights is None or (weights and all(is_number(one, 0) and one > 0 for one in weights)),
                "one number above 0 per instance, such as (1, 1, 2)",
            ),
        ):
            if not good:
                raise FlowError(
                    f"The {name} of a balance is out of range",
                    got=f"{name}={getattr(self, name)!r}",
                    do=f"Give {valid}",
                )


def _is_pair(given: object) -> bool:
    if not isinstance(given, tuple | list) or len(given) != 2:
        return False
    return all(map(is_whole, given)) and given[0] <= given[1]
