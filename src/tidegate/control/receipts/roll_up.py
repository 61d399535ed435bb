"""Adds up receipts: the lines of batches to one of a minute, these to one of an hour, all to a total.

    receipts of batches ─▶ combined ─▶ line of a minute ─▶ combined ─▶ line of an hour ─▶ combined ─▶ total

What is added up has the names of `model/receipts.Receipt`, so it can be read as it is, and besides whatever
is needed to add it up further:

    rows, windows, pairs   sums; unknown (None) as soon as one part is
    mode, complete         the worst mode; complete if every part is
    debt, warnings         those of the last part that has some
    recall                 `pooled`: the sum of independent estimates and their variances (`recall.pooled`)
                           of all parts with exploring rows; no recall if one of these has no estimate
    loss ratio             from recall, else the share of missing windows of parts that know how many closed
    latency                `spread`: rows by latency, in steps of 2 %; a batch stands for a hundred latencies
    would                  of batches under a goal that only observes: sums; losses as a share of results
    load                   durations add up; of the state, the last and the largest

Guarantee: it does not matter in which order and how often parts are combined, as long as they stay in order:
whole numbers, modes and warnings are equal, and others equal to rounding. The percentiles of one batch are
its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.control.receipts.ledger import WINDOW_DROP
from tidegate.control.receipts.recall import Estimate, pooled
from tidegate.control.receipts.receipts import ESTIMATED, EXACT, NO_SAMPLE, OUTPUT, SUBSET
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.json_values import Json
from tidegate.model.receipts import ReceiptLine, batches_of, began

Row = Mapping[str, Any]

_SUMS = (
    *(f"rows_{of}" for of in ("offered", "processed", "shed", "late", "rejected", "filtered")),
    *("rows_evicted", "rows_unexplained"),
)
_PAIRS = ("debt_pairs", "repaired_pairs", "written_off_pairs")
_SECONDS = ("p50_seconds", "p95_seconds", "max_seconds", "overdue_ratio")
#: For percentiles of several batches a batch stands for a hundred latencies, at these deviations from its
#: median; and the deviations of what is known of it: the lower end, the median, p95, the slowest row.
_DEVIATIONS = np.array([NormalDist().inv_cdf((n + 0.5) / 100) for n in range(100)])
_KNOWN = (-1.645, 0.0, 1.645, 3.0)
#: Latencies within a step of 2 % are told apart by their mean only; shorter ones than this not at all.
_STEP, _SHORTEST = log(1.02), 1e-6


def combined(lines: Sequence[ReceiptLine]) -> Json:
    """One line for all batches of some lines, which are in order."""
    by_name: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in lines:
        for row in line["rows"]:
            by_name[row["kind"], row["name"]].append(row)
    return {
        "first_batch_id": batches_of(lines[0])[0],
        "last_batch_id": batches_of(lines[-1])[1],
        "batches": sum(line.get("batches", 1) for line in lines),
        "started_at": began(lines[0]),
        "first_started_at": began(lines[0]),
        "latency": _latency(lines),
        "load": _load([line["load"] for line in lines if line.get("load")]),
        "rows": [{"kind": kind, "name": name, **_row(rows)} for (kind, name), rows in by_name.items()],
    }


def _row(rows: Sequence[Row]) -> Json:
    """One stream or output."""
    modes = {row["mode"] for row in rows}
    reasons = dict.fromkeys(reason for row in rows for reason in row["shed_reasons"])
    found: Json = {
        "mode": ESTIMATED if ESTIMATED in modes else SUBSET if SUBSET in modes else EXACT,
        "complete": all(row["complete"] for row in rows),
        **{name: sum(row.get(name) or 0 for row in rows) for name in _SUMS},
        "shed_reasons": {one: sum(row["shed_reasons"].get(one, 0) for row in rows) for one in reasons},
        # Batches of a long burst repeat the same warning: the last one is enough.
        "warnings": next((list(one) for row in reversed(rows) if (one := row.get("warnings"))), []),
    }
    if rows[-1]["kind"] == OUTPUT:
        return found | _output(rows, found["mode"])
    lost = found["rows_shed"] / found["rows_offered"] if found["rows_offered"] else 0.0
    return found | {"loss_ratio": lost, "would_rows_shed": _sum_of(rows, "would_rows_shed")}


def _output(rows: Sequence[Row], mode: str) -> Json:
    """What outputs have besides."""
    written = [row["rows_written"] for row in rows]
    found: Json = {
        "rows_written": None if None in written else sum(written),
        "windows_missing": sum(row["windows_missing"] for row in rows),
        "windows_closed": _sum_of(rows, "windows_closed"),
        "missing_windows": _joined(run for row in rows for run in row["missing_windows"]),
        "loss_reasons": sorted({one for row in rows for one in row["loss_reasons"]}),
        "pooled": _pooled([_parts(row) for row in rows]),
    }
    found |= _recall(found["pooled"], mode)
    found |= _would(rows)
    return found | {"loss_ratio": _loss_ratio(found, mode), **_repairs(rows)}


def _would(rows: Sequence[Row]) -> Json:
    """What would have been left out in batches under a goal that only observed; empty without any."""
    seen = [row for row in rows if row.get("would_lost") is not None]
    if not seen:
        return {}
    lost, of = (sum(parts) for parts in zip(*(row["would_lost"] for row in seen), strict=True))
    ratio = lost / of if of else 0.0
    recalled = any(row["would_recall"] is not None for row in seen)
    return {
        "would_pairs_skipped": _sum_of(seen, "would_pairs_skipped"),
        "would_windows_missing": sum(row["would_windows_missing"] for row in seen),
        "would_loss_ratio": ratio,
        "would_recall": 1 - ratio if recalled else None,
        "would_lost": [lost, of],
    }


def _sum_of(rows: Sequence[Row], name: str) -> int | None:
    """The sum of the values that are known; None if none is."""
    known = [row[name] for row in rows if row.get(name) is not None]
    return sum(known) if known else None


def _joined(runs: Iterable[Sequence[int]]) -> list[list[int]]:
    """Runs of windows, of which those that continue the one before are part of it."""
    found: list[list[int]] = []
    for first, last, slide in runs:
        if found and found[-1][2] == slide and found[-1][1] + slide == first:
            found[-1][1] = last
        else:
            found.append([first, last, slide])
    return found


def _parts(row: Row) -> Row:
    """What recall and loss ratio of one part are made of."""
    if "pooled" in row:
        known: Row = row["pooled"]
        return known
    sampled = NO_SAMPLE not in row["loss_reasons"]
    return {
        "estimate": row.get("estimate") if sampled else None,
        # Parts with exploring rows: whether one has no estimate, and whether one is not exact.
        "unknown": sampled and "estimate" not in row,
        "inexact": sampled and row["mode"] != EXACT,
        # Of parts that know how many windows closed.
        "missing": row["windows_missing"] if row.get("windows_closed") else 0,
    }


def _pooled(parts: Sequence[Row]) -> Json:
    estimates = [from_plain(Estimate, one["estimate"]) for one in parts if one["estimate"] is not None]
    return {
        "estimate": to_plain(pooled(estimates)) if estimates else None,
        "unknown": any(one["unknown"] for one in parts),
        "inexact": any(one["inexact"] for one in parts),
        "missing": sum(one["missing"] for one in parts),
    }


def _recall(known: Row, mode: str) -> Json:
    if mode == EXACT:
        return {"recall": 1.0, "recall_low": 1.0, "recall_high": 1.0}
    if known["unknown"] or not known["inexact"]:
        return {}
    whole = from_plain(Estimate, known["estimate"])
    low, high = whole.interval
    return {"recall": whole.recall, "recall_low": low, "recall_high": high}


def _loss_ratio(found: Row, mode: str) -> float | None:
    if mode == EXACT:
        return 0.0
    if found.get("recall") is not None:
        return 1.0 - float(found["recall"])
    if set(found["loss_reasons"]) - {WINDOW_DROP} or not found["windows_closed"]:
        return None
    return float(found["pooled"]["missing"] / found["windows_closed"])


def _repairs(rows: Sequence[Row]) -> Json:
    """The final debt, and all that was repaired and written off; empty without repair."""
    repairs = [row for row in rows if row.get("debt_pairs") is not None]
    if not repairs:
        return {}
    return {
        "debt_pairs": repairs[-1]["debt_pairs"],
        **{of: sum(row[of] for row in repairs) for of in _PAIRS[1:]},
    }


def _load(loads: Sequence[Row]) -> Json | None:
    """How long batches took, and the size of the state."""
    if not loads:
        return None
    last = loads[-1]
    return {
        "duration_seconds": sum(one["duration_seconds"] for one in loads),
        "duration_seconds_max": max(
            one.get("duration_seconds_max", one["duration_seconds"]) for one in loads
        ),
        "state_rows": last["state_rows"],
        "state_bytes": last["state_bytes"],
        "state_bytes_max": max(one.get("state_bytes_max", one["state_bytes"]) for one in loads),
    }


def _latency(lines: Sequence[ReceiptLine]) -> Json | None:
    """The latency of all rows; None without rows."""
    whole = [(line["latency"], line) for line in lines if _is_known(line["latency"])]
    if not whole:
        return None
    batches = sum(one.get("batches", 1) for one, _ in whole)
    if len(whole) == 1:
        one, line = whole[0]
        weight = one.get("rows") or _rows_of(line)
        return {
            **one,
            "rows": weight,
            "batches": batches,
            "spread": one.get("spread") or _spread([(one, weight)]),
        }
    raw = [(one, _rows_of(line)) for one, line in whole if "spread" not in one]
    spread = _added([_spread(raw), *(one["spread"] for one, _ in whole if "spread" in one)])
    weights = [one.get("rows") or _rows_of(line) for one, line in whole]
    most = max(one["max_seconds"] for one, _ in whole)
    overdue = [one["overdue_ratio"] for one, _ in whole]
    p50, p95 = (min(most, _percentile(spread, share)) for share in (0.5, 0.95))
    return {
        "rows": sum(weights),
        "batches": batches,
        "p50_seconds": p50,
        "p95_seconds": p95,
        "max_seconds": most,
        "overdue_ratio": None if None in overdue else float(np.average(overdue, weights=weights)),
        "spread": spread,
    }


def _is_known(latency: Row | None) -> bool:
    return latency is not None and latency["p50_seconds"] is not None


def _rows_of(line: ReceiptLine) -> int:
    """The rows that the latency of a batch counts for."""
    rows: int = sum(row["rows_offered"] for row in line["rows"] if row["kind"] != OUTPUT)
    return max(1, rows)


def _spread(batches: Sequence[tuple[Row, int]]) -> list[list[float]]:
    """Rows by latency: steps, hundredths of rows in each, and the sum of their latencies."""
    if not batches:
        return []
    weights = np.array([rows for _, rows in batches], np.int64)
    p50, p95, most = (np.array([one[name] for one, _ in batches], float) for name in _SECONDS[:3])
    # Below the median a batch is taken to be as wide as above it.
    knots = np.stack((np.maximum(0.0, 2 * p50 - p95), p50, p95, most), axis=1)
    points = np.concatenate([np.interp(_DEVIATIONS, _KNOWN, one) for one in knots])
    return _by_step(
        points, np.repeat(weights, _DEVIATIONS.size), points * np.repeat(weights, _DEVIATIONS.size)
    )


def _by_step(
    points: NDArray[np.float64], weights: NDArray[np.int64], sums: NDArray[np.float64]
) -> list[list[float]]:
    steps = np.floor(np.log(np.maximum(points, _SHORTEST)) / _STEP).astype(np.int64)
    found, place = np.unique(steps, return_inverse=True)
    counts, totals = np.zeros(found.size, np.int64), np.zeros(found.size)
    np.add.at(counts, place, weights)
    np.add.at(totals, place, sums)
    return [
        [step, count, total]
        for step, count, total in zip(found.tolist(), counts.tolist(), totals.tolist(), strict=True)
    ]


def _added(spreads: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    sums: dict[float, list[float]] = {}
    for spread in spreads:
        for step, count, total in spread:
            one = sums.setdefault(step, [step, 0, 0.0])
            one[1] += count
            one[2] += total
    return [sums[step] for step in sorted(sums)]


def _percentile(spread: Sequence[Sequence[float]], share: float) -> float:
    counts = np.array([count for _, count, _ in spread])
    reached = np.cumsum(counts) / counts.sum()
    _, count, total = spread[int(np.searchsorted(reached, share - 1e-9))]
    return total / count
