from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
from rich.console import Console

from tidegate.model.codec import to_plain
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.samples import Sampled
from tidegate.model.times import BEGINNING_US
from tidegate.observe.checkpoint_contents import Contents, all_rows, segment_rows, sifter_rows, window_rows
from tidegate.observe.checkpoint_tables import print_contents
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

BUSY = {
    "size_us": 60_000_000,
    "slide_us": 10_000_000,
    "offset_us": 4_000_000,
    "stream": "rides",
    "by": ["cell"],
    "partials": ["count(a)", "sum(b)"],
    "output": "…",
}


def piece(rows: int, first_us: int) -> Piece:
    return Piece(
        operator="window1",
        side=0,
        slot=7,
        level=0,
        rows=rows,
        first_us=first_us,
        last_us=first_us + 1,
        batches=(0, 0),
        keyless=False,
        partitions=(0,),
        bounds=(0, rows),
        data=ByteRange("segments/window1/a.arrow", first_us, 50, "aa"),
    )


def manifest(made: dict[str, Any] | None) -> Manifest:
    regions = Regions(
        Domain(np.zeros(1), np.ones(1)),
        np.zeros(1, np.int32),
        np.full(1, 0.5),
        np.array([[~0, ~1]], np.int32),
    )
    sifter = Sifter((Axis("x"),), regions, np.array([0.1, 0.75]), version=3, z=0.625, sample_share=0.02)
    match = {
        "queries": "f",
        "sample": to_plain(Sampled(np.zeros((9, 1)), np.zeros(9, np.int32))),
        "sifter": sifter.to_json(),
        "frequencies": [0.5, 0.5],
        "quality": 0.875,
        "why": "",
        "made": made,
    }
    return Manifest(
        batch=9,
        flow={"operators": {"join1": {"how": "inner"}, "window1": BUSY}},
        clocks={},
        settled_us={"window1": 30_000_000},
        routing={},
        pieces=(piece(5, 40_000_000), piece(6, 20_000_000)),
        control={"sift": {"matches": {"match1": match}}, "adding_up": {"ratio": {"window1": 12.5}}},
    )


def test_a_sifter_is_told_by_its_thresholds_and_why_it_was_made() -> None:
    (row,) = sifter_rows(manifest({"batch": 4, "why": "z went from 1.000 to 0.625"}))
    assert (row["match"], row["version"], row["regions"], row["z"]) == ("match1", 3, 2, 0.625)
    assert (row["threshold_least"], row["threshold_most"]) == (0.1, 0.75)
    assert (row["samples"], row["expected_quality"]) == (9, 0.875)
    assert (row["made_after_batch"], row["why"]) == (4, "z went from 1.000 to 0.625")
    assert sifter_rows(None) == []


def test_a_window_is_told_by_what_it_stores() -> None:
    (row,) = window_rows(manifest(None))
    assert (row["window"], row["by"], row["partials"]) == ("window1", ["cell"], ["count(a)", "sum(b)"])
    assert (row["size_us"], row["slide_us"], row["offset_us"]) == (60_000_000, 10_000_000, 4_000_000)
    assert (row["stored"], row["bytes"], row["pieces"], row["rows_per_partial"]) == (11, 100, 2, 12.5)
    assert (row["first"], row["closed_before"]) == ("1970-01-01T00:00:20+00:00", "1970-01-01T00:00:30+00:00")


def test_a_window_that_stores_nothing_has_no_oldest_row() -> None:
    empty = replace(manifest(None), pieces=(), settled_us={"window1": BEGINNING_US})
    (row,) = window_rows(empty)
    assert (row["stored"], row["first"], row["closed_before"]) == (0, None, None)


def test_an_approximate_window_is_told_by_the_rows_that_it_keeps() -> None:
    known = manifest(None)
    shares = {"window1": [1.0, 0.25, 0.5]}
    sampled = replace(known, control={**known.control, "estimates": {"shares": shares}})
    (row,) = window_rows(sampled)
    assert (row["share_least"], row["share_most"]) == (0.25, 1.0)
    assert "12.5 25.0% to 100.0% 100 B" in shown_of(sampled)


def test_a_window_of_rows_has_a_size_in_rows() -> None:
    by_rows = {name: value for name, value in BUSY.items() if not name.endswith("_us")}
    counted = replace(manifest(None), flow={"operators": {"window1": {**by_rows, "size": 100, "slide": 10}}})
    assert "window1 cell 100 rows 10 rows 2 11" in shown_of(counted)


def shown_of(known: Manifest) -> str:
    text = StringIO()
    print_contents(Console(file=text), Contents("ck", known, (9,), (), {}))
    return " ".join(text.getvalue().split())


def test_tables_and_lines_show_both() -> None:
    found = Contents("ck", manifest({"batch": 4, "why": "data moved"}), (9,), (), {})
    assert [row["side"] for row in segment_rows(found)] == ["partials"]
    assert {"sifter", "window"} <= {row["kind"] for row in all_rows(found)}
    text = StringIO()
    print_contents(Console(file=text), found)
    shown = " ".join(text.getvalue().split())
    assert "match1 3 2 0.625 0.10 to 0.75 9 0.875 after batch 4: data moved" in shown
    assert "window1 cell 60.0 s 10.0 s 2 11 12.5 all 100 B 1970-01-01 00:00:20.000" in shown
    first = Contents("ck", manifest(None), (9,), (), {})
    text = StringIO()
    print_contents(Console(file=text), first)
    assert "nothing was dropped yet" in text.getvalue()
