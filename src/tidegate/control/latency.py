"""Latency: from the availability of a row to the publishing of the batch that processes it.

    available ────────── waits at the source ──────────▶ trigger ── batch runs ──▶ published
       └─────────────────────────────── latency of the row ──────────────────────────┘

A row is available at its `available_at`, or else when its file was modified, or else at the start of the
trigger. The *basis* says which; "trigger" knows nothing of rows that waited at the source. A window's own
length does not count. A batch is published when its manifest is committed and its files have their names.
Receipts and the goal loop come before the manifest, so their latency ends with the sinks. If an output holds
files back (`commit_every`), all rows count in the batch that publishes them; the others report no latency.

The rows of a batch are described by few points: moments with weights. All streams are pooled, each with its
number of rows. Guarantee of `latency_of`: p50, p95 and the largest latency are those of the weighted points,
where a quantile is the smallest latency that at least this share of the rows does not exceed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import explain
from tidegate.model.json_values import Metrics
from tidegate.model.progress import ROWS_OVERDUE, LatencyBasis, LatencyProgress

#: From the strongest to the weakest.
BASES: tuple[LatencyBasis, ...] = ("record", "file", "trigger")
#: Steps between the quantiles that describe the `available_at` of the rows of a batch.
QUANTILE_STEPS = 100


@dataclass(frozen=True)
class Availability:
    """When the rows of one stream became available: moments in microseconds, and their weights."""

    basis: LatencyBasis
    rows: int
    moments_us: tuple[int, ...] = ()
    #: Rows, bytes or shares: only their proportion matters.
    weights: tuple[float, ...] = ()

    @classmethod
    def at(cls, basis: LatencyBasis, rows: int, moment_us: int) -> Availability:
        """All rows at one moment."""
        return cls(basis, rows, (moment_us,), (1.0,)) if rows else cls(basis, 0)

    @classmethod
    def of_quantiles(cls, rows: int, moments_us: Sequence[int]) -> Availability:
        """From equally spaced quantiles, the smallest and the largest moment included.

        The rows between two quantiles are divided between both. So p50, p95 and the largest latency are
        exact, and the share of overdue rows is exact to half a step.
        """
        ends = (0.5,) if len(moments_us) > 1 else ()
        inner = (1.0,) * (len(moments_us) - 2 * len(ends))
        return cls("record", rows, tuple(moments_us), (*ends, *inner, *ends))

    @property
    def shares(self) -> NDArray[np.float64]:
        """The rows at each moment; equal shares if no weight is known."""
        weights = np.array(self.weights, np.float64)
        total = weights.sum()
        return self.rows * (weights / total if total > 0 else np.full(weights.shape, 1 / weights.size))


def latency_of(
    streams: Iterable[Availability], published_us: int, goal_seconds: float | None
) -> LatencyProgress:
    """The latency of the rows of all streams of a batch; its basis is the weakest of those with rows."""
    streams = list(streams)
    filled = [one for one in streams if one.rows and one.moments_us]
    given = {one.basis for one in filled or streams}
    basis: LatencyBasis = next((one for one in reversed(BASES) if one in given), "trigger")
    if not filled:
        return LatencyProgress(goal_seconds, None, None, None, None, basis)
    moments = np.concatenate([np.array(one.moments_us, np.int64) for one in filled])
    rows = np.concatenate([one.shares for one in filled])
    # A clock that is ahead of ours would give a negative latency.
    waits = np.maximum(published_us - moments, 0) / 1e6
    order = np.argsort(waits, kind="stable")
    waits, upto = waits[order], np.cumsum(rows[order])
    overdue = None
    if goal_seconds is not None:
        on_time = np.searchsorted(waits, goal_seconds, side="right")
        overdue = float(np.clip(1 - (upto[on_time - 1] if on_time else 0.0) / upto[-1], 0.0, 1.0))
    # Sums of shares are not exact: without a little slack a quantile could be one point too large.
    p50, p95 = (float(waits[np.searchsorted(upto, share * upto[-1] * (1 - 1e-12))]) for share in (0.5, 0.95))
    return LatencyProgress(goal_seconds, p50, p95, float(waits[-1]), overdue, basis)


def p95_of_batches(batches: Iterable[tuple[LatencyProgress, int]]) -> float | None:
    """What 95 % of the rows of several batches did not exceed, given their latencies and rows.

    An upper bound, because of a batch only p50, p95 and the largest latency are known: half of its rows are
    counted at each of the first two, but for the last twentieth, which is counted at the largest.
    """
    waits, rows = [], []
    for one, count in batches:
        if one.p50_seconds is not None and count:
            waits += [one.p50_seconds, one.p95_seconds or 0.0, one.max_seconds or 0.0]
            rows += [0.5 * count, 0.45 * count, 0.05 * count]
    if not waits:
        return None
    order = np.argsort(waits, kind="stable")
    upto = np.cumsum(np.array(rows)[order])
    return float(np.array(waits)[order][np.searchsorted(upto, 0.95 * upto[-1] * (1 - 1e-12))])


def is_overdue(latency: LatencyProgress) -> bool:
    """Whether more than one row in twenty took longer than the goal."""
    goal, p95 = latency.goal_seconds, latency.p95_seconds
    return goal is not None and p95 is not None and p95 > goal


def overdue_warnings(latency: LatencyProgress | None, busy_seconds: float) -> list[Metrics]:
    """A warning about rows that were measured to be overdue, from a batch that took `busy_seconds`.

    None where it is not known when rows became available: a long batch has warnings of its own.
    """
    if latency is None or not latency.is_measured or not is_overdue(latency):
        return []
    p95 = latency.p95_seconds or 0.0
    waited = max(0.0, p95 - busy_seconds)
    message = explain(
        "Rows were published after the goal",
        got=f"p95 {p95:.3f} s of {latency.goal_seconds:.3f} s, by {_CLOCKS[latency.basis]}",
        why=f"The batch took {busy_seconds:.3f} s; before it they waited {waited:.3f} s at the source",
        do="Use a shorter trigger, give a longer latency, or run the query on more cores"
        if waited > busy_seconds
        else "Give a longer latency, or run the query on more cores",
    )
    return [{"code": ROWS_OVERDUE, "message": message}]


_CLOCKS = {"record": "their available_at", "file": "the modification time of their files"}
