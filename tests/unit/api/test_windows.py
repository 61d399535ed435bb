from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.api.nodes import Window
from tidegate.api.streams import Stream, stream
from tidegate.api.user_aggregates import udaf
from tidegate.api.windows import rows
from tidegate.errors import FlowError
from tidegate.window.spec import RowsSpec, WindowSpec

SECOND = 1_000_000


class Frame:
    columns = ("ts", "kind", "paid")


def rides(**settings: Any) -> Stream:
    return stream(Frame(), time="ts", name="rides", **settings)


def window_of(given: Stream) -> Window:
    node = given.write_to("noop").node
    assert isinstance(node, Window)
    return node


def message_of(act: Callable[[], object]) -> str:
    with pytest.raises(FlowError) as caught:
        act()
    return str(caught.value)


def test_aggregates_are_carried_along_and_not_looked_into() -> None:
    count = object()
    node = window_of(rides().window("1 minute", "10 seconds", by="kind").agg(n=count))
    assert node.spec == WindowSpec(60 * SECOND, 10 * SECOND)
    assert node.by == ("kind",)
    assert node.aggregates == (("n", count),)


def test_without_a_slide_windows_follow_each_other() -> None:
    assert window_of(rides().window("1 minute").agg(n=1)).spec == WindowSpec(60 * SECOND, 60 * SECOND)
    assert window_of(rides().window(rows(100)).agg(n=1)).spec == RowsSpec(100, 100)


def test_windows_of_rows_take_the_place_of_a_size() -> None:
    node = window_of(rides().window(rows(100, slide=10), by="kind").agg(n=1))
    assert (node.spec, node.by) == (RowsSpec(100, 10), ("kind",))


def test_windows_of_rows_have_their_slide_in_rows() -> None:
    said = message_of(lambda: rides().window(rows(100), slide="10 seconds"))
    assert "have their slide in tg.rows" in said
    assert "window(tg.rows(100, slide=…), by=…)" in said


@pytest.mark.parametrize(("size", "slide"), [(0, None), (-1, None), (10, 0), (10, 11), (2**70, None)])
def test_sizes_that_hold_no_rows_are_refused(size: int, slide: int | None) -> None:
    assert "A window of rows must have at least one" in message_of(lambda: rows(size, slide))


@pytest.mark.parametrize(("size", "slide"), [(1.5, None), ("100", None), (True, None), (10, 2.0)])
def test_rows_are_counted_in_whole_numbers(size: Any, slide: Any) -> None:
    assert "tg.rows takes whole numbers of rows" in message_of(lambda: rows(size, slide))


def test_what_leaves_a_window_can_enter_another() -> None:
    inner = rides().window("1 minute", by=["kind", "paid"]).agg(n=1)
    outer = window_of(inner.filter("n > 3").window("1 hour").agg(n=1))
    assert window_of(inner).by == ("kind", "paid")
    assert outer.by == ()


@pytest.mark.parametrize(
    ("size", "slide", "says"),
    [
        ("0 seconds", None, "longer than zero"),
        ("1 second", "2 seconds", "at most its size"),
        ("1 second", "0 seconds", "slide must be longer than zero"),
        ("-1 second", None, "size of a window"),
        ("soon", None, "size of a window"),
        ("1 minute", "often", "slide of a window"),
    ],
)
def test_sizes_and_slides_that_make_no_windows_are_refused(size: str, slide: str | None, says: str) -> None:
    assert says in message_of(lambda: rides().window(size, slide))


def test_a_window_without_aggregates_is_refused() -> None:
    assert "A window needs an aggregate" in message_of(lambda: rides().window("1 second").agg())


@pytest.mark.parametrize("name", ["kind", "KIND", "window_start", "Window_End"])
def test_an_aggregate_does_not_take_the_name_of_another_column(name: str) -> None:
    said = message_of(lambda: rides().window("1 second", by="kind").agg(n=1, **{name: 1}))
    assert f"An aggregate has the name of another column of the result. Got: {name}" in said


def test_aggregates_do_not_differ_in_case_alone() -> None:
    said = message_of(lambda: rides().window("1 second").agg(total=1, n=1, Total=1))
    assert "An aggregate has the name of another column of the result. Got: Total" in said


def test_windows_are_exact_unless_they_are_said_to_be_approximate() -> None:
    assert not window_of(rides().window("1 second").agg(n=1)).approximate
    assert window_of(rides().window("1 second", approximate=True).agg(n=1)).approximate


@pytest.mark.parametrize("wrong", ["no", "yes", 1, None])
def test_what_is_said_must_be_yes_or_no(wrong: Any) -> None:
    said = message_of(lambda: rides().window("1 second", approximate=wrong))
    assert f"approximate is True or False. Got: {wrong!r}" in said


def test_what_no_sample_stands_for_is_refused() -> None:
    said = message_of(lambda: rides().window(rows(100), approximate=True))
    assert "Windows of rows cannot be approximate. Got: approximate=True beside tg.rows(100)" in said
    mine = udaf(tuple, lambda state, x: state, len, columns="paid", state="n long", returns="long")
    said = message_of(lambda: rides().window("1 second", approximate=True).agg(n=1, mine=mine))
    assert "A user-defined aggregate cannot be estimated. Got: mine" in said


@pytest.mark.parametrize("name", ["n_low", "N_HIGH"])
def test_ends_of_intervals_have_names_that_are_taken(name: str) -> None:
    assert len(window_of(rides().window("1 second").agg(n=1, **{name: 1})).aggregates) == 2
    said = message_of(lambda: rides().window("1 second", approximate=True).agg(n=1, **{name: 1}))
    assert "An aggregate has the name of another column of the result" in said


@pytest.mark.parametrize("by", [["kind", "kind"], ["kind", "paid", "Kind"]])
def test_a_column_groups_once(by: list[str]) -> None:
    said = message_of(lambda: rides().window("1 second", by=by))
    assert f"A window groups by a column twice. Got: {by[-1]}" in said


@pytest.mark.parametrize("by", ["window_start", ["kind", "WINDOW_END"]])
def test_windows_of_windows_cannot_group_by_names_that_they_give_themselves(by: Any) -> None:
    said = message_of(lambda: rides().window("1 second").agg(n=1).window("1 minute", by=by))
    assert "names that its own result gives to start and end" in said
    assert "with_column" in said


@pytest.mark.parametrize("by", [[3], [None], [""], [("kind", "paid")], None, 3])
def test_groups_are_told_apart_by_names_of_columns(by: Any) -> None:
    assert "by takes names of columns" in message_of(lambda: rides().window("1 second", by=by))


@pytest.mark.parametrize("name", ["_tidegate_n", "_TIDEGATE_time"])
def test_names_that_the_engine_keeps_for_itself_are_refused(name: str) -> None:
    assert f"reserved. Got: {name}" in message_of(lambda: rides().window("1 second", by=name))
    assert f"reserved. Got: {name}" in message_of(lambda: rides().window("1 second").agg(n=1, **{name: 1}))
