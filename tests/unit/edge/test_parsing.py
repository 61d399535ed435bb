"""Both formats, by Arrow and line by line: what is a row, what is bad and why, what is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.edge.csv_lines import CsvLines
from tidegate.edge.json_lines import JsonLines
from tidegate.edge.lines import Lines
from tidegate.edge.parsing import PARTS, parse
from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis

AXES = (Axis("x"), Axis("kind", "category", ("bus", "taxi")), Axis("paid", "category", ("false", "true")))
NAN = float("nan")


def same(found: list[float], expected: list[float]) -> bool:
    return bool(np.array_equal(found, expected, equal_nan=True))


JSON_ROWS = {
    b'{"x": 1, "kind": "taxi", "paid": true}': [1, 1, 1],
    b'{"x": -2.5e3, "kind": "tram", "paid": false, "y": [{"x": 7}]}': [-2500, 2, 0],
    b'{"x": null, "kind": null}': [NAN, NAN, NAN],
    b"{}": [NAN, NAN, NAN],
    b'{"x": NaN}': [NAN, NAN, NAN],
}
CSV_ROWS = {
    b"7,1,taxi,true": [1, 1, 1],
    b'"a,b", -2.5e3 ,"tram",False': [-2500, 2, 0],
    b"7,,,": [NAN, NAN, NAN],
    b"7,NaN,null,true": [NAN, NAN, 1],
    b"7,inf,bus,TRUE": [np.inf, 0, 1],
}
HEADER = b"id,x,kind,paid"


@pytest.mark.parametrize(("line", "expected"), JSON_ROWS.items())
def test_json_is_read_alike_by_column_and_by_line(line: bytes, expected: list[float]) -> None:
    form, lines = JsonLines(), Lines.of(line)
    by_column = form.columns(AXES, lines)
    assert by_column is not None
    assert same([float(column[0]) for column in by_column], expected)
    assert same(form.row(AXES, line), expected)


@pytest.mark.parametrize(("line", "expected"), CSV_ROWS.items())
def test_csv_is_read_alike_by_column_and_by_line(line: bytes, expected: list[float]) -> None:
    form, lines = CsvLines(HEADER), Lines.of(line)
    by_column = form.columns(AXES, lines)
    assert by_column is not None
    assert same([float(column[0]) for column in by_column], expected)
    assert same(form.row(AXES, line), expected)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"x": 1', "invalid JSON"),
        (b'{"x": 1} {"x": 2}', "invalid JSON: Extra data"),
        (b"[1]", "not an object"),
        (b'{"x": "1"}', 'x is not a number: "1"'),
        (b'{"x": true}', "x is not a number: true"),
        (b'{"kind": ["bus"]}', "kind is not a category"),
        (b'{"kind": "\xff"', "invalid JSON"),
        (b"[" * 100_000, "invalid JSON"),
    ],
)
def test_a_bad_line_of_json_has_a_reason(line: bytes, reason: str) -> None:
    parsed = parse(JsonLines(), AXES, Lines.of(b'{"x": 1}\n' + line + b'\n{"x": 2}\n'))
    assert parsed.is_row.tolist() == [True, False, True]
    assert parsed.rows()[0].tolist() == [1, 2]
    assert reason in parsed.bad[1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"7,1,bus", "3 fields where the header has 4"),
        (b"7,1,bus,true,", "5 fields where the header has 4"),
        (b"7,one,bus,true", "x is not a number: 'one'"),
        (b"7,1_0,bus,true", "x is not a number"),
        (b'7,1,"bus,true', "invalid CSV"),
        (b"7,1,\xff,true", "utf-8"),
    ],
)
def test_a_bad_line_of_csv_has_a_reason(line: bytes, reason: str) -> None:
    parsed = parse(CsvLines(HEADER), AXES, Lines.of(b"7,1,bus,\n" + line + b"\n7,2,bus,\n"))
    assert parsed.is_row.tolist() == [True, False, True]
    assert parsed.rows()[0].tolist() == [1, 2]
    assert reason in parsed.bad[1]


def test_a_stray_quote_costs_one_line() -> None:
    parsed = parse(CsvLines(b"x,kind"), AXES[:2], Lines.of(b'1,"bus\n2,"bus"\n3,bus"\n'))
    assert parsed.bad.keys() == {0}
    assert parsed.rows()[0].tolist() == [2, 3]


@pytest.mark.parametrize("form", [JsonLines(), CsvLines(b"x")])
def test_blank_lines_are_nothing(form: JsonLines | CsvLines) -> None:
    row = b'{"x": 5}' if isinstance(form, JsonLines) else b"5"
    parsed = parse(form, AXES[:1], Lines.of(b"\n" + row + b"\n\r\n"))
    assert parsed.is_row.tolist() == [False, True, False]
    assert not parsed.bad


def test_objects_over_two_lines_are_not_taken_for_rows() -> None:
    """Three lines and three objects, but not one on each: Arrow alone would mix them up."""
    parsed = parse(JsonLines(), AXES[:1], Lines.of(b'{"x":\n1}\n{"x": 2} {"x": 3}\n'))
    assert sorted(parsed.bad) == [0, 1, 2]


def test_a_few_bad_lines_among_many_are_found_without_reading_all_line_by_line() -> None:
    class Watched(JsonLines):
        read = 0

        def row(self, axes, line):  # type: ignore[no-untyped-def]
            self.read += 1
            return super().row(axes, line)

    good = [b'{"x": %d}' % i for i in range(10_000)]
    bad = [3, 5_000, 9_999]
    for i in bad:
        good[i] = b"oops"
    form = Watched()
    parsed = parse(form, AXES[:1], Lines.of(b"\n".join(good)))
    assert sorted(parsed.bad) == bad
    assert parsed.rows()[0].tolist() == [i for i in range(10_000) if i not in bad]
    assert form.read <= len(bad) * 10_000 / PARTS


def test_a_column_that_csv_does_not_have_is_empty() -> None:
    found = CsvLines(b"id,x").columns(AXES, Lines.of(b"7,1\n7,2\n"))
    assert found is not None
    assert [same(column.tolist(), [NAN, NAN]) for column in found] == [False, True, True]
    assert CsvLines(b"id").columns(AXES[:1], Lines.of(b"7\n")) is not None


def test_missing_columns_are_named() -> None:
    assert CsvLines(b"id,x").missing(AXES, Lines.of(b"")) == (["kind", "paid"], ["id", "x"])
    lines = Lines.of(b'{"x": 1}\noops\n[]\n{"id": 1}\n')
    assert JsonLines().missing(AXES, lines) == (["kind", "paid"], ["x", "id"])
    assert JsonLines().missing(AXES, Lines.of(b"oops\n")) == ([], [])


@pytest.mark.parametrize("header", [b'"x', b"\xff\xfe", b""])
def test_a_first_line_that_is_no_header_is_refused(header: bytes) -> None:
    with pytest.raises(FlowError, match="SIFT_CSV_HEADER_INVALID"):
        CsvLines(header)


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    assert CsvLines(b"\xef\xbb\xbfx,y").header == ["x", "y"]
