"""The paper's window drop, a row at a time: decisions travel as marks on the rows that start windows.

Paper: window drop, sections 3.1 and 3.3, tables 1 and 3. A mark (the window specification) is one of

    −1    nothing to say
     0    this window is not to be opened
     τ    it is; and rows with a time below τ must be kept for its sake

An aggregate of size ω that meets τ may open windows below `keep_until` = τ − (ω − 1), and passes the mark on
with that value, on the row of the window that it opens or, where none starts there, on a *fake* row: one
without content, that all boxes let through. A filter that rejects a marked row lets it pass as a fake one.

Here windows are aligned to the epoch and times may be sparse, so a window can start where no row is: then the
mark travels on a fake row of that time. Rows come in order of time; times are above zero, as marks need.

Where we differ: in table 3 an aggregate that opens a window at t without a τ, inside of its range, also
raises `keep_until` to t + ω. That feeds itself: where windows overlap, the range grows from window to window,
and windows are opened whose rows are gone. The last aggregate of a pipeline never looks at them, but they are
wrong, and where such an aggregate is an output itself they come out. We leave `keep_until` alone;
`as_printed=True` shows what happens otherwise. (A mark of 0 then changes nothing: a window opens within the
range, whether it is marked or not.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from tidegate.model.times import BEGINNING_US
from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.drop_window import DropWindow
from tidegate.window.drop.network import DropWindowNode
from tidegate_lab.simulate.windows.window_network import Program, Row, time_spec

SILENT, CLOSED = -1, 0


@dataclass(frozen=True)
class Marked:
    """A row and its mark; a fake row has no content."""

    time: int
    row: Row | None
    mark: int = SILENT


def drop_windows(rows: Sequence[Row], window: DropWindow, decisions: Decisions) -> list[Marked]:
    """The operator: marks the starts of windows, and drops rows that no window which may open needs."""
    if not rows:
        return []
    first = (rows[0].time - window.size_us) // window.slide_us * window.slide_us
    starts = range(first, rows[-1].time + 1, window.slide_us)
    keeps = decisions.kept(np.array(starts, np.int64)).tolist()
    marks = {
        start: start + window.size_us if kept else CLOSED for start, kept in zip(starts, keeps, strict=True)
    }
    kept_rows: list[Row] = []
    marked, keep_until = iter([*marks.items(), (rows[-1].time + 1, CLOSED)]), BEGINNING_US
    start, mark = next(marked)
    for row in rows:
        while start <= row.time:
            keep_until = max(keep_until, mark)
            start, mark = next(marked)
        if row.time < keep_until:
            kept_rows.append(row)
    return _with_marks(kept_rows, marks)


def pass_box(rows: Iterable[Marked], program: Program, name: str) -> Iterator[Marked]:
    """A filter: fake rows pass, and so does the mark of a row that does not."""
    passes = program.passing(name)
    for each in rows:
        if each.row is None or passes(each.row):
            yield each
        elif each.mark != SILENT:
            yield replace(each, row=None)


def aggregate(
    rows: Iterable[Marked], program: Program, node: DropWindowNode, *, as_printed: bool = False
) -> list[Marked]:
    """An aggregate that decodes marks by table 3."""
    spec = time_spec(node)
    size, slide = spec.size_us, spec.slide_us
    keep_until, undecided = BEGINNING_US, BEGINNING_US
    opened: dict[int, list[Row]] = {}
    marks: dict[int, int] = {}
    for time, group in groupby(rows, lambda each: each.time):
        at_time = list(group)
        mark = max(each.mark for each in at_time)
        # Windows that started since the last row, where no row was, and perhaps one that starts here.
        oldest = ((time - size) // slide + 1) * slide
        for start in range(max(undecided, oldest), time + 1, slide):
            opens, _ = decode(True, mark if start == time else SILENT, start < keep_until)
            if opens:
                opened[start] = []
            if opens and as_printed and (start < time or mark <= CLOSED):
                keep_until = max(keep_until, start + size)
        _, passes_on = decode(time % slide == 0, mark, time < keep_until)
        if mark > CLOSED:
            keep_until = mark = mark - (size - 1)
        if passes_on:
            marks[time] = mark
        undecided = (time // slide + 1) * slide
        for start in range(oldest, time + 1, slide):
            if start in opened:
                opened[start] += [each.row for each in at_time if each.row is not None]
    results = [row for start, members in opened.items() for row in program.results(node, start, members)]
    return _with_marks(results, marks)


def decode(starts: bool, mark: int, within: bool) -> tuple[bool, bool]:
    """Table 3: whether a window opens, and whether the mark is passed on; `within` is time < keep_until."""
    opens = starts and (mark > CLOSED or within)
    return opens, mark > CLOSED or (mark == CLOSED and (opens or not starts))


def _with_marks(rows: Iterable[Row], marks: Mapping[int, int]) -> list[Marked]:
    """Rows in order of time; a mark goes on the first row of its time, or else on a fake one."""
    by_time: dict[int, list[Row | None]] = {time: [] for time in marks}
    for row in rows:
        by_time.setdefault(row.time, []).append(row)
    return [
        Marked(time, row, SILENT if k else marks.get(time, SILENT))
        for time, members in sorted(by_time.items())
        for k, row in enumerate(members or [None])
    ]
