from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.frames import Frame, a_stream, node_of, source_of, stepped
from tests.unit.messages.expecting import expect

from tidegate.api.nodes import Match, Refused, Source
from tidegate.api.range_queries import RangeQuery
from tidegate.api.streams import HIDDEN, Stream
from tidegate.api.windows import row_window

EXPRESSION: Any = "an expression"


def problem_of(code: str, act: Callable[[], object]) -> str:
    return str(expect(code, act).details["problem"])


# -- steps ---------------------------------------------------------------------------------------------------


def test_describing_applies_nothing_and_leaves_the_stream_as_it_was() -> None:
    calls: list[Any] = []
    orders = a_stream()
    orders.transform(calls.append).filter("fare > 3").select("cell")  # type: ignore[arg-type]
    assert calls == []
    assert isinstance(node_of(orders), Source)


def test_two_branches_of_one_stream_share_its_source() -> None:
    orders = a_stream()
    first, second = stepped(orders.filter("fare > 3")), stepped(orders.select("cell"))
    assert first.parent is second.parent is source_of(orders)


def test_filter_and_where_both_filter() -> None:
    orders, frame = a_stream(), Frame("ts")
    for step in (stepped(orders.filter("fare > 3")), stepped(orders.where("fare > 3"))):
        assert step.kind == "filter"
        assert step.apply(frame).asked == ("filter", "fare > 3")


STEPS: list[tuple[str, Callable[[Stream], Stream], tuple[Any, ...]]] = [
    ("with_column", lambda s: s.with_column("fare", EXPRESSION), ("withColumn", "fare", EXPRESSION)),
    ("with_columns", lambda s: s.with_columns({"a": EXPRESSION}), ("withColumns", {"a": EXPRESSION})),
    ("with_column_renamed", lambda s: s.with_column_renamed("a", "b"), ("withColumnRenamed", "a", "b")),
    ("drop", lambda s: s.drop("a", "b"), ("drop", "a", "b")),
    ("transform", lambda s: s.transform(lambda frame: frame.filter("cell = 3")), ("filter", "cell = 3")),
]


@pytest.mark.parametrize(("kind", "act", "asked"), STEPS, ids=[kind for kind, _, _ in STEPS])
def test_a_step_asks_the_frame_for_the_same(
    kind: str, act: Callable[[Stream], Stream], asked: tuple[Any, ...]
) -> None:
    step = stepped(act(a_stream()))
    assert step.kind == kind
    assert step.apply(Frame("ts")).asked == asked


@pytest.mark.parametrize(
    ("name", "as_in_spark", "arguments"),
    [
        ("with_column", "withColumn", ("fare", EXPRESSION)),
        ("with_columns", "withColumns", ({"fare": EXPRESSION},)),
        ("with_column_renamed", "withColumnRenamed", ("a", "b")),
    ],
)
def test_a_step_also_has_the_name_that_spark_uses(
    name: str, as_in_spark: str, arguments: tuple[Any, ...]
) -> None:
    steps = [stepped(getattr(a_stream(), one)(*arguments)) for one in (name, as_in_spark)]
    assert [step.kind for step in steps] == [name, name]
    assert steps[0].apply(Frame("ts")).asked == steps[1].apply(Frame("ts")).asked


def test_a_transform_has_the_version_that_it_is_given() -> None:
    assert stepped(a_stream().transform(lambda frame: frame)).version is None
    assert stepped(a_stream().transform(lambda frame: frame, version="2")).version == "2"


def test_a_transform_is_a_function() -> None:
    error = expect("STEP_TRANSFORM_NOT_CALLABLE", lambda: a_stream().transform("x"))  # type: ignore[arg-type]
    assert error.details["got"] == "'x'"


