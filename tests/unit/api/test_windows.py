from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidegate.api.explain import described
from tidegate.api.nodes import Window
from tidegate.api.sources import stream
from tidegate.api.streams import Stream
from tidegate.api.user_aggregates import Aggregator
from tidegate.api.windows import row_window
from tidegate.errors import FlowError
from tidegate.window.spec import RowsSpec, WindowSpec

SECOND = 1_000_000


class Frame:
    columns = ("ts", "kind", "paid")


def rides(**settings: Any) -> Any:
    """Untyped, because stand-ins for frames and columns do."""
    frame: Any = Frame()
    return stream(frame, time="ts", name="rides", **({"lateness": "0 seconds"} | settings))


def window_of(given: Stream) -> Window:
    node = given.write_to("noop").node
    assert isinstance(node, Window)
    return node


class Last(Aggregator):
    state, returns = "n long", "long"

    def zero(self) -> tuple[int]:
        return (0,)

    def update(self, state: tuple[int], paid: Any) -> tuple[int]:
        return (paid[-1],)

    def finish(self, state: tuple[int]) -> int:
        return state[0]


def message_of(act: Callable[[], object]) -> str:
    with pytest.raises(FlowError) as caught:
        act()
    return str(caught.value)


def test_aggregates_are_carried_along_and_not_looked_into() -> None:
    count = object()
    node = window_of(rides().window("1 minute", slide="10 seconds", by="kind").agg(n=count))
    assert node.spec == WindowSpec(60 * SECOND, 10 * SECOND)
    assert node.by == ("kind",)
    assert node.aggregates == (("n", count),)


def test_without_a_slide_windows_follow_each_other() -> None:
    assert window_of(rides().window("1 minute").agg(n=1)).spec == WindowSpec(60 * SECOND, 60 * SECOND)
    assert window_of(rides().window(row_window(100)).agg(n=1)).spec == RowsSpec(100, 100)


def test_windows_of_rows_take_the_place_of_a_size() -> None:
    node = window_of(rides().window(row_window(100, slide=10), by="kind").agg(n=1))
    assert (node.spec, node.by) == (RowsSpec(100, 10), ("kind",))


def test_windows_of_rows_have_their_slide_in_rows() -> None:
    said = message_of(lambda: rides().window(row_window(100), slide="10 seconds"))
    assert "[ROW_WINDOW_SLIDE] The slide of windows of rows belongs into tg.row_window" in said
    assert "window(tg.row_window(100, slide=…), by=…)" in said


def test_windows_of_rows_have_no_offset() -> None:
    said = message_of(lambda: rides().window(row_window(100), offset="10 seconds"))
    assert "[ROW_WINDOW_OFFSET] Windows of rows have no offset" in said


@pytest.mark.parametrize(
    ("offset", "offset_us"),
    [
        (None, 0),
        ("15 seconds", 5 * SECOND),
        ("-3 seconds", 7 * SECOND),
        ("INTERVAL 4 SECONDS", 4 * SECOND),
        (timedelta(seconds=-10), 0),
    ],
)
def test_an_offset_shifts_windows_modulo_the_slide(offset: str | timedelta | None, offset_us: int) -> None:
    node = window_of(rides().window("1 minute", slide="10 seconds", offset=offset).agg(n=1))
    assert node.spec == WindowSpec(60 * SECOND, 10 * SECOND, offset_us)


def test_durations_may_be_timedeltas() -> None:
    size, slide = timedelta(minutes=1), timedelta(seconds=10)
    assert window_of(rides().window(size, slide=slide).agg(n=1)).spec == WindowSpec(60 * SECOND, 10 * SECOND)


def test_a_window_may_have_a_name() -> None:
    assert window_of(rides().window("1 minute", name="busy").agg(n=1)).name == "busy"
    assert window_of(rides().window("1 minute").agg(n=1)).name is None
    for wrong in ("", 3):
        assert "NAME_UNUSABLE" in message_of(lambda: rides().window("1 minute", name=wrong))  # noqa: B023


class Node:
    """A node of a Spark column as Java has it."""

    def __init__(self, kind: str, *, names: tuple[str, ...] = (), text: str = "") -> None:
        self._kind, self._names, self._text = kind, names, text

    def getClass(self) -> Node:  # noqa: N802
        return self

    def getSimpleName(self) -> str:  # noqa: N802
        return self._kind

    def name(self) -> Node:
        return self

    def size(self) -> int:
        return len(self._names)

    def head(self) -> str:
        return self._names[0]

    def expression(self) -> str:
        return self._text


