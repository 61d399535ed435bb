"""Laws of windows of rows: the same for any cut into batches, and little is kept."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.window.aggregate.merge_runs import PartialRun, merge_runs
from tidegate.window.count.count_windows import count_windows
from tidegate.window.spec import RowsSpec

#: (group, time, hash)
Row = tuple[int, int, int]
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20), st.integers(-3, 3)), max_size=60)


@st.composite
def specs(draw: st.DrawFn) -> RowsSpec:
    slide = draw(st.integers(1, 4))
    return RowsSpec(draw(st.integers(slide, 6)), slide)


def run_of(rows: list[Row]) -> PartialRun:
    group, time, tie = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    return PartialRun(group.astype(np.uint64), time.copy(), tie=tie.copy())


def by_definition(rows: list[Row], spec: RowsSpec, watermark: int) -> Counter[tuple[Row, ...]]:
    found: Counter[tuple[Row, ...]] = Counter()
    for group in range(3):
        settled = sorted(row for row in rows if row[0] == group and row[1] < watermark)
        for begin in range(0, len(settled) - spec.size + 1, spec.slide):
            found[tuple(settled[begin : begin + spec.size])] += 1
    return found


@given(ROWS, specs(), st.lists(st.integers(-21, 22), max_size=5), st.integers(0, 10))
def test_any_cut_into_batches_gives_the_same_windows(
    rows: list[Row], spec: RowsSpec, watermarks: list[int], ahead: int
) -> None:
    """Rows come before the watermark passes them, those with an odd hash ahead of it; so none is late."""
    found: Counter[tuple[Row, ...]] = Counter()
    waiting, kept_rows = rows, list[Row]()
    for watermark in sorted(watermarks):
        new = [row for row in waiting if row[1] < watermark + ahead * (row[2] % 2)]
        waiting = [row for row in waiting if row not in new]
        both = sorted(kept_rows) + sorted(new)
        merged = merge_runs([run_of(kept_rows), run_of(new)])
        complete, kept = count_windows(merged, spec, watermark)
        ordered = [both[row] for row in merged.order]
        for begin, end in zip(complete.begin, complete.end, strict=True):
            found[tuple(ordered[begin:end])] += 1
        kept_rows = [row for row, keep in zip(ordered, kept, strict=True) if keep]
        settled = Counter(group for group, time, _ in kept_rows if time < watermark)
        assert all(count < spec.size for count in settled.values())
    assert found == by_definition(rows, spec, max(watermarks, default=-100))
