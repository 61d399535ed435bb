"""Which columns of a join its readers ask for."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tidegate.api.joins.conditions import JoinKey
from tidegate.api.nodes import Join, Output, Source
from tidegate.driver.compile.graph_checks import selected
from tidegate.join.within import Within


def join(where: Any = None) -> tuple[Join, tg.Stream]:
    left, right = (Source(None, "ts", name, 0, None, None) for name in "ab")
    node = Join(left, right, (JoinKey("k", "k"),), Within(-1, 1), "inner", where)
    return node, tg.Stream(node)


def out(stream: tg.Stream, name: str) -> Output:
    return stream.write_to(lambda frame, batch: None, name=name)


def test_one_select_says_which_columns_and_in_which_order() -> None:
    node, stream = join()
    assert selected([out(stream.select("v", "k").filter("v > 1"), "one")], node) == ("v", "k")
    assert selected([out(stream.select(["v", "k"]), "one")], node) == ("v", "k")


def test_several_readers_need_what_any_of_them_does() -> None:
    node, stream = join()
    readers = [out(stream.select("v", "k"), "one"), out(stream.select("w", "v"), "two")]
    found = selected(readers, node)
    assert found is not None
    assert set(found) == {"v", "k", "w"}


@pytest.mark.parametrize(
    "read",
    [
        lambda stream: stream,
        lambda stream: stream.filter("v > 1").select("v"),
        lambda stream: stream.select("*"),
        lambda stream: stream.select("v", "v"),
        lambda stream: stream.select("v.inner"),
        lambda stream: stream.select(object()),
        lambda stream: stream.transform(lambda frame: frame),
        lambda stream: stream.window("1 second").agg(n="count(*)"),
    ],
)
def test_whoever_may_need_more_gets_everything(read: Any) -> None:
    node, stream = join()
    both = [out(read(stream), "one"), out(stream.select("k"), "two")]
    assert selected(both, node) is None


def test_a_residual_condition_may_ask_for_any_column() -> None:
    node, stream = join(where="v > w")
    assert selected([out(stream.select("v"), "one")], node) is None
