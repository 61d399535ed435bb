from __future__ import annotations

import pytest

from tidegate.errors import FlowError
from tidegate.window.drop.drop_window import DropWindow
from tidegate.window.drop.network import (
    DropJoinNode,
    DropOutputNode,
    DropSourceNode,
    DropStepNode,
    DropWindowNode,
    Network,
    Node,
)
from tidegate.window.drop.placement import DropPlacement, place
from tidegate.window.spec import RowsSpec, WindowSpec

TEN, HUNDRED = WindowSpec(10, 10), WindowSpec(100, 100)


def arrows(drop: DropPlacement) -> list[tuple[str, str]]:
    return [(point.parent, point.child) for point in drop.points]


def nested(inner: WindowSpec, outer: WindowSpec, gap: int) -> Network:
    return Network(
        (
            DropSourceNode("rows"),
            DropStepNode("before", "rows"),
            DropWindowNode("inner", "before", inner),
            DropStepNode("between", "inner"),
            DropWindowNode("outer", "between", outer),
            DropStepNode("behind", "outer"),
            DropOutputNode("out", "behind", gap),
        )
    )


def test_a_long_gap_lets_rows_go_at_the_source() -> None:
    (drop,) = place(nested(TEN, HUNDRED, 10))
    assert (drop.outputs, drop.slide_us, drop.max_gap) == (("out",), 100, 10)
    assert arrows(drop) == [("rows", "before")]
    assert drop.points[0].window == DropWindow(109, 100, 10)
    assert [point.window.size_us for point in drop.behind] == [109, 109, 100, 100, 1, 1]


def test_a_gap_too_short_for_rows_to_go_ends_in_front_of_the_first_window_that_has_less_to_do() -> None:
    # Seen from the outer window's results all can go; of its input nothing, with one window in ten missing.
    (drop,) = place(nested(WindowSpec(10, 1), WindowSpec(100, 1), 10))
    assert arrows(drop) == [("between", "outer")]
    # Here inner windows can be skipped, but their rows overlap too much to go.
    (drop,) = place(nested(WindowSpec(50, 10), WindowSpec(10, 10), 4))
    assert arrows(drop) == [("before", "inner")]


def split(*branches: Node) -> Network:
    return Network((DropSourceNode("rows"), DropStepNode("shared", "rows"), *branches))


def test_outputs_of_a_split_decide_together_where_rows_can_go_in_front_of_it() -> None:
    (drop,) = place(
        split(
            DropWindowNode("a", "shared", WindowSpec(3, 2)),
            DropOutputNode("out a", "a", 9),
            DropWindowNode("b", "shared", WindowSpec(3, 3)),
            DropOutputNode("out b", "b", 9),
        )
    )
    assert drop.outputs == ("out a", "out b")
    assert (drop.slide_us, drop.max_gap) == (6, 3)
    assert [point.window for point in drop.points] == [DropWindow(7, 6, 3)]
    assert arrows(drop) == [("rows", "shared")]


def test_outputs_of_a_split_decide_apart_where_their_common_windows_are_too_long_for_a_gap() -> None:
    drops = place(
        split(
            DropWindowNode("a", "shared", WindowSpec(7, 7)),
            DropOutputNode("out a", "a", 2),
            DropWindowNode("b", "shared", WindowSpec(5, 5)),
            DropOutputNode("out b", "b", 20),
        )
    )
    assert [drop.outputs for drop in drops] == [("out a",), ("out b",)]
    assert [arrows(drop) for drop in drops] == [[("shared", "a")], [("shared", "b")]]


def test_a_window_whose_rows_also_go_out_decides_with_those_above_it() -> None:
    (drop,) = place(
        split(
            DropWindowNode("a", "shared", TEN),
            DropOutputNode("out a", "a", 100),
            DropWindowNode("b", "a", HUNDRED),
            DropOutputNode("out b", "b", 10),
        )
    )
    assert (drop.outputs, drop.slide_us, drop.max_gap) == (("out a", "out b"), 100, 10)
    assert arrows(drop) == [("rows", "shared")]