class JavaColumn:
    def __init__(self, node: Node) -> None:
        self.node = lambda: node


class Column:
    def __init__(self, node: Node) -> None:
        self._jc = JavaColumn(node)


def test_aliased_columns_give_their_names_and_come_before_keywords() -> None:
    count, top = (
        Column(Node("Alias", names=("n",))),
        Column(Node("SqlExpression", text="max(fare) AS `to p`")),
    )
    node = window_of(rides().window("1 minute").agg(count, top, "min(fare) as low", mean=1))
    assert node.aggregates == (("n", count), ("to p", top), ("low", "min(fare) as low"), ("mean", 1))


@pytest.mark.parametrize(
    "unnamed",
    [
        Column(Node("UnresolvedFunction")),
        Column(Node("Alias", names=("a", "b"))),
        Column(Node("SqlExpression", text="max(cast(fare as int))")),
        "count(*)",
        {"fare": "max"},
        3,
    ],
)
def test_an_aggregate_without_a_name_is_refused(unnamed: Any) -> None:
    said = message_of(lambda: rides().window("1 minute").agg(unnamed))
    assert "[AGGREGATE_NAME_MISSING] An aggregate needs a name" in said
    assert '.agg(F.count("*").alias("n"))' in said


def test_an_alias_and_a_keyword_of_one_name_are_refused() -> None:
    count = Column(Node("Alias", names=("n",)))
    assert "AGGREGATE_NAME_CLASH" in message_of(lambda: rides().window("1 minute").agg(count, N=1))


@pytest.mark.parametrize(("size", "slide"), [(0, None), (-1, None), (10, 0), (10, 11), (2**70, None)])
def test_sizes_that_hold_no_rows_are_refused(size: int, slide: int | None) -> None:
    assert "a size of at least one row" in message_of(lambda: row_window(size, slide=slide))


@pytest.mark.parametrize(("size", "slide"), [(1.5, None), ("100", None), (True, None), (10, 2.0)])
def test_rows_are_counted_in_whole_numbers(size: Any, slide: Any) -> None:
    assert "tg.row_window takes whole numbers of rows" in message_of(lambda: row_window(size, slide=slide))


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
        ("1 second", "0 seconds", "slide of a window must be longer than zero"),
        ("-1 second", None, "size of a window"),
        ("soon", None, "size of a window"),
        ("1 minute", "often", "slide of a window"),
    ],
)
def test_sizes_and_slides_that_make_no_windows_are_refused(size: str, slide: str | None, says: str) -> None:
    assert says in message_of(lambda: rides().window(size, slide=slide))


def test_an_offset_that_is_no_duration_is_refused() -> None:
    assert "offset of a window is not a duration" in message_of(lambda: rides().window("1 s", offset="soon"))


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
    assert f"[WINDOW_APPROXIMATE_INVALID] approximate must be True or False. Got: {wrong!r}" in said


def test_what_no_sample_stands_for_is_refused() -> None:
    said = message_of(lambda: rides().window(row_window(100), approximate=True))
    assert "Windows of rows cannot be approximate. Got: approximate=True with tg.row_window(100)" in said
    mine = Last("paid")
    said = message_of(lambda: rides().window("1 second", approximate=True).agg(n=1, mine=mine))
    assert "[AGGREGATOR_APPROXIMATE] A user-defined aggregate cannot be estimated. Got: mine" in said


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
    assert "name of its own start or end" in said
    assert "with_column" in said


@pytest.mark.parametrize("by", [[3], [None], [""], [("kind", "paid")], None, 3])
def test_groups_are_told_apart_by_names_of_columns(by: Any) -> None:
    assert "by takes names of columns" in message_of(lambda: rides().window("1 second", by=by))


@pytest.mark.parametrize("name", ["_tidegate_n", "_TIDEGATE_time"])
def test_names_that_the_engine_keeps_for_itself_are_refused(name: str) -> None:
    assert f"reserved. Got: {name}" in message_of(lambda: rides().window("1 second", by=name))
    assert f"reserved. Got: {name}" in message_of(lambda: rides().window("1 second").agg(n=1, **{name: 1}))


def test_an_offset_is_part_of_the_explanation() -> None:
    shifted = rides().window("1 minute", slide="10 seconds", offset="4 seconds", name="busy").agg(n=1)
    assert "of 1 minute, slide 10 seconds, offset 4 seconds" in described(shifted._node)
    plain = rides().window("1 minute", name="busy").agg(n=1)
    assert "offset" not in described(plain._node)
