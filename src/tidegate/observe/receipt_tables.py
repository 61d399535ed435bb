"""Receipts for people: a table with a row a batch and stream or output, and their sums over all batches.

    batch, kind, name, mode         kind is `stream` or `output`; mode EXACT, SUBSET or ESTIMATED
    offered = processed + shed + late + rejected        (`unexplained` is the difference, and 0)
    shed_by                         the rows that were shed, by reason
    filtered                        those of the processed rows that the user's own boxes took out
    warnings                        of a stream: rows that are lost because nothing else was enough, in words
    given_up                        rows of earlier batches that window reduction took out of the state
    readers                         the same by reader, for a stream that has several
    emitted                         rows written; None where only the sink knows
    recall, recall_low, recall_high the part of the true result that was found, with its 95 % interval; None
                                    where no sound estimate is known, and then `why` says what was left out
    by_lag                          the same by how far the rows of a pair lie apart
    debt, paid, forgiven            joins with repair: comparisons that are owed after the batch, that it
                                    made up for, and that it gave up; None where nothing is repaired
    missing                         windows: runs of [first start, last start, slide] in microseconds

`control/receipts/receipts.py` says what each of them counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.control.receipts.recall import Estimate, pooled
from tidegate.control.receipts.receipts import ESTIMATED, EXACT, NO_SAMPLE, OUTPUT, SUBSET
from tidegate.model.codec import from_plain

Receipt = Mapping[str, Any]
Row = dict[str, Any]

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
    """One row a batch and stream or output, all of them with all columns."""
    return [
        {name: _empty(name) if (value := given.get(name)) is None else value for name in COLUMNS}
        for receipt in receipts
        for row in receipt["rows"]
        for given in ({"batch": receipt["batch"], **row},)
    ]


def totals(receipts: Sequence[Receipt]) -> list[Row]:
    """One row for each stream and output over all batches; `batch` is the last one.

    Estimates of batches add up, with their variances: the interval is that of the recall over all of them.
    (Batches in which no row happened to explore are left out of it; `why` then has `no_sample`.)
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
        # Batches of a long burst all say the same: the last one is enough.
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
    """What is owed in the end, and all that was paid and given up; nothing where nothing was repaired."""
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
    """What stands where a stream or an output has nothing to say."""
    if name in ("warnings", "readers", "by_lag", "missing", "why"):
        return []
    return 0 if name == "given_up" else None
