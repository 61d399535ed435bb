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

JOIN_POLICIES = ("auto", "selective", "adaptive", "partial", "random", "window-reduction", "none")
RATE_RULES = ("model", "paper")
SIFT_POLICIES = ("auto", "flexp", "dedp", "qedp", "ugrid", "volume", "count", "random", "none")
WINDOW_POLICIES = ("auto", "none")
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
    `window`: which share of windows is dropped, of outputs with a `max_gap`: `auto` (as many as it takes),
    `none`, or a share that is dropped always, in 0 … 1.
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

    def __post_init__(self) -> None:
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
        share = isinstance(self.window, (int, float)) and not isinstance(self.window, bool)
        if self.window not in WINDOW_POLICIES and not (share and 0 <= float(self.window) <= 1):
            raise FlowError(
                explain(
                    f"Shed does not know window={self.window!r}",
                    do=f"Use one of {', '.join(WINDOW_POLICIES)}, or the share of windows to drop, in 0 … 1",
                )
            )
        if not 0 < self.sampling <= 1:
            raise FlowError(
                explain("The sample of Shed must be some of the rows", got=self.sampling, do="Give 0 … 1")
            )
