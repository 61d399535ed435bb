"""The queries of the window drop paper's experiments, with their delay boxes.

Paper: window drop, section 4. One row per unit of time; 𝓑 = 10 wherever the text says one. The pictures of
the queries (figures 7, 9, 12 and 14) are not part of the text, so costs are ours where it does not give them:

- *pipeline* (figure 7): tumbling windows of 10 and of 100, a delay before, between and behind; "different
  parts of the query equally costly": each delay does a third of the work;
- *fan-out* (figure 9): one delay in front of the split; behind it, per query, a delay, a window and a delay.
  Tumbling windows of 10 and of 20; each of the five delays does a fifth of the work;
- *one window* (figure 12): 5 ms before and 5 ms behind it; the window itself costs 0.1 ms a row.

A window drop costs nothing here: decisions are looked up by time, no row carries a mark (table 4 has those).
"""

from __future__ import annotations

from functools import cache

from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropStepNode, DropWindowNode, Network
from tidegate.window.spec import WindowSpec
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.window_drop.drop_analysis import Costs
from tidegate_lab.simulate.windows.delays import Delays

#: 𝓑, in windows.
MAX_GAP = 10
DELAY_MS, AGGREGATE_MS = 5.0, 0.1
#: Windows of the longest slide that a run has: enough for coins to come near their odds.
WINDOWS, QUICK_WINDOWS = 5_000, 2_000


def windows(options: Options) -> int:
    return QUICK_WINDOWS if options.quick else WINDOWS


@cache
def pipeline(count: int) -> Delays:
    """Figure 7: RDrop, Nested1 and Nested2 stand behind `outer`, behind `inner` and at the source."""
    network = Network(
        (
            DropSourceNode("rows"),
            DropStepNode("before", "rows"),
            DropWindowNode("inner", "before", WindowSpec(10, 10)),
            DropStepNode("between", "inner"),
            DropWindowNode("outer", "between", WindowSpec(100, 100)),
            DropStepNode("behind", "outer"),
            DropOutputNode("out", "behind", MAX_GAP),
        )
    )
    return Delays(network, {"before": 1.0, "between": 10.0, "behind": 100.0}, 100 * count)


@cache
def fan_out(count: int) -> Delays:
    """Figure 9: the shared drop stands at the source, the split ones behind `shared`."""
    nodes: list[DropSourceNode | DropStepNode | DropWindowNode | DropOutputNode] = [
        DropSourceNode("rows"),
        DropStepNode("shared", "rows"),
    ]
    costs = {"shared": 1.0}
    for name, size in (("a", 10), ("b", 20)):
        nodes += [
            DropStepNode(f"{name} before", "shared"),
            DropWindowNode(f"{name} window", f"{name} before", WindowSpec(size, size)),
            DropStepNode(f"{name} behind", f"{name} window"),
            DropOutputNode(f"{name} out", f"{name} behind", MAX_GAP),
        ]
        costs |= {f"{name} before": 1.0, f"{name} behind": float(size)}
    return Delays(Network(tuple(nodes)), costs, 20 * count)


@cache
def one_window(size: int, slide: int, count: int) -> Delays:
    """Figure 12: a window between two delays."""
    network = Network(
        (
            DropSourceNode("rows"),
            DropStepNode("before", "rows"),
            DropWindowNode("window", "before", WindowSpec(size, slide)),
            DropStepNode("behind", "window"),
            DropOutputNode("out", "behind", MAX_GAP),
        )
    )
    costs = {"before": DELAY_MS, "window": AGGREGATE_MS, "behind": DELAY_MS}
    return Delays(network, costs, slide * count)


def one_window_costs(slide: int) -> Costs:
    """The same query in the terms of the load model of section 3.6."""
    return Costs(DELAY_MS, AGGREGATE_MS, DELAY_MS, results_per_row=1 / slide)
