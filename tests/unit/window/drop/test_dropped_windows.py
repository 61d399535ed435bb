from __future__ import annotations

import json

from tidegate.window.drop.dropped_windows import DecidedWindows, DroppedWindows
from tidegate.window.drop.intervals import between
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.spec import WindowSpec

WINDOWS = DropSourceNode("rows"), DropWindowNode("w", "rows", WindowSpec(100, 100))
DROPPED = DroppedWindows(
    {"w": DecidedWindows(500, between(200, 500), 1)},
    {"busy": between(500, 700)},
    {("rows", "w"): between(200, 500)},
)


def network(*outputs: DropOutputNode) -> Network:
    return Network((*WINDOWS, *outputs))


def test_decisions_come_back_from_json() -> None:
    again = DroppedWindows.from_json(json.loads(json.dumps(DROPPED.to_json(network()))), network())
    assert again.to_json(network()) == DROPPED.to_json(network())
    assert again.windows["w"].gap_us == 300
    assert not DroppedWindows.from_json({}, network()).anything


def test_an_output_hides_what_was_decided_and_one_that_must_be_complete_what_lacks_rows() -> None:
    flow = network(DropOutputNode("busy", "w", 9), DropOutputNode("calm", "w", 9), DropOutputNode("all", "w"))
    chosen = {name: DROPPED.chosen(flow, name).to_json() for name in ("busy", "calm", "all")}
    assert chosen["busy"] == {"low": [200], "high": [700]}
    assert chosen["calm"] == {"low": [200], "high": [500]}
    assert chosen["all"] == {"low": [], "high": []}
    assert DROPPED.on_arrows(flow)["w", "all"].to_json() == {"low": [200], "high": [401]}


def test_only_what_no_open_window_needs_is_forgotten() -> None:
    flow = network(DropOutputNode("busy", "w", 9))
    half_way = DROPPED.still_open(flow, {"w": 450})
    assert half_way.to_json(flow) == DROPPED.to_json(flow)
    # The last run counts for the gap while the next window may be dropped, too.
    assert DROPPED.still_open(flow, {"w": 500}).windows["w"].gap_us == 300
    assert not DROPPED.still_open(flow, {"w": 500}).gaps
    assert not DROPPED.still_open(flow, {"w": 700}).anything
    assert "busy" not in DROPPED.still_open(network(DropOutputNode("other", "w")), {"w": 450}).shut
