from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate.api.join_conditions import tumbling
from tidegate.api.nodes import Join, Match, Node, Output, Refused, Source, StatelessStep
from tidegate.api.range_queries import Query
from tidegate.api.streams import HIDDEN, HOWS, Stream, stream
from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Unbounded, Within

SECOND = 1_000_000


class Frame:
    """Columns and what was asked for; as strict about `select` as Spark is."""

    def __init__(self, *columns: str, asked: tuple[Any, ...] = ()):
        self.columns = list(columns)
        self.asked = asked

    def filter(self, condition: Any) -> Frame:
        return Frame(*self.columns, asked=("filter", condition))

    def select(self, *columns: Any) -> Frame:
        if len(columns) == 1 and isinstance(columns[0], list):
            columns = tuple(columns[0])
        if not all(isinstance(column, str) for column in columns):
            raise TypeError("a list of columns stands alone or not at all")
        return Frame(*columns, asked=("select", *columns))

    def withColumn(self, name: str, expression: Any) -> Frame:  # noqa: N802  (the name that Spark uses)
        return Frame(*self.columns, name, asked=("withColumn", name, expression))


def a_stream(name: str = "orders", **settings: Any) -> Stream:
    return stream(Frame("ts", "cell"), time="ts", name=name, **settings)


def node_of(given: Stream) -> Node:
    return given.write_to("noop").node


def source_of(given: Stream) -> Source:
    node = node_of(given)
    assert isinstance(node, Source)
    return node


def joined(**changes: Any) -> Join:
    arguments = {"on": "cell", "within": "2 seconds", **changes}
    node = node_of(a_stream("orders").join(a_stream("drivers"), **arguments))
    assert isinstance(node, Join)
    return node


def stepped(given: Stream) -> StatelessStep:
    node = node_of(given)
    assert isinstance(node, StatelessStep)
    return node


def message_of(act: Callable[[], object]) -> str:
    with pytest.raises(FlowError) as caught:
        act()
    return str(caught.value)


# -- streams -------------------------------------------------------------------------------------------------


def test_a_stream_starts_without_lateness_or_idle_timeout_and_a_year_ahead() -> None:
    source = source_of(a_stream())
    assert (source.time, source.name) == ("ts", "orders")
    assert (source.lateness_us, source.idle_timeout_us) == (0, None)
    assert source.max_ahead_us == 366 * 86_400 * SECOND


def test_a_stream_reads_its_durations_and_carries_its_frame_untouched() -> None:
    frame = Frame("ts")
    source = source_of(
        stream(frame, time="ts", name="a", lateness="2 s", idle_timeout="1 min", max_ahead=None)
    )
    assert source.frame is frame
    assert frame.asked == ()
    assert (source.lateness_us, source.idle_timeout_us, source.max_ahead_us) == (
        2 * SECOND,
        60 * SECOND,
        None,
    )


@pytest.mark.parametrize("setting", ["lateness", "idle_timeout", "max_ahead"])
def test_a_wrong_duration_is_blamed_on_its_setting_and_stream(setting: str) -> None:
    assert message_of(lambda: a_stream(**{setting: "soon"})).startswith(
        f"{setting} of 'orders' is not a duration."
    )


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_stream_without_a_name_is_refused(name: Any) -> None:
    assert message_of(lambda: a_stream(name)) == (
        f"A stream needs a name. Got: {name!r}. Progress and errors use it."
    )


@pytest.mark.parametrize("frame", [None, "orders", 3])
def test_a_stream_of_anything_but_a_data_frame_is_refused(frame: Any) -> None:
    assert message_of(lambda: stream(frame, time="ts", name="orders")).startswith(
        f"Stream 'orders' is not made of a data frame. Got: {type(frame).__name__}."
    )


def test_a_time_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert message_of(lambda: stream(Frame("ts", "cell"), time="when", name="orders")) == (
        "Stream 'orders' has no column 'when'. Got: columns ts, cell. Name the event-time column in time=…."
    )


