from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.api.joins.conditions import JoinKey, equal
from tidegate.api.joins.join_node import HOWS
from tidegate.api.joins.time_bounds import UNBOUNDED, between, same_window
from tidegate.api.nodes import Join
from tidegate.api.sources import stream
from tidegate.api.streams import Stream
from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Unbounded, Within

SECOND = 1_000_000


class Frame:
    def __init__(self, *columns: str):
        self.columns = list(columns)


def a_stream(name: str = "orders", **settings: Any) -> Stream:
    frame: Any = Frame("ts", "cell")
    return stream(frame, time="ts", name=name, **settings)


def joined(**changes: Any) -> Join:
    arguments = {"on": "cell", "within": "2 seconds", **changes}
    node = a_stream("orders").join(a_stream("drivers"), **arguments)._node
    assert isinstance(node, Join)
    return node


def message_of(act: Callable[[], object]) -> str:
    with pytest.raises(FlowError) as caught:
        act()
    return str(caught.value)


@pytest.mark.parametrize(
    ("on", "keys"),
    [
        ("cell", (JoinKey("cell", "cell"),)),
        ("order id", (JoinKey("order id", "order id"),)),
        (["cell", "day"], (JoinKey("cell", "cell"), JoinKey("day", "day"))),
        (("cell",), (JoinKey("cell", "cell"),)),
        ({"cell": "zone", "day": "day"}, (JoinKey("cell", "zone"), JoinKey("day", "day"))),
        (["day", {"cell": "zone"}], (JoinKey("day", "day"), JoinKey("cell", "zone"))),
        (equal("cell", null_safe=True), (JoinKey("cell", "cell", null_safe=True),)),
        (
            ["day", equal({"cell": "zone"}, null_safe=True)],
            (JoinKey("day", "day"), JoinKey("cell", "zone", True)),
        ),
        (equal("cell", "day"), (JoinKey("cell", "cell"), JoinKey("day", "day"))),
    ],
)
def test_keys_come_as_names_lists_mappings_or_equalities(on: Any, keys: tuple[JoinKey, ...]) -> None:
    assert joined(on=on).keys == keys


@pytest.mark.parametrize("on", [[], {}, None, 3, ["cell", 4]])
def test_a_join_without_keys_is_refused(on: Any) -> None:
    assert message_of(lambda: joined(on=on)) == (
        "[JOIN_ON_INVALID] A join needs columns that must be equal, or a condition. "
        f"Got: on={on[1] if on == ['cell', 4] else on!r}. "
        'Give a name, a list of names, {"left_name": "right_name"}, tg.overlap(…), or SQL text.'
    )


def test_a_key_that_is_named_twice_is_refused() -> None:
    assert "is given twice. Got: cell." in message_of(lambda: joined(on=["cell", "day", "cell"]))


def test_the_time_condition_is_what_within_says() -> None:
    assert joined(within="2 seconds").within == Within(-2 * SECOND, 2 * SECOND)
    assert joined(within=between("1 s", "1 min")).within == Within(SECOND, 60 * SECOND)
    assert joined(within=same_window("10 seconds")).within == Tumbling(10 * SECOND)
    assert joined(within=UNBOUNDED).within == Unbounded()


@pytest.mark.parametrize("how", HOWS)
def test_every_kind_of_join_is_taken_by_its_own_name(how: str) -> None:
    assert joined(how=how).how == how


@pytest.mark.parametrize(
    ("spark_name", "how"),
    [
        ("leftouter", "left"),
        ("left_outer", "left"),
        ("right_outer", "right"),
        ("rightouter", "right"),
        ("outer", "full"),
        ("full_outer", "full"),
        ("fullouter", "full"),
        ("semi", "left_semi"),
        ("leftsemi", "left_semi"),
        ("anti", "left_anti"),
        ("leftanti", "left_anti"),
        ("LEFT_OUTER", "left"),
    ],
)
def test_spark_s_other_names_for_joins_work_too(spark_name: str, how: str) -> None:
    assert joined(how=spark_name).how == how


def test_a_join_keeps_its_sides_apart_and_carries_its_condition() -> None:
    left, right, condition = a_stream("orders"), a_stream("drivers"), "speed < 10"
    node = left.join(right, "cell", within="1 s", where=condition)._node
    assert isinstance(node, Join)
    assert (node.left, node.right) == (left._node, right._node)
    assert (node.how, node.where) == ("inner", condition)


def test_an_unknown_kind_of_join_is_refused_with_the_known_ones() -> None:
    assert message_of(lambda: joined(how="cross")) == (
        "[JOIN_HOW_UNKNOWN] Unknown kind of join. Got: how='cross'. "
        "Use one of inner, left, right, full, left_semi, left_anti."
    )


def test_a_join_with_a_bare_frame_is_refused() -> None:
    bare: Any = Frame("ts")
    assert message_of(lambda: a_stream().join(bare, "cell", within="1 s")) == (
        "[JOIN_OTHER_INVALID] A stream joins with a stream. Got: Frame. "
        "Make one of a data frame: tg.stream(frame, …); join a static table by transform."
    )


def test_a_join_carries_its_name_and_its_suffix() -> None:
    assert (joined().name, joined().suffix) == (None, "_right")
    named = joined(name="near", suffix="_track")
    assert (named.name, named.suffix) == ("near", "_track")
    assert "NAME_UNUSABLE" in message_of(lambda: joined(name=""))
    assert "JOIN_SUFFIX_INVALID" in message_of(lambda: joined(suffix=""))


def test_a_join_without_a_bound_on_time_is_refused() -> None:
    assert "JOIN_WITHIN_MISSING" in message_of(lambda: joined(within=None))


@pytest.mark.parametrize("how", ["left", "right", "outer", "left_anti"])
def test_unmatched_rows_of_the_full_history_are_refused(how: str) -> None:
    kind = "full" if how == "outer" else how
    assert message_of(lambda: joined(how=how, within=UNBOUNDED)) == (
        "[JOIN_UNBOUNDED_OUTER] A join over the full history cannot emit unmatched rows. "
        f"Got: how='{kind}' without a bound on time. A match may always still arrive. "
        "Give within=tg.between(…), or use inner or left_semi."
    )


@pytest.mark.parametrize("how", ["inner", "left_semi"])
def test_joins_that_never_wait_may_have_the_full_history(how: str) -> None:
    assert joined(how=how, within=UNBOUNDED).within == Unbounded()