def test_windows_that_begin_at_different_times_decide_together_in_longer_common_windows() -> None:
    (drop,) = place(
        split(
            DropWindowNode("a", "shared", WindowSpec(4, 4, 1)),
            DropOutputNode("out a", "a", 9),
            DropWindowNode("b", "shared", WindowSpec(6, 6, 3)),
            DropOutputNode("out b", "b", 9),
        )
    )
    # From 1 on, three windows of a end at 13 and two of b at 15; from 3 on, those of a end at 17.
    assert (drop.slide_us, drop.offset_us, drop.max_gap) == (12, 1, 3)
    assert [point.window for point in drop.points] == [DropWindow(14, 12, 3, offset_us=1)]
    # Behind the windows, the last start in a common window is 8 after its begin for a, and 8 for b.
    assert [point.window.size_us for point in drop.behind][-2:] == [9, 9]


def test_nothing_goes_in_front_of_a_split_to_somebody_who_needs_all_rows() -> None:
    (drop,) = place(
        split(
            DropWindowNode("a", "shared", TEN),
            DropOutputNode("out a", "a", 10),
            DropOutputNode("raw", "shared"),
        )
    )
    assert arrows(drop) == [("shared", "a")]


def test_a_drop_does_not_cross_windows_of_so_many_rows() -> None:
    (drop,) = place(
        split(
            DropWindowNode("by count", "shared", RowsSpec(100, 10)),
            DropWindowNode("a", "by count", TEN),
            DropOutputNode("out a", "a", 10),
        )
    )
    assert arrows(drop) == [("by count", "a")]
    assert (
        place(
            split(DropWindowNode("by count", "shared", RowsSpec(9, 9)), DropOutputNode("out", "by count", 5))
        )
        == ()
    )


def test_windows_that_group_differently_are_crossed() -> None:
    network = split(
        DropWindowNode("a", "shared", TEN, by=("cell", "kind")),
        DropWindowNode("b", "a", HUNDRED, by=("cell",)),
        DropOutputNode("out", "b", 10),
    )
    assert arrows(place(network)[0]) == [("rows", "shared")]


def joined(inner: bool = True, bounds: tuple[int, int] = (-30, 20)) -> Network:
    return Network(
        (
            DropSourceNode("left"),
            DropSourceNode("right"),
            DropJoinNode("join", "left", "right", *bounds, inner),
            DropWindowNode("a", "join", TEN),
            DropOutputNode("out", "a", 20),
        )
    )


def test_a_join_is_crossed_to_both_sides_with_the_time_that_rows_wait_for_partners() -> None:
    (drop,) = place(joined())
    assert [(p.parent, p.window) for p in drop.points] == [
        ("left", DropWindow(30, 10, 20, lead_us=20)),
        ("right", DropWindow(40, 10, 20, lead_us=30)),
    ]


def test_a_join_that_shows_lonely_rows_needs_all_partners() -> None:
    (drop,) = place(joined(inner=False))
    assert [(p.parent, p.window) for p in drop.points] == [
        ("left", DropWindow(60, 10, 20, lead_us=20)),
        ("right", DropWindow(60, 10, 20, lead_us=30)),
    ]


def test_outputs_joined_over_one_source_decide_together_on_both_of_theirs() -> None:
    network = Network((*joined().nodes, DropWindowNode("b", "left", TEN), DropOutputNode("out b", "b", 20)))
    (drop,) = place(network)
    assert drop.outputs == ("out", "out b")
    assert sorted(arrows(drop)) == [("left", "b"), ("left", "join"), ("right", "join")]


def test_an_output_without_windows_of_its_own_has_no_drop() -> None:
    assert place(split(DropOutputNode("raw", "shared", 10))) == ()
    assert place(Network((*joined().nodes[:3], DropOutputNode("pairs", "join", 10)))) == ()


