from __future__ import annotations

import numpy as np
import pytest

from tidegate.edge.lines import PASS_UNREAD, Lines, gathered
from tidegate.sift.filter.decision import DROP, KEEP, SAMPLE


def texts(piece: bytes) -> list[bytes]:
    lines = Lines.of(piece)
    assert lines.texts() == [lines.line(i) for i in range(len(lines))]
    return lines.texts()


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\n\r\nb\r\n", [b"a", b"", b"b"]),
        (b"a\nlast", [b"a", b"last"]),
        (b"a\rb\n", [b"a\rb"]),
    ],
)
def test_lines_end_at_newlines_with_or_without_a_return(piece: bytes, expected: list[bytes]) -> None:
    assert texts(piece) == expected


def test_lines_that_pass_leave_byte_for_byte() -> None:
    lines = Lines.of(b"one\r\ntwo\n three \nfour")
    verdicts = np.array([KEEP, DROP, SAMPLE, PASS_UNREAD], np.uint8)
    assert bytes(gathered(lines, verdicts, (b"", b""), True)) == b"one\r\n three \nfour"


def test_a_mark_goes_behind_the_last_field() -> None:
    lines = Lines.of(b"1,a\r\n2,b\nbad\n3,c")
    verdicts = np.array([KEEP, SAMPLE, PASS_UNREAD, KEEP], np.uint8)
    assert (
        bytes(gathered(lines, verdicts, (b",false", b",true"), False))
        == b"1,a,false\r\n2,b,true\nbad\n3,c,false"
    )


def test_a_mark_goes_before_the_last_brace() -> None:
    lines = Lines.of(b'{"x":{}}\n{"x":1} \r\n{}\n{ }\n')
    verdicts = np.array([KEEP, SAMPLE, KEEP, SAMPLE], np.uint8)
    assert bytes(gathered(lines, verdicts, (b',"m":false', b',"m":true'), True)) == (
        b'{"x":{},"m":false}\n{"x":1,"m":true} \r\n{"m":false}\n{ "m":true}\n'
    )


def test_no_lines_are_no_bytes() -> None:
    assert bytes(gathered(Lines.of(b""), np.zeros(0, np.uint8), (b"", b""), True)) == b""
