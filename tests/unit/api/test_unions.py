"""What a union of streams says about itself before anything runs, and which unions are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tidegate as tg
from tidegate.api.explain import described
from tidegate.api.joins.join_node import time_of
from tidegate.api.nodes import Union
from tidegate.api.sources import stream
from tidegate.api.streams import Stream
from tidegate.driver.compile.graph_checks import graph_of


class Frame:
    """Just enough of a data frame to be a stream."""

    isStreaming = False  # noqa: N815

    def __init__(self, *columns: str):
        self.columns = list(columns)


def a_stream(name: str, time: str = "ts") -> Stream:
    frame: Any = Frame(time, "cell")
    return stream(frame, time=time, name=name, lateness="10 seconds")


def union_of(given: Stream) -> Union:
    assert isinstance(given._node, Union)
    return given._node


def test_a_union_is_named_by_its_streams_or_by_the_user() -> None:
    orders, more = a_stream("orders"), a_stream("more")
    united = orders.filter("cell > 0").union_by_name(more)
    assert united.name == "orders_more"
    assert united.filter("cell > 1").union_by_name(a_stream("third")).name == "orders_more_third"
    assert orders.union_by_name(more, name="all_orders").name == "all_orders"
    assert repr(united) == "<tidegate.Stream 'orders_more': union orders_more by name>"


def test_operators_behind_a_union_are_named_by_it() -> None:
    united = a_stream("orders").union_by_name(a_stream("more"))
    assert united.join(a_stream("tracks"), "cell", within="5 minutes").name == "orders_more_tracks_cell"


def test_a_union_explains_itself_as_a_tree() -> None:
    united = a_stream("a").union_by_name(a_stream("b").filter("cell > 0"), allow_missing_columns=True)
    assert described(united._node).splitlines() == [
        "union a_b by name, missing columns null",
        "├─ stream a: time ts, lateness 10 seconds",
        "└─ filter",
        "   └─ stream b: time ts, lateness 10 seconds",
    ]


def test_sparks_name_does_the_same() -> None:
    node = union_of(a_stream("a").unionByName(a_stream("b"), allowMissingColumns=True))
    assert (node.allow_missing_columns, [one.name for one in node.sources]) == (True, ["a", "b"])
    assert not union_of(a_stream("a").unionByName(a_stream("b"))).allow_missing_columns


def test_the_streams_of_inner_unions_are_its_streams_in_order() -> None:
    a, b, c = (a_stream(name) for name in "abc")
    inner = b.union_by_name(c).filter("cell > 0")
    assert [one.name for one in union_of(a.union_by_name(inner)).sources] == ["a", "b", "c"]
    graph, _ = graph_of([a.union_by_name(inner).write_to("noop")])
    # Rows enter the outer union from the streams; nobody else reads the inner one.
    assert graph.inputs == {"a_b_c": ("a", "b", "c")}


def test_rows_behind_a_union_have_their_time_from_the_union() -> None:
    united = a_stream("a").union_by_name(a_stream("b"))
    found = united.match([tg.RangeQuery("all", "cell > 0")], name="found")
    graph, _ = graph_of([found.window("1 minute", name="busy").agg(n="count").write_to("noop")])
    assert graph.time_from("found") == "a_b"
    assert graph.unions == {"a_b": ("a", "b")}
    assert graph.may_sift() == frozenset()


@pytest.mark.parametrize(
    ("second", "time"),
    [
        (a_stream("b"), "ts"),
        (a_stream("b").filter("cell > 0").select("ts", "cell"), "ts"),
        (a_stream("b").transform(lambda frame: frame), None),
        (a_stream("b", time="at"), None),
    ],
)
def test_a_column_shows_the_time_of_a_union_if_it_does_in_every_stream(
    second: Stream, time: str | None
) -> None:
    assert time_of(a_stream("a").union_by_name(second)._node) == time


def windowed(given: Stream) -> Stream:
    return given.window("1 minute").agg(n="count")


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda a, b: a.union_by_name(Frame("ts")), "UNION_OTHER_INVALID"),
        (lambda a, b: a.union_by_name(windowed(b)), "UNION_OF_OPERATOR"),
        (
            lambda a, b: a.join(b, "cell", within="1 minute").filter("true").union_by_name(a),
            "UNION_OF_OPERATOR",
        ),
        (lambda a, b: a.late.union_by_name(b), "STREAM_REFUSED_AS_INPUT"),
        (lambda a, b: a.union_by_name(b).late, "STREAM_REFUSED_NOT_SOURCE"),
    ],
)
def test_what_cannot_be_united_is_refused(act: Callable[[Stream, Stream], object], code: str) -> None:
    with pytest.raises(tg.FlowError) as raised:
        act(a_stream("a"), a_stream("b"))
    assert raised.value.code == code
