"""Receipts as tables: a row per batch and stream or output, and the sums over all batches.

    batch, kind, name, mode         kind is `stream` or `output`; mode EXACT, SUBSET or ESTIMATED offered =
    processed + shed + late + rejected        (`unexplained` is the difference, and 0) shed_by
    the rows that were shed, by reason filtered                        the processed rows that the user's
    stateless steps removed warnings                        of a stream: messages about rows dropped because
    other shedding was not enough given_up                        rows of earlier batches that window
    reduction removed from the state readers                         the same by reader, for a stream that has
    several emitted                         rows written; None where only the sink knows recall, recall_low,
    recall_high the share of the true result that was found, with a 95 % interval; None
                                    without a sound estimate, and then `why` names what was shed
    by_lag                          the same by the time between the rows of a pair
    debt, paid, forgiven            joins with repair: comparisons in debt after the batch, repaired by it and
                                    written off by it; None without repair
    missing                         windows: runs of [first start, last start, slide] in microseconds

`control/receipts/receipts.py` defines what each of them counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.control.receipts.recall import Estimate, pooled
from tidegate.control.receipts.receipts import ESTIMATED, EXACT, NO_SAMPLE, OUTPUT, SUBSET
from tidegate.model.codec import from_plain
from tidegate.model.json_values import Metrics

Receipt = Mapping[str, Any]
Row = Metrics

_ADDED_UP = ("offered", "processed", "shed", "late", "rejected", "filtered", "given_up", "unexplained")
COLUMNS = (
    "batch",
    "kind",
    "name",
    "mode",
    "offered",
    "processed",
    "shed",
    "shed_by",
    "late",
    "rejected",
    "filtered",
    "given_up",
    "unexplained",
    "warnings",
    "readers",
    "emitted",
    "recall",
    "recall_low",
    "recall_high",
    "by_lag",
    "debt",
    "paid",
    "forgiven",
    "missing",
    "why",
)
_OF_REPAIR = ("debt", "paid", "forgiven")


def receipt_rows(receipts: Sequence[Receipt]) -> list[Row]:
    """One row per batch and stream or output, all with all columns."""
    return [
        {name: _empty(name) if (value := given.get(name)) is None else value for name in COLUMNS}
        for receipt in receipts
        for row in receipt["rows"]
        for given in ({"batch": receipt["batch"], **row},)
    ]


def totals(receipts: Sequence[Receipt]) -> list[Row]:
    """One row for each stream and output over all batches; `batch` is the last one.

    Estimates of batches and their variances are summed, so the interval is that of the recall over all
    batches. Batches without an exploration sample are excluded; `why` then has `no_sample`.
    """
    by_name: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for receipt in receipts:
        for row in receipt["rows"]:
            by_name[row["kind"], row["name"]].append(row)
    last = receipts[-1]["batch"] if receipts else None
    return [_total(rows, last) for rows in by_name.values()]


def frame(rows: Sequence[Row]) -> Any:
    """The rows as a pandas data frame."""
    import pandas as pd

    made = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = dict.fromkeys(("emitted", *_OF_REPAIR), "Int64")
    return made.astype({**whole, **dict.fromkeys(("recall", "recall_low", "recall_high"), "float64")})


def _total(rows: Sequence[Mapping[str, Any]], last: int | None) -> Row:
    modes = {row["mode"] for row in rows}
    emitted: list[Any] = [row.get("emitted") for row in rows]
    total: Row = {name: _empty(name) for name in COLUMNS} | {
        "batch": last,
        "kind": rows[-1]["kind"],
        "name": rows[-1]["name"],
        "mode": ESTIMATED if ESTIMATED in modes else SUBSET if SUBSET in modes else EXACT,
        **{name: sum(row.get(name) or 0 for row in rows) for name in _ADDED_UP},
        "shed_by": _shed_by(rows),
        "emitted": None if None in emitted else sum(emitted),
        **_repaired(rows),
        # Batches of a long burst repeat the same warning: the last one is enough.
        "warnings": next((said for row in reversed(rows) if (said := row.get("warnings"))), []),
        "missing": _listed(rows, "missing"),
        "why": sorted(set(_listed(rows, "why"))),
    }
    return total | (_recall(rows, modes) if rows[-1]["kind"] == OUTPUT else {})


def _shed_by(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {reason: sum(row["shed_by"].get(reason, 0) for row in rows) for reason in rows[-1]["shed_by"]}


def _listed(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [one for row in rows for one in row.get(name) or ()]


def _repaired(rows: Sequence[Mapping[str, Any]]) -> Row:
    """The final debt, and all that was repaired and written off; empty without repair."""
    repairs = [row for row in rows if "debt" in row]
    if not repairs:
        return {}
    return {
        "debt": repairs[-1]["debt"],
        **{of: sum(row[of] for row in repairs) for of in ("paid", "forgiven")},
    }


def _recall(rows: Sequence[Mapping[str, Any]], modes: set[str]) -> Row:
    if modes == {EXACT}:
        return {"recall": 1.0, "recall_low": 1.0, "recall_high": 1.0}
    known = [row for row in rows if NO_SAMPLE not in row["why"]]
    if any("estimate" not in row for row in known) or all(row["mode"] == EXACT for row in known):
        return {}
    whole = pooled(from_plain(Estimate, row["estimate"]) for row in known)
    low, high = whole.interval
    return {"recall": whole.recall, "recall_low": low, "recall_high": high}


def _empty(name: str) -> Any:
    """The value of a column that does not apply to a stream or output."""
    if name in ("warnings", "readers", "by_lag", "missing", "why"):
        return []
    return 0 if name == "given_up" else None
