"""What the user wants when there is more work than time: a goal, and what may be left out to meet it.

    tg.start(…, trigger="1 second", goal=tg.Goal(latency="2 seconds"))                    chooses by itself
    tg.start(…, goal=tg.Goal(latency="2 seconds"), shed=tg.Shed(join="partial"))          says how

Without a goal nothing is ever left out, however long a batch takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.durations import duration_us
from tidegate.errors import FlowError, explain
from tidegate.sizes import size_bytes

JOIN_POLICIES = ("auto", "selective", "adaptive", "partial", "random", "window-reduction", "none")
RATE_RULES = ("model", "paper")
#: Policies that store every row: only what they leave out can be made up for.
KEEPING_POLICIES = ("auto", "selective", "adaptive", "partial", "none")
WHEN_IDLE, AT_THE_END = "when idle", "at the end"
SIFT_POLICIES = ("auto", "flexp", "dedp", "qedp", "ugrid", "volume", "count", "random", "none")


REGIONS_MAX = 10_000


@dataclass(frozen=True)
class Goal:
    """Results are to be committed at most `latency` after their rows were available at the source."""

    latency: str
    #: To come: the share of results that may be lost, the bytes that may be stored, weights of outputs.
    loss_max: float | None = None
    state_max: str | None = None
    priority: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        later = [name for name in ("loss_max", "state_max", "priority") if getattr(self, name) is not None]
        if later:
            raise FlowError(
                explain(
                    f"This version knows no {', '.join(later)} of a goal",
                    why="It would be ignored",
                    do="Give a latency alone",
                )
            )
        if self.latency_us == 0:
            raise FlowError(
                explain(
                    "The latency of a goal is zero",
                    got=repr(self.latency),
                    why="Every batch takes some time",
                    do="Give a duration such as '2 seconds'",
                )
            )

    @property
    def latency_us(self) -> int:
        return duration_us(self.latency, "latency of the goal")

    def batch_seconds(self, trigger_us: int) -> float:
        """How long a batch may take from one trigger to its commit.

        A row that just missed a batch waits for the next one to begin, which is when the trigger comes or, if
        that is later, when the batch is over; then it takes part in one whole batch:
        max(batch, trigger) + batch = latency.
        """
        if trigger_us >= self.latency_us:
            raise FlowError(
                explain(
                    "The goal cannot be met: batches begin further apart than results may take",
                    got=f"a trigger of {trigger_us / 1e6:g} s, a latency of {self.latency_us / 1e6:g} s",
                    do="Use a trigger of half the latency or less, or trigger=None",
                )
            )
        return min(self.latency_us / 2, self.latency_us - trigger_us) / 1e6


@dataclass(frozen=True)
class Shed:
    """How work is left out. The defaults choose by themselves.

    `join`: `auto` (as `selective`), `selective` (the most productive parts of both windows, learnt while
    running), `adaptive` (the paper's algorithms; see `time_correlation`, `direction` and `sampling`),
    `partial` (the newest part), `random` (rows are dropped before the join), `window-reduction` (windows
    become shorter), `none`.
    `rate`: how much is left out follows from learnt costs (`model`) or is felt for (`paper`, algorithm 1).
    `utility`: an expression over the joined row, what a pair is worth; otherwise all count the same.
    `sift`: how the data space in front of a match is cut into regions: `auto` (ours), `flexp` (QDPart),
    `dedp`, `qedp`, `ugrid` (the paper's others), `volume`, `count`, `random` (rows are all alike), `none`.
    `regions`: how many there are at most. `fairness`: by how much the dropped shares of two regions that
    queries ask about may differ: 0 all lose the same, 1 whatever serves all queries together best.
    `repair`: what joins leave out is made up for in spare time (`when idle`), when the query stops (`at the
    end`), or never (None). It takes a policy that keeps rows, and is done for joins whose results go straight
    to outputs; with it only those leave out work. Their rows get a column `repaired_batch`: null in rows that
    came in time, otherwise the batch they should have come in. With "available now" every batch pays what it
    owes before it ends. `repair_max`: bytes that may outlive their windows for it; beyond that the oldest
    debts are given up, and told.
    """

    join: str = "auto"
    utility: Any = None
    rate: str = "model"
    sift: str = "auto"
    regions: int = 32
    fairness: float = 0.5
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
                    explain(
                        f"Shed does not know {name}={getattr(self, name)!r}",
                        do=f"Use one of {', '.join(known)}",
                    )
                )
        if not isinstance(self.regions, int) or not 1 <= self.regions <= REGIONS_MAX:
            raise FlowError(
                explain(
                    "A sifter has some regions, and not too many to be sent around",
                    got=f"regions={self.regions!r}",
                    do=f"Give a whole number from 1 to {REGIONS_MAX}; 16 to 100 are plenty",
                )
            )
        if not 0 <= self.fairness <= 1:
            raise FlowError(
                explain("Fairness is a difference of shares", got=self.fairness, do="Give a number in 0 … 1")
            )
        if not 0 < self.sampling <= 1:
            raise FlowError(
                explain("The sample of Shed must be some of the rows", got=self.sampling, do="Give 0 … 1")
            )

    def _check_repair(self) -> None:
        if self.repair not in (None, WHEN_IDLE, AT_THE_END):
            raise FlowError(
                explain(
                    f"Shed does not know repair={self.repair!r}",
                    do=f"Use {WHEN_IDLE!r}, {AT_THE_END!r} or None",
                )
            )
        if self.repair is not None and self.join not in KEEPING_POLICIES:
            raise FlowError(
                explain(
                    "What this policy leaves out cannot be repaired",
                    got=f"join={self.join!r}, repair={self.repair!r}",
                    why="It gives up rows, and what is not stored cannot be looked at later",
                    do="Use join='selective', 'adaptive' or 'partial', or repair=None",
                )
            )
        _ = self.repair_bytes  # said now, not in the first rush
