"""The simulator against recorded runs of Spark: the same rows and plans, predicted and measured batch times.

    recorded run ─▶ rows by stream and second ─┐
                    plan of each batch ────────┴─▶ operators.py ─▶ rows, pairs, matches of each batch
    another run  ─▶ constants of the machine ─────────────────────────────┴─▶ seconds of each batch

What is predicted: how many pairs and matches follow from rows and plan, and how the processor time of the
join and the time of the batch follow from these. What is not: the constants of the machine (seconds per
batch, row, pair and match), which are fitted to another recording of the same flow, and arrivals and plans,
which are taken as they were. Batches of the cold process are left out: they take what Java's compiler takes.

The time of a batch is that of the machine and of all else that runs on it, so recordings of a shared machine
say little about it; work and processor time stay comparable.

Guarantee: a function of the recordings, without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tidegate_lab.simulate.goal.arrivals import CELLS, GRAIN, SECONDS
from tidegate_lab.simulate.goal.operators import JoinShed, JoinState, SimulatedJoin

#: Seconds by which the first rows of a recording may precede its first batch.
_EARLIER = 20.0
#: The depth to which rows explore by default (`control/actuators/selective.py`).
_DEPTH = 0.1
#: Parts of a batch whose seconds are fitted.
PARTS = ("batch", "row", "pair", "match", "window row")
#: What a recording says of a batch's time, and the parts that it consists of.
SECONDS_OF, CPU_OF_JOIN = "seconds", "cpu_seconds"
_PARTS_OF = {SECONDS_OF: [0, 1, 2, 3, 4], CPU_OF_JOIN: [0, 1, 2]}
#: Rounds of reweighting, and the relative error from which on a batch counts less.
_ROUNDS, _FAR = 5, 0.1


@dataclass(frozen=True)
class RecordedBatch:
    """One batch as it ran."""

    #: Rows of the left and the right stream, and the newest time of each so far, in seconds of the run.
    rows: tuple[int, int]
    newest: tuple[float, float]
    #: From its begin to its commit.
    seconds: float
    cold: bool
    #: The plan of the join.
    shares: tuple[tuple[float, ...], tuple[float, ...]]
    explore_share: float
    keep_share: float
    #: Rows that reached the window aggregate.
    window_rows: int = 0
    #: Matches of the join as its tasks counted them, and their processor time.
    matches: int = 0
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Recorded:
    """One run of one flow: a join of two streams, and perhaps a window aggregate over one of them."""

    flow: str
    window_seconds: float
    keys: int
    #: Matches per pair with equal keys.
    density: float
    batches: tuple[RecordedBatch, ...]

    @classmethod
    def read(cls, path: Path) -> Recorded:
        raw = json.loads(path.read_text(encoding="utf-8"))
        batches = tuple(
            RecordedBatch(
                **{
                    **one,
                    "rows": tuple(one["rows"]),
                    "newest": tuple(one["newest"]),
                    "shares": tuple(tuple(shares) for shares in one["shares"]),
                }
            )
            for one in raw["batches"]
        )
        return cls(raw["flow"], raw["window_seconds"], raw["keys"], raw["density"], batches)


def recorded_batches(telemetry: Sequence[Mapping[str, Any]], join: str) -> list[dict[str, Any]]:
    """What a recording keeps of the telemetry of a checkpoint: batches with rows, in seconds of the run."""
    began = None
    found = []
    for one in telemetry:
        texts = [one["watermarks"][name] for name in "ab"]
        if None in texts or not sum(one["offered"].values()):
            continue
        times = [datetime.fromisoformat(text).timestamp() for text in texts]
        began = min(times) - _EARLIER if began is None else began
        shed, mine = one["shed"][join], [each for each in one["operators"] if each["operator"] == join]
        others = [each for each in one["operators"] if each["operator"] != join]
        found.append(
            {
                "rows": [one["offered"][name] for name in "ab"],
                "newest": [round(time - began, 3) for time in times],
                "seconds": round(one["duration_seconds"], 4),
                "cold": one["cold"],
                "shares": [[round(share, 4) for share in shares] for shares in shed["shares"]],
                "explore_share": shed["explore_share"],
                "keep_share": shed["keep_share"],
                "window_rows": sum(sum(each["offered"]) - sum(each["dropped"]) for each in others),
                "matches": sum(each["matches"] for each in mine),
                "cpu_seconds": round(sum(each["cpu_seconds"] for each in mine), 4),
            }
        )
    return found


def work(run: Recorded) -> NDArray[np.float64]:
    """By batch: one, and the rows, pairs, matches and window rows that the simulator foresees."""
    rows = {name: _arrived(run, side) for side, name in enumerate("ab")}
    join = SimulatedJoin(
        "joined",
        ("a", "b"),
        run.window_seconds,
        ((0.5, 1.0), (0.5, 1.0)),
        everywhere=1e6,  # a key says nothing about the age of its partners
        moves=0.0,
        key_share=1 / run.keys,
        density=run.density,
        costs=(0.0, 0.0, 0.0),
        by_state=0.0,
        usual=1.0,
    )
    state = JoinState(join, rows)
    found, taken = [], [0, 0]
    for batch in run.batches:
        spans = [(taken[side], _cell(batch.newest[side])) for side in (0, 1)]
        left, right = (np.array(shares) for shares in batch.shares)
        shed = JoinShed((left, right), batch.explore_share, _DEPTH, batch.keep_share)
        did = state.batch(shed, spans, 0.0)
        taken = [end for _, end in spans]
        assert did.chosen is not None
        assert did.explored is not None
        pairs = float((did.chosen + did.explored).sum())
        entered = batch.keep_share * sum(batch.rows)
        found.append([1.0, entered, pairs, did.found, float(batch.window_rows)])
    return np.array(found)


def _cell(seconds: float) -> int:
    return min(CELLS, max(0, round(seconds / GRAIN)))


def _arrived(run: Recorded, side: int) -> NDArray[np.int64]:
    """Rows by the end of each cell: those of a batch spread evenly over the time by which it advanced."""
    first, last = run.batches[0], run.batches[-1]
    rate = sum(batch.rows[side] for batch in run.batches[1:]) / (last.newest[side] - first.newest[side])
    # The first rows came over an unknown time: at the mean rate of the others.
    times, counts = [max(0.0, first.newest[side] - first.rows[side] / rate)], [0.0]
    for batch in run.batches:
        times.append(max(times[-1] + GRAIN, batch.newest[side]))
        counts.append(counts[-1] + batch.rows[side])
    grid = np.linspace(0.0, SECONDS, CELLS + 1)
    return np.interp(grid, times, counts).astype(np.int64)


def fitted(runs: Sequence[Recorded], what: str = SECONDS_OF) -> NDArray[np.float64]:
    """Seconds per batch, row, pair, match and window row: least relative errors, outliers counting less."""
    parts = np.concatenate([work(run)[_warm(run)] for run in runs])[:, _PARTS_OF[what]]
    seconds = np.concatenate([_measured(run, what)[_warm(run)] for run in runs])
    weights = np.ones(seconds.size)
    found = np.zeros(parts.shape[1])
    for _ in range(_ROUNDS):
        found, _ = nnls(parts * (weights / seconds)[:, None], weights)
        off = np.abs(parts @ found / seconds - 1)
        weights = np.sqrt(np.minimum(1.0, _FAR / np.maximum(off, 1e-9)))
    costs = np.zeros(len(PARTS))
    costs[_PARTS_OF[what]] = found
    return costs


def errors(run: Recorded, costs: NDArray[np.float64], what: str = SECONDS_OF) -> NDArray[np.float64]:
    """By warm batch: predicted over measured seconds, less 1."""
    warm = _warm(run)
    return np.asarray((work(run)[warm] @ costs) / _measured(run, what)[warm] - 1)


def match_errors(run: Recorded) -> NDArray[np.float64]:
    """By warm batch: foreseen over counted matches, less 1."""
    warm = _warm(run)
    counted = np.array([batch.matches for batch in run.batches])[warm]
    return np.asarray(work(run)[warm, PARTS.index("match")] / np.maximum(counted, 1) - 1)


def _measured(run: Recorded, what: str) -> NDArray[np.float64]:
    return np.array([getattr(batch, what) for batch in run.batches])


def _warm(run: Recorded) -> NDArray[np.bool_]:
    return np.array([not batch.cold for batch in run.batches])
