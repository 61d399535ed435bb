"""What a manifest knows of single operators: the sifters in front of matches, and windows that wait.

Plain rows, as in `contents.py`. A match has no state but its sifter; a window stores partials of aggregates,
by group and pane, until the watermark closes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.samples import Sampled
from tidegate.model.times import BEGINNING_US
from tidegate.observe.units import iso

Row = dict[str, Any]


def sifter_rows(manifest: Manifest | None) -> list[Row]:
    """Per match that may drop rows: the sifter of the next batch, and why it is this one."""
    known = manifest.control.get("sift", {}).get("matches", {}) if manifest else {}
    return [_sifter_row(name, one) for name, one in known.items()]


def _sifter_row(name: str, known: Row) -> Row:
    sifter = known["sifter"]
    # A checkpoint of an earlier version does not say why; neither does a sifter that has dropped nothing yet.
    made = known.get("made") or {"batch": None, "why": ""}
    return {
        "match": name,
        "version": sifter["version"],
        "regions": len(sifter["thresholds"]),
        "z": sifter["z"],
        "threshold_least": min(sifter["thresholds"]),
        "threshold_most": max(sifter["thresholds"]),
        "sample_share": sifter["sample_share"],
        "samples": len(Sampled.from_json(known["sample"])),
        "expected_quality": known["quality"],
        "made_after_batch": made["batch"],
        "why": made["why"],
    }


def window_rows(manifest: Manifest | None) -> list[Row]:
    """Per window aggregate: which windows, what is stored of them, and how far they are closed."""
    operators = manifest.flow.get("operators", {}) if manifest else {}
    return [
        _window_row(name, shape, manifest)
        for name, shape in operators.items()
        if manifest is not None and "partials" in shape
    ]


def _window_row(name: str, shape: Row, manifest: Manifest) -> Row:
    pieces = [piece for piece in manifest.pieces if piece.operator == name]
    ratio = manifest.control.get("adding_up", {}).get("ratio", {})
    # Of approximate windows: how likely a row of each stratum is kept in the next batch.
    shares = manifest.control.get("estimates", {}).get("shares", {}).get(name)
    return {
        "window": name,
        # Windows of rows have a size in rows instead.
        "size_us": shape.get("size_us"),
        "slide_us": shape.get("slide_us"),
        "size_rows": shape.get("size"),
        "slide_rows": shape.get("slide"),
        "by": list(shape["by"]),
        # Expressions over rows, as Spark computes them: what is stored for each group and pane.
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
    """Stored rows and the bits beside them."""
    return sum(p.data.length + sum(bits.length for bits in p.matched.values()) for p in pieces)