@pytest.mark.parametrize("columns", [["cell", "fare"], ("cell", "fare")])
def test_select_keeps_the_hidden_columns_and_only_those(columns: Any) -> None:
    orders = a_stream()
    step = stepped(orders.select(columns) if isinstance(columns, list) else orders.select(*columns))
    assert (step.kind, step.columns) == ("select", ("cell", "fare"))
    frame = Frame("ts", f"{HIDDEN}time", "cell", f"x{HIDDEN}")
    assert step.apply(frame).columns == ["cell", "fare", f"{HIDDEN}time"]


def test_a_star_has_the_hidden_columns_already() -> None:
    step = stepped(a_stream().select("*"))
    assert step.apply(Frame("ts", f"{HIDDEN}time")).columns == ["ts", f"{HIDDEN}time"]
    assert step.columns is None


def test_columns_of_the_engine_cannot_be_dropped() -> None:
    error = expect("COLUMN_NAME_RESERVED", lambda: a_stream().drop("cell", f"{HIDDEN}time"))
    assert error.details["got"] == f"{HIDDEN}time"


# -- names ---------------------------------------------------------------------------------------------------


def a_join(**settings: Any) -> Stream:
    return a_stream().join(a_stream("tracks"), **{"on": "cell", "within": "1 second", **settings})


QUERIES = [RangeQuery("airport", "lat > 40.6")]
NAMES: list[tuple[Callable[[], Stream], str]] = [
    (a_stream, "orders"),
    (lambda: a_stream().filter("x > 1").select("cell"), "orders"),
    (lambda: a_stream().late, "orders_late"),
    (lambda: a_stream().rejected.select("cell"), "orders_rejected"),
    (a_join, "orders_tracks_cell"),
    (lambda: a_join(on=["cell", {"day": "date"}]), "orders_tracks_cell_day"),
    (lambda: a_join(name="near"), "near"),
    (lambda: a_join(name="near").filter("x > 1").match(QUERIES), "near_match"),
    (lambda: a_stream().match(QUERIES, name="hits"), "hits"),
    (lambda: a_stream().window("1 minute").agg(n=EXPRESSION), "orders_window"),
    (lambda: a_stream().window("1 minute", by=["cell", "day"]).agg(n=EXPRESSION), "orders_window_cell_day"),
    (lambda: a_join().window("1 minute", by="cell", name="busy").agg(n=EXPRESSION), "busy"),
]


