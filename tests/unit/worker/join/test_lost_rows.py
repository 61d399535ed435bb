"""Which joins may lose rows when nothing else is enough: none that was promised otherwise."""

from __future__ import annotations

import pytest

from tidegate.api.goal import Shed
from tidegate.driver.goal_settings import joins_that_may_lose_rows
from tidegate.window.drop.network import DropJoinNode, DropOutputNode, DropSourceNode, Network

NETWORK = Network(
    (
        DropSourceNode("a"),
        DropSourceNode("b"),
        DropJoinNode("near", "a", "b", -10, 10),
        DropJoinNode("far", "near", "b", -100, 100),
        DropJoinNode("other", "a", "b", -10, 10),
        DropOutputNode("pairs", "far"),
        DropOutputNode("others", "other"),
    )
)
JOINS = ("near", "far", "other")


@pytest.mark.parametrize(
    ("shed", "max_loss", "may"),
    [
        (Shed(), (), JOINS),
        (Shed(join="random_drop"), (), JOINS),
        # Whatever feeds an output that may lose no more than so much, however far away.
        (Shed(), ("pairs",), ("other",)),
        (Shed(), ("others",), ("near", "far")),
        (Shed(), ("pairs", "others"), ()),
        # A stale row cannot be made up for, and a rate that is felt for does not say what is enough.
        (Shed(repair="idle"), (), ()),
        (Shed(rate="paper"), (), ()),
    ],
)
def test_rows_are_lost_only_where_nothing_else_was_promised(
    shed: Shed, max_loss: tuple[str, ...], may: tuple[str, ...]
) -> None:
    assert joins_that_may_lose_rows(NETWORK, JOINS, max_loss, shed) == set(may)
