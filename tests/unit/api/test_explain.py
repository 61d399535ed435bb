from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.api.frames import a_stream, node_of

from tidegate.api.explain import described, summary
from tidegate.api.joins.conditions import overlap
from tidegate.api.joins.time_bounds import UNBOUNDED, between, same_window
from tidegate.api.range_queries import RangeQuery
from tidegate.api.streams import Stream
from tidegate.api.windows import row_window
from tidegate.quantities import duration_text

EXPRESSION: Any = "an expression"


def a_join(**settings: Any) -> Stream:
    return a_stream().join(a_stream("tracks"), **{"on": "cell", "within": "1 second", **settings})


def test_a_flow_is_a_tree_with_the_last_operator_on_top() -> None:
    orders = a_stream(lateness="10 seconds").filter("fare > 3")
    near = orders.join(a_stream("tracks"), "cell", within=between("-5 minutes", "1 minute"))
    busy = near.window("1 minute", by="cell", name="busy").agg(n=EXPRESSION, top=EXPRESSION)
    assert described(node_of(busy.select("n"))).splitlines() == [
        "select",
        "└─ window busy of 1 minute by cell: n, top",
        "   └─ inner join orders_tracks_cell on cell, within -5 minutes … 1 minute",
        "      ├─ filter",
        "      │  └─ stream orders: time ts, lateness 10 seconds",
        "      └─ stream tracks: time ts, lateness 0 seconds",
    ]


LINES: list[tuple[str, Callable[[], Stream]]] = [
    ("stream orders: time ts, lateness 0 seconds", a_stream),
    ("late rows", lambda: a_stream().late),
    ("rejected rows, then select", lambda: a_stream().rejected.select("cell")),
    (
        "left join near on cell = place, within -1 second … 1 second",
        lambda: a_join(on={"cell": "place"}, how="left", name="near"),
    ),
    ("inner join j on cell, same window of 10 seconds", lambda: a_join(within=same_window("10 s"), name="j")),
    ("left_semi join j on cell, full history", lambda: a_join(within=UNBOUNDED, how="left_semi", name="j")),
    (
        "match hits of 2 range queries, then filter, drop",
        lambda: (
            a_stream()
            .match([RangeQuery("a", "x > 1"), RangeQuery("b", "x > 2")], name="hits")
            .filter("x > 1")
            .drop("x")
        ),
    ),
    (
        "window w of 1 hour, slide 10 minutes, offset 5 minutes: n",
        lambda: (
            a_stream().window("1 hour", slide="10 minutes", offset="5 minutes", name="w").agg(n=EXPRESSION)
        ),
    ),
    (
        "window w of 100 rows, slide 10 by a, b: n",
        lambda: a_stream().window(row_window(100, slide=10), by=["a", "b"], name="w").agg(n=EXPRESSION),
    ),
]


@pytest.mark.parametrize(("line", "made"), LINES, ids=[line for line, _ in LINES])
def test_a_stream_in_one_line(line: str, made: Callable[[], Stream]) -> None:
    assert summary(node_of(made())) == line


def test_a_condition_on_sets_is_part_of_the_line() -> None:
    line = summary(node_of(a_join(on=["cell", overlap("tags", at_least=2)], name="j")))
    assert line.startswith("inner join j on cell, ")
    assert "tags" in line


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 seconds"),
        (1, "1 microsecond"),
        (1_500, "1500 microseconds"),
        (1_000, "1 millisecond"),
        (1_500_000, "1500 milliseconds"),
        (1_000_000, "1 second"),
        (-60_000_000, "-1 minute"),
        (90_000_000, "90 seconds"),
        (-7_200_000_000, "-2 hours"),
    ],
)
def test_a_duration_has_its_largest_whole_unit(us: int, text: str) -> None:
    assert duration_text(us) == text
