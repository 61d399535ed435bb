"""What must hold of every receipt that any test writes; `conftest.py` watches them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COUNTS = tuple(f"rows_{of}" for of in ("offered", "processed", "shed", "late", "rejected", "filtered"))


def violations(receipt: Mapping[str, Any]) -> list[str]:
    """What is wrong with the receipt of a batch, in words."""
    found = []
    for row in receipt["rows"]:
        name = f"batch {receipt['batch_id']}, {row['kind']} {row['name']}"
        for line in (row, *row.get("readers", ())):
            parts = sum(line[f"rows_{of}"] for of in ("processed", "shed", "late", "rejected"))
            if line["rows_offered"] != parts:
                found.append(f"{name}: the ledger does not balance: {line}")
            if line["rows_shed"] != sum(line["shed_reasons"].values()) or line["rows_unexplained"]:
                found.append(f"{name}: reasons do not explain what was shed: {line}")
            if min(line[count] for count in _COUNTS) < 0:
                found.append(f"{name}: less than nothing: {line}")
        # Rows of dropped and of estimated windows go when they come; what an output lacks is a window, when
        # that would close, or that it is exact.
        waiting = row["shed_reasons"]["window_drop"] + row["shed_reasons"]["sampling"]
        later = waiting if row["kind"] == "output" else 0
        if row["mode"] == "EXACT" and (row["rows_shed"] > later or row.get("missing_windows")):
            found.append(f"{name}: not exact: {row}")
        if row["kind"] == "output" and (row["mode"] == "EXACT") != (not row["loss_reasons"]):
            found.append(f"{name}: the mode is not explained: {row}")
        recall = row.get("recall")
        if recall is not None and not 0 <= row["recall_low"] <= recall <= row["recall_high"] <= 1:
            found.append(f"{name}: an interval without its estimate: {row}")
    return found
