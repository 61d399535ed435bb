"""How work is spread over the instances of joins. The defaults choose by themselves.

    tg.start(…)                                                balances by measured cost, splits hot keys
    tg.start(…, balance=tg.Balance(strategy="fastjoin"))       as the FastJoin paper does
    tg.start(…, balance=tg.Balance(strategy="none"))           nothing ever moves

Balancing moves work between instances and loses nothing, so it needs no goal.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import FlowError, explain

STRATEGIES = ("auto", "hash", "random", "contrand", "fastjoin", "ls-stream", "none")
TOGETHER, BICLIQUE = "together", "biclique"


@dataclass(frozen=True)
class Balance:
    """Where rows are stored and looked for, and when that changes.

    `strategy`: `auto` (ours: partitions by measured cost with the least state moved, hot keys split),
    `hash` and `none` (by key, nothing moves), `random` (stored anywhere, looked for everywhere), `contrand`
    (by key to `group` instances, anywhere among them), `fastjoin`, `ls-stream`. `topology`: `together`
    (both sides of a key in one instance) or `biclique` (as in the papers: one half of the instances stores
    left rows and joins right ones, the other half the opposite). `threshold`: how uneven the load may
    become before something moves; the paper's own value unless given (`fastjoin`: heaviest / lightest, 2.2;
    `ls-stream`: relative deviation, 1.0). `scale`: the least and the largest number of instances, between
    which it follows the load.
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
                    explain(
                        f"Balance does not know {name}={getattr(self, name)!r}",
                        do=f"Use one of {', '.join(known)}",
                    )
                )
        if self.threshold is not None and self.strategy not in ("fastjoin", "ls-stream"):
            raise FlowError(
                explain(
                    f"The strategy {self.strategy!r} has no threshold",
                    got=f"threshold={self.threshold}",
                    do="Leave it out, or choose fastjoin or ls-stream",
                )
            )
        if self.weights is not None and self.strategy != "ls-stream":
            raise FlowError(
                explain(
                    f"The strategy {self.strategy!r} knows no weights of instances",
                    got=f"weights={self.weights}",
                    why="They would be ignored",
                    do="Leave them out (auto measures what instances take), or choose ls-stream",
                )
            )
        if self.scale is not None and not 1 <= self.scale[0] <= self.scale[1]:
            raise FlowError(
                explain(
                    "The bounds for the number of instances are the wrong way round or below one",
                    got=self.scale,
                    do="Give scale=(least, largest) with 1 <= least <= largest",
                )
            )
