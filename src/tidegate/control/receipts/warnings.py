"""Since when each warning holds, remembered in the manifest, so that restarts do not forget it.

    warnings of batch b, since of b-1 ──▶ with_since ──▶ warnings with their first batch, since of b

A warning goes on if one with the same code and subject (a stream, an output) held after the batch before. Its
message may change. A warning that pauses for a batch begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.errors import explain
from tidegate.model.progress import (
    DEBTS_WRITTEN_OFF,
    OUTPUT_SHUT_OFF,
    ROWS_UNEXPLAINED,
    WINDOWS_DROPPED_EARLIER,
    WarningProgress,
)
from tidegate.model.times import utc_text

#: Where the manifest keeps the first batch of each warning.
CONTROL = "warnings"


@dataclass(frozen=True)
class BatchWarning:
    """A warning of one batch."""

    code: str
    message: str
    #: The stream or output that it is about; empty: the query.
    subject: str = ""


def with_since(
    known: Mapping[str, int], found: Iterable[BatchWarning], batch: int
) -> tuple[list[WarningProgress], dict[str, int]]:
    """The warnings with the batch in which each began, and what the manifest must remember."""
    warnings, since = [], {}
    for one in found:
        name = f"{one.code} {one.subject}".rstrip()
        since[name] = known.get(name, batch)
        warnings.append(WarningProgress(one.code, one.message, since[name]))
    return warnings, since


def receipt_warnings(receipt: Mapping[str, Any]) -> Iterator[BatchWarning]:
    """Warnings that the receipt of a batch gives rise to."""
    for row in receipt["rows"]:
        for one in row.get("warnings", ()):
            yield BatchWarning(one["code"], one["message"], row["name"])
        if row.get("written_off_pairs"):
            message = explain(
                f"Output {row['name']!r} will never have pairs that waited for repair",
                got=f"{row['written_off_pairs']} skipped pairs were written off",
                why="Repair is switched off, or the rows that it needs are gone or take too much space",
                do="Keep shed=tg.Shed(repair=…) until no debt is left, and raise its max_repair_state",
            )
            yield BatchWarning(DEBTS_WRITTEN_OFF, message, f"{row['kind']} {row['name']}")
        if row["rows_unexplained"]:
            message = explain(
                f"The ledger of {row['kind']} {row['name']!r} does not balance",
                got=f"{row['rows_unexplained']} rows are unexplained",
                why="Offered rows must be processed, shed, late or rejected: this is a defect of Tidegate",
                do="Report it with the receipts of the checkpoint",
            )
            yield BatchWarning(ROWS_UNEXPLAINED, message, f"{row['kind']} {row['name']}")


def shut_warnings(shut: Iterable[str], observes: bool = False) -> Iterator[BatchWarning]:
    """Warnings about outputs that are not computed, or would not be if the goal did not only observe."""
    for output in shut:
        message = explain(
            f"Output {output!r} {'would be' if observes else 'is'} shut off",
            why="No drop ratio within its max_gap frees enough time",
            do="Allow a larger max_gap or a longer latency, or give the query more cores",
        )
        yield BatchWarning(OUTPUT_SHUT_OFF, message, output)


def dropped_earlier_warnings(until_us: Mapping[str, int]) -> Iterator[BatchWarning]:
    """Warnings about outputs that lack windows although nothing is dropped now; until which start."""
    for output, time_us in until_us.items():
        message = explain(
            f"Output {output!r} lacks windows whose rows an earlier run dropped",
            got=f"missing windows that start before {utc_text(time_us)}",
            why="It writes every window whose rows are all there; its receipts list the others",
            do="Wait until these windows are over",
        )
        yield BatchWarning(WINDOWS_DROPPED_EARLIER, message, output)
