"""How many rows the next batch will have: measured at its sources, never assumed.

    batch b     [ rows since the trigger before ]
    batch b+1                                    [ rate · time until it begins ] + what b left waiting

Rows come at the highest rate of the last few batches: a burst is not over because one batch was calm, and
input that swings from batch to batch is planned for at its top. After a fall the old rate is forgotten within
as many batches.

A source that takes everything has no backlog but the rows of the next batch itself; where a source is read in
portions, the rows that it still holds wait (`waiting`), and are as many seconds behind as they take to come.
With triggers the next batch begins at the trigger or, if that is later, when this one is over; back to back
(`trigger_seconds` 0) it always begins when this one is over.

Guarantee: a function of what was observed; `snapshot` → `restore` gives the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Batches whose highest rate is expected.
_KEPT = 3
#: Two batches begin at least so far apart, whatever a clock says.
_SECONDS_LEAST = 1e-3


@dataclass(frozen=True)
class Expected:
    """Rows of the next batch, what that is of the last one's, and the seconds that sources are behind."""

    rows: float
    growth: float
    behind_seconds: float


class Arrivals:
    """Rows a second, over all streams."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self._began_us: int | None = None

    def observe(
        self, rows: int, now_us: int, busy_seconds: float, trigger_seconds: float, waiting: int = 0
    ) -> Expected:
        """After a batch that was planned at `now_us`; `waiting`: rows that are known to be left at sources."""
        interval = max(trigger_seconds, busy_seconds, _SECONDS_LEAST)
        first = self._began_us is None
        since = interval if self._began_us is None else (now_us - self._began_us) / 1e6
        rate = rows / max(since, _SECONDS_LEAST)
        highest = max([*self._rates, rate])
        # The first batch has what gathered before it, nobody knows since when: no rate to remember.
        self._rates = [] if first else [*self._rates, rate][-_KEPT + 1 :]
        self._began_us = now_us
        coming = highest * interval
        # A source that is read in portions gives no larger one next time.
        expected = min(coming + waiting, max(coming, rows)) if waiting else coming
        late = max(0.0, busy_seconds - trigger_seconds) if trigger_seconds else 0.0
        behind = late + (waiting / highest if highest else 0.0)
        return Expected(expected, expected / rows if rows else 0.0, behind)

    def snapshot(self) -> dict[str, Any]:
        return {"rates": self._rates, "began_us": self._began_us}

    @classmethod
    def restore(cls, raw: Mapping[str, Any]) -> Arrivals:
        restored = cls()
        restored._rates, restored._began_us = list(raw["rates"]), raw["began_us"]
        return restored
