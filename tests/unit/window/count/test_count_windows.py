from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.window.aggregate.merge_runs import PartialRun, merge_runs
from tidegate.window.count.count_windows import count_windows
from tidegate.window.spec import RowsSpec


def test_complete_windows_come_out_and_the_rest_is_kept() -> None:
    """The picture in the module's docstring: nine rows, seven of them settled, size 4 and slide 2."""
    rows = PartialRun(np.zeros(9, np.uint64), np.arange(1, 10), tie=np.zeros(9, np.int64))
    complete, kept = count_windows(merge_runs([rows]), RowsSpec(4, 2), watermark=8)
    assert complete.at.tolist() == [1, 3]
    assert (complete.end - complete.begin).tolist() == [4, 4]
    assert (np.flatnonzero(kept) + 1).tolist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(("size", "slide"), [(0, 0), (3, 0), (3, 4), (-1, -1)])
def test_a_window_of_rows_has_a_row_and_a_slide_within_it(size: int, slide: int) -> None:
    with pytest.raises(FlowError, match=r"ROW_WINDOW_SIZE_INVALID.*at least one.*tg\.row_window"):
        RowsSpec(size, slide)
