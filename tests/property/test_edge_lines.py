"""Laws of rows on lines: whole pieces and single lines are read alike, and what passes is untouched."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.edge.csv_lines import CsvLines
from tidegate.edge.json_lines import JsonLines
from tidegate.edge.lines import Lines, gathered
from tidegate.edge.parsing import LineFormat, parse
from tidegate.sift.queries.axes import Axis

AXES = (Axis("x"), Axis("kind", "category", ("bus", "taxi")), Axis("paid", "category", ("false", "true")))
HEADER = b"x,kind,paid"

NUMBERS = st.one_of(
    st.none(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)
)
KINDS = st.sampled_from([None, "bus", "taxi", "tram", "", "bus ", "Ö", '"', "a,b", "{}", 5, True, [1]])
ROWS = st.fixed_dictionaries(
    {}, optional={"x": NUMBERS, "kind": KINDS, "paid": st.sampled_from([None, True, False, "true", 0])}
)
JSON_LINES = st.one_of(
    ROWS.map(json.dumps),
    ROWS.map(lambda row: json.dumps(row, ensure_ascii=False, separators=(",", ":")) + " "),
    st.sampled_from(
        ["", " ", "oops", "{", "}", "[]", '{"x": 1} {"x": 2}', '{"x": 1, "x": 2}', '{"x":', "1}"]
    ),
)
FIELDS = st.sampled_from(
    ["", "1", " 2.5 ", "-1e3", "inf", "nan", "one", '"1"', "bus", '"bus"', "true", "TRUE", '"']
)
CSV_LINES = st.lists(FIELDS, min_size=1, max_size=4).map(",".join)


def by_line(form: LineFormat, lines: Lines) -> list[list[float] | None]:
    """The naive way; None for a line that is no row."""
    found: list[list[float] | None] = []
    for line in lines.texts():
        try:
            found.append(form.row(AXES, line) if line.strip() else None)
        except ValueError:
            found.append(None)
    return found


def agree(form: LineFormat, text: list[str]) -> None:
    lines = Lines.of("\n".join(text).encode())
    parsed, expected = parse(form, AXES, lines), by_line(form, lines)
    assert parsed.is_row.tolist() == [row is not None for row in expected]
    rows = np.array([row for row in expected if row is not None]).reshape(-1, len(AXES))
    assert np.array_equal(np.stack(parsed.rows(), axis=1), rows, equal_nan=True)


@given(st.lists(JSON_LINES, min_size=1, max_size=20))
def test_json_is_read_by_pieces_as_by_lines(text: list[str]) -> None:
    agree(JsonLines(), text)


@given(st.lists(CSV_LINES, min_size=1, max_size=20))
def test_csv_is_read_by_pieces_as_by_lines(text: list[str]) -> None:
    agree(CsvLines(HEADER), text)


@settings(max_examples=50)
@given(st.lists(st.text(max_size=9).map(lambda t: t.replace("\n", "")), max_size=20), st.integers(0, 2**32))
def test_lines_that_pass_are_those_that_came(text: list[str], seed: int) -> None:
    piece = "\n".join(text).encode()
    lines = Lines.of(piece)
    verdicts = np.random.default_rng(seed).integers(0, 3, len(lines)).astype(np.uint8)
    came = [line + b"\n" for line in piece.split(b"\n")]
    came[-1] = came[-1][:-1]
    kept = [line for line, verdict in zip(came, verdicts, strict=False) if verdict]
    assert bytes(gathered(lines, verdicts, (b"", b""), True)) == b"".join(kept)