def test_columns_of_the_engine_s_own_are_refused() -> None:
    frame = Frame("ts", "_tidegate_time", "_tidegate_code")
    assert message_of(lambda: stream(frame, time="ts", name="orders")) == (
        "Columns that start with '_tidegate_' are reserved. Got: _tidegate_time, _tidegate_code. Rename them."
    )


# -- boxes ---------------------------------------------------------------------------------------------------


def test_describing_applies_nothing_and_leaves_the_stream_as_it_was() -> None:
    calls: list[object] = []
    orders = a_stream()
    orders.transform(calls.append).filter("fare > 3").select("cell")
    assert calls == []
    assert isinstance(node_of(orders), Source)


def test_two_branches_of_one_stream_share_its_source() -> None:
    orders = a_stream()
    first, second = stepped(orders.filter("fare > 3")), stepped(orders.select("cell"))
    assert first.parent is second.parent is source_of(orders)


def test_filter_and_where_both_filter() -> None:
    orders, frame = a_stream(), Frame("ts")
    for box in (stepped(orders.filter("fare > 3")), stepped(orders.where("fare > 3"))):
        assert box.kind == "filter"
        assert box.apply(frame).asked == ("filter", "fare > 3")


def test_with_column_hands_on_name_and_expression() -> None:
    box = stepped(a_stream().with_column("fare", "expression"))
    assert box.kind == "with_column"
    assert box.apply(Frame("ts")).asked == ("withColumn", "fare", "expression")


def test_transform_applies_the_function_itself() -> None:
    box = stepped(a_stream().transform(lambda frame: frame.filter("cell = 3")))
    assert box.kind == "transform"
    assert box.apply(Frame("ts")).asked == ("filter", "cell = 3")


def test_a_transform_is_a_function() -> None:
    assert "transform needs a function. Got: 'x'" in message_of(lambda: a_stream().transform("x"))  # type: ignore[arg-type]


def test_select_keeps_the_hidden_columns_and_only_those() -> None:
    box = stepped(a_stream().select("cell", "fare"))
    assert box.kind == "select"
    frame = Frame("ts", f"{HIDDEN}time", "cell", f"x{HIDDEN}")
    assert box.apply(frame).columns == ["cell", "fare", f"{HIDDEN}time"]


def test_select_takes_a_list_as_a_data_frame_does() -> None:
    box = stepped(a_stream().select(["cell", "fare"]))
    assert box.apply(Frame("ts", f"{HIDDEN}time")).columns == ["cell", "fare", f"{HIDDEN}time"]


# -- refused rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["late", "rejected"])
def test_refused_rows_are_a_stream_of_their_own(kind: str) -> None:
    orders = a_stream()
    node = node_of(getattr(orders, kind))
    assert isinstance(node, Refused)
    assert (node.kind, node.parent) == (kind, source_of(orders))


@pytest.mark.parametrize("kind", ["late", "rejected"])
def test_only_a_source_has_refused_rows(kind: str) -> None:
    behind = [a_stream().filter("fare > 3"), a_stream().join(a_stream("b"), "cell", None), a_stream().late]
    for one in behind:
        assert message_of(lambda one=one: getattr(one, kind)) == (  # type: ignore[misc]
            f"Only a source stream has {kind} rows. Time is judged once, where rows enter, before any box. "
            f"Take `.{kind}` of the stream that tg.stream(…) returned."
        )


@pytest.mark.parametrize("kind", ["late", "rejected"])
def test_refused_rows_cannot_be_joined_not_even_behind_boxes(kind: str) -> None:
    refused = getattr(a_stream(), kind).filter("fare > 3").select("cell")
    expected = (
        f"The {kind} rows of a stream cannot be joined. "
        "Their partners may be forgotten already, so pairs would be lost at random. "
        "Write them out, or give the stream a larger lateness."
    )
    assert message_of(lambda: refused.join(a_stream("b"), "cell", "1 s")) == expected
    assert message_of(lambda: a_stream("b").join(refused, "cell", "1 s")) == expected


# -- joins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "pairs"),
    [
        ("cell", (("cell", "cell"),)),
        (["cell", "day"], (("cell", "cell"), ("day", "day"))),
        (("cell",), (("cell", "cell"),)),
        ({"cell": "zone", "day": "day"}, (("cell", "zone"), ("day", "day"))),
    ],
)
def test_keys_come_as_a_name_a_list_or_a_mapping(on: Any, pairs: tuple[tuple[str, str], ...]) -> None:
    assert joined(on=on).keys == pairs


