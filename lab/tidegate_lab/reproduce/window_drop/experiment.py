"""The window drop paper's experiment: its figures by name."""

from __future__ import annotations

from tidegate_lab.reproduce.experiment import Experiment, Figure
from tidegate_lab.reproduce.window_drop.overhead_table import table_4
from tidegate_lab.reproduce.window_drop.placement_figures import figure_10, figure_11
from tidegate_lab.reproduce.window_drop.window_figures import figure_12, figure_13

EXPERIMENT = Experiment(
    "window-drop",
    "Window-aware load shedding for aggregation queries over data streams",
    (
        Figure("10", "loss by excess load, pipeline", figure_10),
        Figure("11", "loss by excess load, fan-out", figure_11),
        Figure("12", "loss by window size", figure_12),
        Figure("13", "loss by window slide, counted and by the load model", figure_13),
        Figure("table-4", "what a window drop costs that drops nothing", table_4),
    ),
)