@pytest.mark.parametrize(
    ("bounds", "inner", "left", "right"),
    [
        # Right rows 20 to 50 later: a pair has the time of the right row, and its left row is 20 earlier.
        ((20, 50), True, DropWindow(40, 10, 20, lead_us=50), DropWindow(10, 10, 20)),
        ((20, 50), False, DropWindow(60, 10, 20, lead_us=50), DropWindow(60, 10, 20)),
        ((-50, -20), True, DropWindow(10, 10, 20), DropWindow(40, 10, 20, lead_us=50)),
    ],
)
def test_bounds_of_one_sign_ask_for_earlier_rows_of_one_side_only(
    bounds: tuple[int, int], inner: bool, left: DropWindow, right: DropWindow
) -> None:
    (drop,) = place(joined(inner, bounds))
    assert [(p.parent, p.window) for p in drop.points] == [("left", left), ("right", right)]


def test_a_join_with_crossed_bounds_is_refused() -> None:
    with pytest.raises(
        FlowError, match=r"DROP_NETWORK_JOIN_INVALID.*lower bound of the join 'join' lies above the upper one"
    ):
        DropJoinNode("join", "left", "right", 1, 0)


def test_a_network_with_a_name_twice_or_an_unknown_parent_is_refused() -> None:
    for nodes in ((DropSourceNode("a"), DropSourceNode("a")), (DropStepNode("b", "nobody"),)):
        with pytest.raises(
            FlowError, match=r"DROP_NETWORK_INVALID.*different names, and each must follow its parents"
        ):
            Network(nodes)


def test_a_gap_of_less_than_a_window_is_refused_by_name() -> None:
    with pytest.raises(FlowError, match=r"OUTPUT_MAX_GAP_RANGE.*output 'out' is less than one window"):
        DropOutputNode("out", "a", 0)


def grouped(name: str, parent: str, spec: WindowSpec, groups: str | None) -> DropWindowNode:
    return DropWindowNode(name, parent, spec, ("cell",), groups)


def test_a_drop_by_groups_crosses_windows_with_the_same_groups_alone() -> None:
    for inner, point in (
        ("cell of rows", ("rows", "inner")),
        ("hour of rows", ("inner", "outer")),
        (None, ("inner", "outer")),
    ):
        (drop,) = place(
            Network(
                (
                    DropSourceNode("rows"),
                    grouped("inner", "rows", TEN, inner),
                    grouped("outer", "inner", HUNDRED, "cell of rows"),
                    DropOutputNode("out", "outer", 10),
                )
            )
        )
        assert drop.groups == "cell of rows"
        assert arrows(drop) == [point]


def test_a_drop_by_groups_ends_behind_a_join() -> None:
    (drop,) = place(
        Network(
            (
                DropSourceNode("left"),
                DropSourceNode("right"),
                DropJoinNode("join", "left", "right", 0, 5),
                grouped("windows", "join", HUNDRED, "cell of join"),
                DropOutputNode("out", "windows", 10),
            )
        )
    )
    assert arrows(drop) == [("join", "windows")]


@pytest.mark.parametrize("groups", ["cell of rows", "hour of rows", None])
def test_outputs_of_a_split_decide_together_by_groups_only_if_these_are_the_same(groups: str | None) -> None:
    drops = place(
        split(
            grouped("a", "shared", WindowSpec(3, 2), "cell of rows"),
            DropOutputNode("out a", "a", 9),
            grouped("b", "shared", WindowSpec(3, 3), groups),
            DropOutputNode("out b", "b", 9),
        )
    )
    same = groups == "cell of rows"
    assert [drop.outputs for drop in drops] == ([("out a", "out b")] if same else [("out a",), ("out b",)])
    assert [arrows(drop)[0][1] for drop in drops] == (["shared"] if same else ["a", "b"])
