"""The contents of a checkpoint as plain rows for tables or JSON; `cli/inspect.py` reads the checkpoint.

Times are ISO moments in UTC, or None for a stream without rows. The state of a match is its sifter; a window
stores partials of aggregates by group and pane until the watermark closes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tidegate.control.receipts.roll_up import combined
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.json_values import Json, Metrics
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.model.receipts import ReceiptPeriod
from tidegate.model.samples import Sampled
from tidegate.model.times import BEGINNING_US, SIDES
from tidegate.observe.receipts.receipt_tables import by_period, receipts_of
from tidegate.observe.units import iso, watermark_text

Row = Metrics


def sifter_rows(manifest: Manifest | None) -> list[Row]:
    """Per match that may drop rows: the sifter of the next batch, and why it was chosen."""
    known = manifest.control.get("sift", {}).get("matches", {}) if manifest else {}
    return [_sifter_row(name, one) for name, one in known.items()]


def _sifter_row(name: str, known: Row) -> Row:
    sifter = known["sifter"]
    # A sifter that has dropped nothing yet has no reason.
    made = known.get("made") or {"batch": None, "why": ""}
    return {
        "match": name,
        "version": sifter["version"],
        "regions": len(sifter["thresholds"]),
        "z": sifter["z"],
        "threshold_least": min(sifter["thresholds"]),
        "threshold_most": max(sifter["thresholds"]),
        "sample_share": sifter["sample_share"],
        "samples": len(from_plain(Sampled, known["sample"])),
        "expected_quality": known["quality"],
        "made_after_batch": made["batch"],
        "why": made["why"],
    }


def window_rows(manifest: Manifest | None) -> list[Row]:
    """Per window aggregate: its windows, its stored partials, and the time up to which windows are closed."""
    operators = manifest.flow.get("operators", {}) if manifest else {}
    return [
        _window_row(name, shape, manifest)
        for name, shape in operators.items()
        if manifest is not None and "partials" in shape
    ]


def _window_row(name: str, shape: Row, manifest: Manifest) -> Row:
    pieces = [piece for piece in manifest.pieces if piece.operator == name]
    ratio = manifest.control.get("adding_up", {}).get("ratio", {})
    # Approximate windows: the probability that a row of each stratum is kept in the next batch.
    shares = manifest.control.get("estimates", {}).get("shares", {}).get(name)
    return {
        "window": name,
        # Windows of rows have a size in rows instead.
        "size_us": shape.get("size_us"),
        "slide_us": shape.get("slide_us"),
        "offset_us": shape.get("offset_us"),
        "size_rows": shape.get("size"),
        "slide_rows": shape.get("slide"),
        "by": list(shape["by"]),
        # Spark expressions of what is stored for each group and pane.
        "partials": list(shape["partials"]),
        "stored": sum(piece.rows for piece in pieces),
        "bytes": stored_bytes(pieces),
        "pieces": len(pieces),
        "rows_per_partial": ratio.get(name),
        "share_least": min(shares) if shares else None,
        "share_most": max(shares) if shares else None,
        "first": iso(min((piece.first_us for piece in pieces), default=BEGINNING_US)),
        "closed_before": iso(manifest.settled_us.get(name, BEGINNING_US)),
    }


def stored_bytes(pieces: Iterable[Piece]) -> int:
    """Bytes of stored rows and their matched bits."""
    return sum(p.data.length + sum(bits.length for bits in p.matched.values()) for p in pieces)


T = TypeVar("T")


@dataclass(frozen=True)
class Contents:
    """What was read from a checkpoint."""

    url: str
    #: None before the first commit.
    manifest: Manifest | None
    #: Batches whose manifest is kept, oldest first.
    kept: tuple[int, ...]
    #: Plans that are kept, oldest first; one after the last manifest belongs to a running batch.
    plans: tuple[Plan, ...]
    #: Batch → its progress, for the last batches.
    telemetry: Mapping[int, Mapping[str, Any]]
    #: The receipts of the last batches, oldest first.
    receipts: tuple[Json, ...] = ()
    #: Receipts that cover every batch once, and the period to add them up by.
    summed: tuple[Json, ...] = ()
    by: ReceiptPeriod = "total"


def all_rows(contents: Contents) -> list[Row]:
    """Everything as rows; `kind` is the type of a row."""
    return [
        {"kind": "checkpoint", **checkpoint_row(contents)},
        *({"kind": "stream", **row} for row in stream_rows(contents)),
        *({"kind": "routing", **row} for row in routing_rows(contents)),
        *({"kind": "segments", **row} for row in segment_rows(contents)),
        *({"kind": "sifter", **row} for row in sifter_rows(contents.manifest)),
        *({"kind": "window", **row} for row in window_rows(contents.manifest)),
        *({"kind": "debt", **row} for row in debt_rows(contents)),
        *({"kind": "plan", **to_plain(plan)} for plan in contents.plans),
        *({"kind": "telemetry", "batch": b, **record} for b, record in contents.telemetry.items()),
        *({"kind": "receipt", **receipt} for receipt in contents.receipts),
        *(
            {"kind": "receipts", contents.by: one.to_dict()}
            for one in receipts_of(contents.summed, contents.by)
        ),
        *({"kind": "load", **row} for row in load_rows(contents)),
    ]


def load_rows(contents: Contents) -> list[Row]:
    """Per period: the batches, how long they took, and the size of the state."""
    found = []
    for start, some in by_period(contents.summed, contents.by):
        whole = combined(some)
        if whole["load"] is not None:
            batches = {name: whole[name] for name in ("first_batch_id", "last_batch_id", "batches")}
            found.append({"start": start, **batches, **whole["load"]})
    return found


def checkpoint_row(contents: Contents) -> Row:
    """A summary in one row."""
    manifest = contents.manifest
    pieces = manifest.pieces if manifest else ()
    done = manifest.batch if manifest else None
    planned = max((plan.batch for plan in contents.plans), default=None)
    return {
        "url": contents.url,
        "last_batch": done,
        "manifests_kept": list(contents.kept),
        "plans_kept": [plan.batch for plan in contents.plans],
        # Planned but not committed: running now, or interrupted by a crash and to be replayed.
        "batch_under_way": planned if planned is not None and (done is None or planned > done) else None,
        "state_rows": sum(piece.rows for piece in pieces),
        "state_bytes": stored_bytes(pieces),
        "pieces": len(pieces),
        "flow": dict(manifest.flow) if manifest else None,
    }


def stream_rows(contents: Contents) -> list[Row]:
    """Per source stream: its newest time and watermark."""
    clocks = contents.manifest.clocks if contents.manifest else {}
    return [
        {
            "stream": name,
            "seen": iso(clock.seen_us),
            "watermark": watermark_text(clock.watermark_us),
            "heard": iso(clock.heard_us),
        }
        for name, clock in clocks.items()
    ]


def routing_rows(contents: Contents) -> list[Row]:
    """Per operator and instance: the partitions it owns, and the keys with their own place there."""
    routing = contents.manifest.routing if contents.manifest else {}
    rows: list[Row] = []
    for operator, one in routing.items():
        placements = [one.left] if one.apart is None else [one.left, one.apart]
        for instance in range(one.instances):
            spread = [
                len(placement.on(place))
                for placement in placements
                for place in placement.keys.values()
                if instance in placement.on(place)
            ]
            rows.append(
                {
                    "operator": operator,
                    "version": one.version,
                    "instance": instance,
                    "partitions": sum(len(placement.owned_by(instance)) for placement in placements),
                    "keys": len(spread),
                    "split": sum(instances > 1 for instances in spread),
                }
            )
    return rows


def segment_rows(contents: Contents) -> list[Row]:
    """Per operator, side and slot: what is stored."""
    groups: defaultdict[tuple[str, int, int | None], list[Piece]] = defaultdict(list)
    windows = {row["window"] for row in window_rows(contents.manifest)}
    for piece in contents.manifest.pieces if contents.manifest else ():
        groups[piece.operator, piece.side, piece.slot].append(piece)
    # A group without a slot spans several and sorts first.
    ordered = sorted(groups.items(), key=lambda item: (*item[0][:2], item[0][2] is not None, item[0][2] or 0))
    return [
        {
            "operator": operator,
            # A window has one side, which stores partials.
            "side": "partials" if operator in windows else SIDES[side],
            "slot": slot,
            "pieces": len(pieces),
            "rows": sum(piece.rows for piece in pieces),
            "keyless_rows": sum(piece.rows for piece in pieces if piece.keyless),
            "bytes": stored_bytes(pieces),
            "first": iso(min(piece.first_us for piece in pieces)),
            "last": iso(max(piece.last_us for piece in pieces)),
        }
        for (operator, side, slot), pieces in ordered
    ]


def debt_rows(contents: Contents) -> list[Row]:
    """The debts of joins, and those that the last batch wrote off; counts are estimates."""
    manifest = contents.manifest
    if manifest is None:
        return []
    debts = [(debt, "in_debt") for debt in manifest.debts] + [
        (debt, "written_off") for debt in manifest.written_off
    ]
    return [
        {
            "operator": debt.operator,
            "batch": debt.batch,
            "state": state,
            "cells": len(debt.cells),
            "comparisons": round(debt.comparisons),
            "matches": round(debt.matches, 1),
            "needed_from": [iso(first) if first <= last else None for first, last in debt.spans],
        }
        for debt, state in debts
    ]


def last_of(batches: Sequence[T], count: int) -> Sequence[T]:
    """The newest `count` batches, oldest first."""
    return batches[max(0, len(batches) - count) :]
