"""Passes rows on lines through the sifter: whole lines in, the lines that pass out, byte for byte.

Bad lines are counted, and the first few are reported with their number and reason. They are dropped unless
`keep_bad` is set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.edge.csv_lines import CsvLines
from tidegate.edge.json_lines import JsonLines
from tidegate.edge.lines import PASS_UNREAD, Lines, gathered
from tidegate.edge.node import Node
from tidegate.edge.parsing import LineFormat, parse
from tidegate.edge.source import EdgeSource, Sink
from tidegate.errors import FlowError
from tidegate.sift.filter.decision import DROP

#: Bad lines that are reported one by one.
REPORTED_LINES = 5


@dataclass(frozen=True)
class Wishes:
    """Further options."""

    #: The name of a column that marks samples; "" for none.
    mark: str = ""
    keep_bad: bool = False
    allow_missing: bool = False


class LineRows:
    """The lines of one stream; `number` of them have been read so far."""

    def __init__(self, node: Node, sink: Sink, wishes: Wishes, report: Callable[[str], None]) -> None:
        self._node, self._sink, self._wishes, self._report = node, sink, wishes, report
        self.number = 0

    def carry(self, source: EdgeSource, form: str) -> None:
        """Sift the whole input until it ends."""
        known: LineFormat | None = JsonLines() if form == "json" else None
        checked = self._wishes.allow_missing
        for piece in source.lines():
            lines = Lines.of(piece)
            if known is None:
                known, lines = self._header(lines)
            if not checked and len(lines):
                self._check_columns(known, lines)
                checked = True
            self._carry_lines(known, lines)
            self._node.tick()

    def _header(self, lines: Lines) -> tuple[LineFormat, Lines]:
        form, mark = CsvLines(lines.line(0)), self._wishes.mark
        if mark in form.header:
            raise marked_twice(mark)
        head = lines[:1]
        added = form.head_mark(mark) if mark else b""
        self._sink.write(gathered(head, np.ones(1, np.uint8), (added, added), form.before_brace))
        self.number = 1
        return form, lines[1:]

    def _carry_lines(self, form: LineFormat, lines: Lines) -> None:
        parsed = parse(form, self._node.sifter.axes, lines)
        verdicts = np.full(len(lines), DROP, np.uint8)
        verdicts[parsed.is_row] = self._node.decide(parsed.rows())
        for i, reason in sorted(parsed.bad.items()):
            if self._node.bad < REPORTED_LINES:
                self._report(f"line {self.number + i + 1} is not a row: {reason}")
            self._node.bad += 1
            verdicts[i] = PASS_UNREAD if self._wishes.keep_bad else DROP
        mark = self._wishes.mark
        marks = (form.mark(mark, False), form.mark(mark, True)) if mark else (b"", b"")
        self._sink.write(gathered(lines, verdicts, marks, form.before_brace))
        self.number += len(lines)

    def _check_columns(self, form: LineFormat, lines: Lines) -> None:
        missing, known = form.missing(self._node.sifter.axes, lines)
        if missing:
            raise columns_missing(missing, known)


def columns_missing(missing: list[str], known: list[str]) -> FlowError:
    return FlowError(
        f"The rows have no column {', '.join(missing)}",
        code="SIFT_COLUMN_MISSING",
        got=f"columns {', '.join(known)}",
        why="The sifter decides by this column; rows without it count as null there",
        do="Use the sifter that was made for these rows, or pass --allow-missing",
    )


def marked_twice(mark: str) -> FlowError:
    return FlowError(
        "The rows already have the column that --mark adds",
        code="SIFT_MARK_COLUMN_EXISTS",
        got=mark,
        do="Pass another name to --mark",
    )
