from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.oracle.plain_join import PlainJoin
from tests.unit.messages.expecting import expect

import tidegate as tg
from tidegate.api.joins.join_node import How
from tidegate.api.range_queries import RangeQuery
from tidegate.api.sources import stream
from tidegate.api.streams import Stream
from tidegate.driver.compile.compiler import _Compiler
from tidegate.driver.compile.graph_checks import check_estimates, check_outputs, graph_of, joins_by_content
from tidegate.join.within import Unbounded, Within
from tidegate.model.graph import PAIRS, FlowGraph


@dataclass
class Frame:
    """As much of a data frame as describing a flow needs."""

    columns: tuple[str, ...] = ("ts", "k")


#: Any expression: describing a flow does not read it.
COUNT: Any = "count(*)"


def source(name: str) -> Stream:
    frame: Any = Frame()
    return stream(frame, time="ts", name=name)


def joined(left: Stream, right: Stream, how: How) -> Stream:
    return left.join(right, on="k", within="1 second", how=how)


def graph(*streams: Stream) -> FlowGraph:
    return graph_of([one.write_to("noop", name=f"o{i}") for i, one in enumerate(streams)])[0]


def allowed(*streams: Stream) -> int:
    return len(graph(*streams).may_lose(PAIRS))


def test_two_outputs_do_not_share_a_name_or_a_path() -> None:
    a = source("a")
    check_outputs(
        [a.write_to("parquet", f"out/{name}", name=name) for name in "ab"] + [a.late.write_to("noop")]
    )
    with pytest.raises(tg.FlowError, match=r"OUTPUT_NAMES_EQUAL.*Two outputs have the same name. Got: a"):
        check_outputs([a.write_to("parquet", "out/a"), a.write_to("parquet", "more/b")])
    with pytest.raises(
        tg.FlowError, match=r"OUTPUT_PATHS_EQUAL.*Two outputs write to the same path. Got: out/a"
    ):
        check_outputs([a.write_to("parquet", "out/a"), a.write_to("json", "out/a/", name="b")])


def test_a_node_is_behind_every_output_that_it_contributes_to() -> None:
    a, b = source("a"), source("b")
    near = joined(a, b, "inner")
    busy = near.filter("k > 0").window("1 second").agg(n=COUNT)
    outputs = [
        near.write_to("noop", name="near"),
        busy.write_to("noop", name="busy"),
        a.write_to("noop", name="a"),
    ]
    flow, _ = graph_of(outputs)
    assert flow.outputs_of("a_b_k") == ["busy", "near"]
    assert flow.outputs_of("a_b_k_window") == ["busy"]
    assert flow.outputs_of("a") == ["a", "busy", "near"]


@pytest.mark.parametrize(
    ("how", "count"),
    [("inner", 1), ("left_semi", 1), ("left", 0), ("right", 0), ("full", 0), ("left_anti", 0)],
)
def test_only_joins_without_lonely_rows_may_skip(how: How, count: int) -> None:
    assert allowed(joined(source("a"), source("b"), how)) == count


def test_a_join_that_feeds_one_with_lonely_rows_may_not_skip() -> None:
    near = joined(source("a"), source("b"), "inner")
    assert allowed(joined(near, source("c"), "inner")) == 2
    assert allowed(joined(near, source("c"), "left")) == 0


def test_one_reader_that_would_be_wrong_is_enough() -> None:
    near = joined(source("a"), source("b"), "inner")
    assert allowed(near.filter("k > 0"), joined(near, source("c"), "left_anti")) == 0


def repaired(*streams: Stream) -> int:
    return len(graph(*streams).may_repair())


def test_only_joins_whose_results_go_straight_to_outputs_may_repair() -> None:
    near = joined(source("a"), source("b"), "inner")
    assert repaired(near.filter("k > 0")) == 1
    assert repaired(near.match([RangeQuery("all", where="k > 0")])) == 1
    assert repaired(joined(source("a"), source("b"), "left_semi")) == 1
    # The first join would hand late rows to the second, which alone may repair.
    assert repaired(joined(near, source("c"), "inner")) == 1
    assert repaired(near, joined(near, source("c"), "inner")) == 1
    assert repaired(joined(source("a"), source("b"), "left")) == 0
    where = source("a").join(source("b"), on="k", within="1 second", how="left_semi", where="k > 0")
    assert repaired(where) == 0


def test_rows_of_a_source_may_be_sifted_unless_a_row_behind_would_be_wrong() -> None:
    asked = [RangeQuery("all", where="k > 0")]
    hits = source("a").match(asked)
    assert graph(hits).may_sift() == {"a_match"}
    assert graph(joined(hits, source("b"), "inner")).may_sift() == {"a_match"}
    assert graph(joined(hits, source("b"), "left")).may_sift() == set()
    assert graph(joined(source("a"), source("b"), "inner").match(asked)).may_sift() == set()


def test_estimates_go_to_outputs_past_no_operator_that_computes_with_them() -> None:
    about = source("a").window("1 second", approximate=True).agg(n=COUNT)
    check_estimates(graph(about, about.filter("n > 0")))
    with pytest.raises(tg.FlowError, match=r"WINDOW_ESTIMATES_REUSED.*A window reads"):
        check_estimates(graph(about.window("2 seconds").agg(n=COUNT)))
    with pytest.raises(tg.FlowError, match=r"WINDOW_ESTIMATES_REUSED.*A join reads"):
        check_estimates(graph(joined(about, source("b"), "inner")))


def test_time_is_needed_below_operators_that_go_by_it_and_passes_through_matches() -> None:
    near = joined(source("a"), source("b"), "inner")
    hits = near.match([RangeQuery("all", where="k > 0")])
    assert graph(hits).needs_time() == set()
    flow = graph(hits.window("1 second").agg(n=COUNT))
    assert flow.needs_time() == {"a_b_k", "a_b_k_match"}
    assert flow.time_from("a_b_k_match") == "a_b_k"


@pytest.mark.parametrize(
    ("shed", "chooses"),
    [
        (tg.Shed(), True),
        (tg.Shed(join="selective"), False),
        (tg.Shed(repair="idle"), False),
        (tg.Shed(utility="n"), False),
    ],
)
def test_sets_without_a_key_choose_by_content_unless_it_must_be_known_later_what_was_not_looked_at(
    shed: tg.Shed, chooses: bool
) -> None:
    sets = PlainJoin(
        "sets", "a", "b", "inner", Within(-1, 1), (), (), condition=tg.overlap("items", 1), spread=True
    )
    others = [
        replace(sets, name="keyed", spread=False),
        replace(sets, name="plain", condition=None, spread=False),
        replace(sets, name="function", condition=tg.pairwise(max, "n")),
        replace(sets, name="history", within=Unbounded()),
    ]
    layouts = [one.layout(4) for one in (sets, *others)]
    assert joins_by_content(layouts, shed) == (("sets",) if chooses else ())


def test_an_operator_that_was_not_compiled_is_our_fault() -> None:
    compiler: Any = SimpleNamespace(compiled=SimpleNamespace(operator_of=lambda node: None))
    near = joined(source("a"), source("b"), "inner").write_to("noop").node
    error = expect("INTERNAL_OPERATOR_MISSING", lambda: _Compiler.frame(compiler, near))
    assert "bug in Tidegate" in error.details["remedy"]
