from __future__ import annotations

import pytest

from tidegate.window.drop.network import (
    DropOutputNode,
    DropSourceNode,
    DropStepNode,
    DropWindowNode,
    Network,
    Node,
)
from tidegate.window.drop.placement import place
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.windows.admission import admit, work_left

TEN = WindowSpec(10, 10)


def query(name: str, gap: int | None) -> tuple[Node, ...]:
    return (
        DropSourceNode(f"{name} rows"),
        DropStepNode(f"{name} before", f"{name} rows"),
        DropWindowNode(f"{name} window", f"{name} before", TEN),
        DropStepNode(f"{name} behind", f"{name} window"),
        DropOutputNode(name, f"{name} behind", gap),
    )


def work_of(**queries: float) -> dict[str, float]:
    """Half of the work of a query is in front of its window, half behind it."""
    return {f"{name} {box}": work / 2 for name, work in queries.items() for box in ("before", "behind")}


def test_what_fits_is_left_alone() -> None:
    admission = admit(Network(query("a", 4)), work_of(a=10.0), 10.0)
    assert [p for _, p in admission.drops] == [0.0]
    assert (admission.shut, admission.work, admission.fits) == ((), 10.0, True)


def test_the_least_share_that_makes_the_work_fit_is_dropped() -> None:
    admission = admit(Network(query("a", 4)), work_of(a=10.0), 8.0)
    assert admission.drops[0][1] == pytest.approx(0.2)
    assert admission.work == pytest.approx(8.0)
    assert admission.fits


def test_every_output_gives_up_the_same_share_as_long_as_its_gap_allows() -> None:
    network, work = Network((*query("a", 1), *query("b", 9))), work_of(a=10.0, b=10.0)
    assert [p for _, p in admit(network, work, 12.0).drops] == pytest.approx([0.4, 0.4])
    assert [p for _, p in admit(network, work, 7.0).drops] == pytest.approx([0.5, 0.8])


def test_where_no_share_is_enough_the_most_costly_query_is_shut_off_and_named() -> None:
    network = Network((*query("small", 1), *query("large", 1), *query("middle", 1)))
    work = work_of(small=4.0, large=20.0, middle=8.0)
    admission = admit(network, work, 8.0)
    assert admission.shut == ("large",)
    assert [p for _, p in admission.drops] == pytest.approx([1 / 3, 1 / 3])
    assert [output.name for output in admission.network.outputs] == ["small", "middle"]
    assert admit(network, work, 2.5).shut == ("large", "middle")


def test_work_that_is_shared_is_not_saved_by_shutting_one_of_two_off() -> None:
    shared = Network(
        (
            DropSourceNode("rows"),
            DropStepNode("dear", "rows"),
            DropWindowNode("a window", "dear", TEN),
            DropOutputNode("a", "a window", 1),
            DropWindowNode("b window", "dear", TEN),
            DropOutputNode("b", "b window", 1),
        )
    )
    assert admit(shared, {"dear": 100.0, "a window": 1.0, "b window": 2.0}, 50.5).shut == ("b",)


def test_who_must_have_everything_is_never_shut_off() -> None:
    admission = admit(Network((*query("all", None), *query("a", 1))), work_of(all=10.0, a=1.0), 5.0)
    assert admission.shut == ("a",)
    assert not admission.fits
    assert admission.work == 10.0


def test_a_node_has_less_to_do_by_the_rows_that_no_kept_window_needs() -> None:
    sliding = Network(
        (
            DropSourceNode("rows"),
            DropStepNode("before", "rows"),
            DropWindowNode("window", "before", WindowSpec(20, 10)),
            DropStepNode("behind", "window"),
            DropOutputNode("out", "behind", 4),
        )
    )
    # A gap of four lets (4 + 1) · 10 − 20 of 4 · 10 rows go; behind the window, all four results.
    work = dict.fromkeys(("rows", "before", "window", "behind"), 1.0)
    assert work_left(sliding, work, place(sliding), 0.5) == pytest.approx(1 + 2 * (1 - 0.5 * 0.75) + 0.5)