@pytest.mark.parametrize(("made", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_default_name_is_made_of_inputs_and_keys(made: Callable[[], Stream], name: str) -> None:
    assert made().name == name
    assert made().write_to("parquet", "out/elsewhere").name == name
    assert made().write_to("noop", name="mine").name == "mine"


@pytest.mark.parametrize("name", ["", " ", 3, "a\nb"])
@pytest.mark.parametrize(
    ("kind", "act"),
    [
        ("a join", lambda name: a_join(name=name)),
        ("a match", lambda name: a_stream().match(QUERIES, name=name)),
        ("a window", lambda name: a_stream().window("1 minute", name=name)),
        ("an output", lambda name: a_stream().write_to("noop", name=name)),
    ],
)
def test_a_name_that_cannot_be_used_is_blamed_on_what_it_names(
    kind: str, act: Callable[[Any], object], name: Any
) -> None:
    assert problem_of("NAME_UNUSABLE", lambda: act(name)) == f"The name of {kind} is not usable"


# -- what is known of a stream -------------------------------------------------------------------------------


def test_a_stream_shows_its_name_and_what_makes_it() -> None:
    assert repr(a_stream()) == "<tidegate.Stream 'orders': stream orders: time ts, lateness 0 seconds>"
    assert repr(a_stream().filter("x > 1").select("cell")).endswith(", then filter, select>")


def test_explain_prints_the_flow(capsys: pytest.CaptureFixture[str]) -> None:
    a_stream().filter("x > 1").explain()
    assert capsys.readouterr().out == "filter\n└─ stream orders: time ts, lateness 0 seconds\n"


# -- refused rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["late", "rejected"])
def test_refused_rows_are_a_stream_of_their_own(kind: str) -> None:
    orders = a_stream()
    node = node_of(getattr(orders, kind))
    assert isinstance(node, Refused)
    assert (node.kind, node.parent) == (kind, source_of(orders))


@pytest.mark.parametrize("kind", ["late", "rejected"])
@pytest.mark.parametrize("behind", [lambda: a_stream().filter("x > 1"), a_join, lambda: a_stream().late])
def test_only_a_source_has_refused_rows(kind: str, behind: Callable[[], Stream]) -> None:
    act = lambda: getattr(behind(), kind)  # noqa: E731
    assert problem_of("STREAM_REFUSED_NOT_SOURCE", act) == f"Only a source stream has {kind} rows"


@pytest.mark.parametrize("kind", ["late", "rejected"])
def test_refused_rows_enter_no_operator_not_even_behind_steps(kind: str) -> None:
    refused = getattr(a_stream(), kind).filter("fare > 3").select("cell")
    acts: dict[str, list[Callable[[], object]]] = {
        "joined": [
            lambda: refused.join(a_stream("b"), "cell", within="1 s"),
            lambda: a_stream("b").join(refused, "cell", within="1 s"),
        ],
        "matched": [lambda: refused.match(QUERIES)],
        "aggregated": [lambda: refused.window("1 minute")],
    }
    for done, calls in acts.items():
        for act in calls:
            error = expect("STREAM_REFUSED_AS_INPUT", act)
            assert error.details["problem"] == f"The {kind} rows of a stream cannot be {done}"
            assert error.details["got"] == f"orders.{kind}"


# -- operators -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [None, "tracks", Frame("ts")])
def test_a_stream_joins_with_a_stream(other: Any) -> None:
    error = expect("JOIN_OTHER_INVALID", lambda: a_stream().join(other, "cell", within="1 s"))
    assert error.details["got"] == type(other).__name__


@pytest.mark.parametrize("queries", [None, "x > 1", RangeQuery("q", "x > 1"), ["x > 1"]])
def test_a_match_takes_a_list_of_queries(queries: Any) -> None:
    got = queries[0] if isinstance(queries, list) else queries
    error = expect("MATCH_QUERIES_TYPE", lambda: a_stream().match(queries))
    assert error.details["got"] == repr(got)


def test_a_match_keeps_its_queries_its_folder_and_the_column_of_samples(tmp_path: Path) -> None:
    node = node_of(a_stream().match(QUERIES, publish_to=tmp_path, sample_column="sampled"))
    assert isinstance(node, Match)
    assert node.queries == tuple(QUERIES)
    assert (node.publish_to, node.sample_column) == (str(tmp_path), "sampled")
    plain = node_of(a_stream().match(QUERIES))
    assert isinstance(plain, Match)
    assert (plain.publish_to, plain.sample_column) == (None, None)


@pytest.mark.parametrize("given", [{"publish_to": "filters"}, {"sample_column": "sampled"}])
def test_folder_and_samples_go_together(given: dict[str, str]) -> None:
    expect("MATCH_PUBLISH_INCOMPLETE", lambda: a_stream().match(QUERIES, **given))


def test_the_folder_of_a_match_is_a_path() -> None:
    act = lambda: a_stream().match(QUERIES, publish_to=3, sample_column="m")  # type: ignore[arg-type]  # noqa: E731
    assert problem_of("PATH_TYPE", act) == "publish_to of a match is not a path"


@pytest.mark.parametrize("size", ["1 minute", row_window(10)])
def test_hidden_columns_are_neither_grouped_by_nor_made_by_a_window(size: Any) -> None:
    expect("COLUMN_NAME_RESERVED", lambda: a_stream().window(size, by=f"{HIDDEN}time"))
    made: dict[str, Any] = {f"{HIDDEN}n": EXPRESSION}
    expect("COLUMN_NAME_RESERVED", lambda: a_stream().window(size, by="cell").agg(**made))
