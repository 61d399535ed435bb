"""What tasks make of single rows: partials that travel once or not at all are there all the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.window.aggregate.aggregates import aggregate, counting_all
from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec
from tidegate.worker.runtime.layout import PANE, ROWS, SEEN, TAG, WindowLayout
from tidegate.worker.window.received import ReceivedPartials
from tidegate.worker.window.work import LATE, ON_TIME

SPEC = WindowSpec(10, 10)
COUNT, SUM, MAX = (aggregate(name).parts[0] for name in ("count", "sum", "max"))
LAYOUT = WindowLayout(
    "window1",
    "rides",
    SPEC,
    ("k",),
    ((COUNT, ("n",)), (SUM, ("total",)), (MAX, ("top",))),
    (),
    4,
    b"",
    carried={"n": 1, "total": "total", "top": "total"},
)
MARKER = -2


def batches(**columns: Sequence[float | None]) -> list[pa.RecordBatch]:
    named = {"tag": TAG, "pane": PANE, "rows": ROWS, "seen": SEEN}
    table = pa.table({named.get(name, name): values for name, values in columns.items()})
    return list(table.to_batches(2))


def test_a_single_row_is_one_row_of_the_pane_that_its_time_lies_in() -> None:
    tags = [ON_TIME, MARKER, LATE, ON_TIME]
    received = ReceivedPartials(
        batches(tag=tags, seen=[23, None, 4, 39], k=[1, None, 2, 3], total=[0.5, None, 1.5, 2.5]), LAYOUT
    )
    assert received.single
    assert (received.rows(ON_TIME), received.rows(LATE)) == (2, 1)
    assert received.starts(Panes(SPEC))[[0, 3]].tolist() == [20, 30]
    taken = received.taken(["k"], np.array([3, 0]))
    assert taken.to_pydict() == {"k": [3, 1], "n": [1, 1], "total": [2.5, 0.5], "top": [2.5, 0.5]}


def test_a_partial_says_itself_what_it_is_of() -> None:
    added_up = batches(
        tag=[ON_TIME, LATE],
        pane=[2, None],
        rows=[7, 2],
        seen=[29, 3],
        k=[1, None],
        n=[7, 2],
        total=[3.5, 1.0],
        top=[2.0, 1.0],
    )
    received = ReceivedPartials(added_up, LAYOUT)
    assert not received.single
    assert (received.rows(ON_TIME), received.rows(LATE)) == (7, 2)
    assert received.starts(Panes(SPEC))[0] == 20
    assert received.taken(["k"], np.array([0])).to_pydict() == {
        "k": [1],
        "n": [7],
        "total": [3.5],
        "top": [2.0],
    }


def test_what_is_never_null_counts_as_one_in_every_row() -> None:
    assert counting_all(COUNT).row == ("1L",)
    assert counting_all(COUNT).pane == COUNT.pane
    assert counting_all(SUM) == SUM