@pytest.mark.parametrize("on", [[], {}, None, 3, ["cell", 4]])
def test_a_join_without_keys_is_refused(on: Any) -> None:
    assert message_of(lambda: joined(on=on)) == (
        f"A join needs key columns or a condition. Got: {on!r}. "
        'Give a name, a list of names, a dict {"left_col": "right_col"}, or tg.overlap(…).'
    )


def test_a_key_that_is_named_twice_is_refused() -> None:
    assert "names a key twice. Got: cell, day, cell" in message_of(lambda: joined(on=["cell", "day", "cell"]))


@pytest.mark.parametrize(
    ("within", "condition"),
    [
        ("2 seconds", Within(2 * SECOND, 2 * SECOND)),
        (("2 s", "1 min"), Within(2 * SECOND, 60 * SECOND)),
        (["0 s", "5 us"], Within(0, 5)),
        (timedelta(seconds=3), Within(3 * SECOND, 3 * SECOND)),
        (tumbling("10 seconds"), Tumbling(10 * SECOND)),
        (None, Unbounded()),
    ],
)
def test_a_window_comes_as_one_duration_two_a_tumbling_or_none(
    within: Any, condition: Within | Tumbling | Unbounded
) -> None:
    assert joined(within=within).within == condition


@pytest.mark.parametrize("within", [(), ("1 s",), ("1 s", "2 s", "3 s")])
def test_a_window_of_other_than_two_durations_is_refused(within: Any) -> None:
    assert message_of(lambda: joined(within=within)) == (
        f"within takes two durations, left and right. Got: {within!r}. Or one for both."
    )


def test_a_wrong_window_is_blamed_on_its_side() -> None:
    assert message_of(lambda: joined(within=("soon", "1 s"))).startswith("within (left) is not a duration.")
    assert message_of(lambda: joined(within=("1 s", "-1 s"))).startswith("within (right) is negative.")
    assert message_of(lambda: tumbling("soon")).startswith("tumbling window is not a duration.")


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
    ],
)
def test_spark_s_other_names_for_joins_work_too(spark_name: str, how: str) -> None:
    assert joined(how=spark_name).how == how


def test_a_join_keeps_its_sides_apart_and_carries_its_condition() -> None:
    left, right, condition = a_stream("orders"), a_stream("drivers"), object()
    node = node_of(left.join(right, "cell", "1 s", where=condition))
    assert isinstance(node, Join)
    assert (node.left, node.right) == (source_of(left), source_of(right))
    assert (node.how, node.where) == ("inner", condition)


def test_an_unknown_kind_of_join_is_refused_with_the_known_ones() -> None:
    assert message_of(lambda: joined(how="cross")) == (
        "Unknown kind of join. Got: 'cross'. Use one of inner, left, right, full, left_semi, left_anti."
    )


def test_a_join_with_a_bare_frame_is_refused() -> None:
    assert message_of(lambda: a_stream().join(Frame("ts"), "cell", "1 s")) == (  # type: ignore[arg-type]
        "A stream joins with a stream. Got: Frame. Wrap it: tg.stream(…)."
    )


@pytest.mark.parametrize("how", ["left", "right", "outer", "left_anti"])
def test_lonely_rows_of_the_full_history_are_refused(how: str) -> None:
    kind = "full" if how == "outer" else how
    assert message_of(lambda: joined(how=how, within=None)) == (
        "A join over the full history cannot emit lonely rows. "
        f"Got: how='{kind}' with within=None. Without a window a partner may always still come. "
        "Give a window, or use inner or left_semi."
    )


@pytest.mark.parametrize("how", ["inner", "left_semi"])
def test_joins_that_never_wait_may_have_the_full_history(how: str) -> None:
    assert joined(how=how, within=None).within == Unbounded()


# -- outputs -------------------------------------------------------------------------------------------------


