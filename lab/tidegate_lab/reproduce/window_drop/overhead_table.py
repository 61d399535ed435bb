"""Table 4: what a window drop costs that drops nothing (p = 0), by window size and selectivity of a filter.

Paper: window drop, section 4.3: the throughput with the operator over that without, 0.96 to 1.0, for a filter
and then a tumbling window. The larger the window, the fewer marks; and a filter that rejects a marked row
lets a fake one pass.

Counted, not timed: the paper's marks are really made and handed on
(`lab/tidegate_lab/simulate/windows/window_marks.py`), and every row or mark that an operator takes in its
hand counts one. Our own way, decisions looked up by time, makes no marks and no fake rows.
"""

from __future__ import annotations

import numpy as np

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.drop_window import before, result
from tidegate.window.drop.network import DropSourceNode, DropStepNode, Network
from tidegate.window.spec import WindowSpec
from tidegate_lab.plots.plots import Panel, Plot
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.curves import band_curve
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.window_drop.scenarios import MAX_GAP
from tidegate_lab.simulate.windows.window_marks import SILENT, drop_windows, pass_box
from tidegate_lab.simulate.windows.window_network import Program, Row

SIZES = (25, 50, 75, 100)
PAPER = {1.0: (0.99, 0.99, 1.0, 1.0), 0.5: (0.96, 0.98, 0.98, 1.0)}
WINDOWS, QUICK_WINDOWS = 200, 20
#: The paper's ratios are rounded, and measured on a busy machine.
NEAR = 0.02


def table_4(options: Options) -> Outcome:
    """Throughput ratios, by size and selectivity."""
    count = QUICK_WINDOWS if options.quick else WINDOWS
    found = {
        passing: np.array([[ratio(size, passing, count, seed) for size in SIZES] for seed in options.seeds])
        for passing in PAPER
    }
    lines = []
    for selectivity, ratios in found.items():
        for k, size in enumerate(SIZES):
            paper, each = PAPER[selectivity][k], ratios[:, k].tolist()
            claim = f"throughput with the operator at p = 0, size {size}, selectivity {selectivity:g}"
            near = abs(float(np.median(each)) - paper) <= NEAR
            lines.append(number_line("table-4", claim, f"{paper:g}", each, agrees=near))
    curves = [
        band_curve(f"selectivity {selectivity:g}", SIZES, ratios, colour=k)
        for k, (selectivity, ratios) in enumerate(found.items())
    ]
    panel = Panel("window size (rows)", "throughput ratio", curves, y_from=0.9)
    title = "Table 4: throughput with a window drop at p = 0, over that without"
    return Outcome(
        lines, plots=[Plot("table-4", title, f"rows and marks counted; {options.seeds_text}", [panel])]
    )


def ratio(size: int, selectivity: float, windows: int, seed: int) -> float:
    """What is handled without the operator, over what is handled with it."""
    drawn = np.random.default_rng(seed).random(size * windows) < selectivity
    # Marks need times above zero; the first window begins with the first row.
    rows = [Row(size + time, 0, int(passes)) for time, passes in enumerate(drawn.tolist())]
    network = Network((DropSourceNode("rows"), DropStepNode("filter", "rows")))
    program = Program(network, {"filter": lambda row: row.value == 1})
    spec = WindowSpec(size, size)
    marked = drop_windows(rows, before(spec, result(spec, MAX_GAP)), Decisions(size, 0, 0))
    handed_on = list(pass_box(marked, program, "filter"))
    marks = sum(each.mark != SILENT for each in marked)
    return (len(rows) + int(drawn.sum())) / (len(marked) + marks + len(handed_on))