def test_a_function_is_an_output_under_its_own_name_or_the_given_one() -> None:
    def keep(frame: Any, batch: int) -> None:
        raise NotImplementedError

    class Nameless:
        def __call__(self, frame: Any, batch: int) -> None:
            raise NotImplementedError

    output = a_stream().write_to(keep)
    assert (output.function, output.format, output.name) == (keep, None, "keep")
    assert a_stream().write_to(keep, name="pairs").name == "pairs"
    assert a_stream().write_to(Nameless()).name == "function"


def test_a_format_takes_its_name_from_the_path_and_its_options_as_text() -> None:
    output = a_stream().write_to("parquet", "out/pairs/", compression="zstd", maxRecordsPerFile=5)
    assert isinstance(output, Output)
    assert (output.format, output.path, output.name) == ("parquet", "out/pairs/", "pairs")
    assert output.options == {"compression": "zstd", "maxRecordsPerFile": "5"}
    assert output.function is None


def test_a_format_without_a_path_is_named_after_itself() -> None:
    assert a_stream().write_to("noop").name == "noop"
    assert a_stream().write_to("noop", name="nowhere").name == "nowhere"


@pytest.mark.parametrize("target", ["", None, 3])
def test_an_output_that_is_neither_format_nor_function_is_refused(target: Any) -> None:
    assert message_of(lambda: a_stream().write_to(target)) == (
        f"An output is a Spark format or a function. Got: {target!r}. "
        'Write for example write_to("parquet", "out/pairs") or write_to(my_function).'
    )


def test_a_path_is_a_text_or_a_path(tmp_path: Path) -> None:
    output = a_stream().write_to("parquet", tmp_path / "pairs")
    assert (output.path, output.name) == (str(tmp_path / "pairs"), "pairs")
    assert message_of(lambda: a_stream().write_to("parquet", 3)).startswith(  # type: ignore[arg-type]
        "The path of a parquet output is not a path. Got: 3."
    )
    assert "is not a path. Got: ''" in message_of(lambda: a_stream().write_to("parquet", ""))
    assert message_of(lambda: a_stream().write_to("csv")).startswith("A csv output needs a path.")


@pytest.mark.parametrize("name", [3, ""])
def test_the_name_of_an_output_is_a_text(name: Any) -> None:
    said = message_of(lambda: a_stream().write_to("noop", name=name))
    assert said.startswith(f"The name of an output is a text. Got: {name!r}.")


@pytest.mark.parametrize("gap", [0, -1, 1.5, True, "0 seconds"])
def test_a_gap_of_no_windows_is_refused(gap: Any) -> None:
    said = message_of(lambda: a_stream().write_to("noop", max_gap=gap))
    assert said.startswith(f"max_gap is a number of windows, at least one, or a duration. Got: {gap!r}.")


@pytest.mark.parametrize("queries", [None, "x > 1", Query("q", "x > 1"), ["x > 1"]])
def test_a_match_takes_a_list_of_queries(queries: Any) -> None:
    got = queries[0] if isinstance(queries, list) else queries
    said = message_of(lambda: a_stream().match(queries))
    assert said.startswith(f"A match takes a list of queries. Got: {got!r}.")


def test_sifters_lie_in_a_folder(tmp_path: Path) -> None:
    queries = [Query("q", "x > 1")]
    node = node_of(a_stream().match(queries, sources=tmp_path, mark="sampled"))
    assert isinstance(node, Match)
    assert node.sources == str(tmp_path)
    assert "is not a path. Got: 3" in message_of(
        lambda: a_stream().match(queries, sources=3, mark="m")  # type: ignore[arg-type]
    )


def test_a_function_with_a_path_or_options_is_refused() -> None:
    def consume(frame: Any, batch: int) -> None: ...

    message = message_of(lambda: a_stream().write_to(consume, "out", mode="x"))
    assert message == (
        "A function takes no path and no options. Got: out, mode. They would be ignored. "
        "Let the function know them itself, or name a Spark format."
    )


def test_an_idle_timeout_of_zero_is_refused() -> None:
    message = message_of(lambda: a_stream(idle_timeout="0 seconds"))
    assert message.startswith(
        "idle_timeout of 'orders' is zero. Got: '0 seconds'. The stream would count as silent"
    )
