"""The FastJoin paper's experiment: its figures by name."""

from __future__ import annotations

from tidegate_lab.reproduce.experiment import Experiment, Figure
from tidegate_lab.reproduce.fastjoin.beyond import beyond
from tidegate_lab.reproduce.fastjoin.choice_figure import figure_14
from tidegate_lab.reproduce.fastjoin.group_figures import figure_12, figure_13
from tidegate_lab.reproduce.fastjoin.key_figure import figure_1
from tidegate_lab.reproduce.fastjoin.over_time_figures import figure_3, figure_4, figure_11
from tidegate_lab.reproduce.fastjoin.sweep_figures import (
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
)

_ALL = (
    Figure("1", "skew of the keys, and what it does to hash routing", figure_1),
    Figure("3", "throughput over time", figure_3),
    Figure("4", "latency over time", figure_4),
    Figure("5", "throughput by number of instances", figure_5),
    Figure("6", "latency by number of instances", figure_6),
    Figure("7", "throughput by size of the data", figure_7),
    Figure("8", "latency by size of the data", figure_8),
    Figure("9", "throughput by threshold", figure_9),
    Figure("10", "latency by threshold", figure_10),
    Figure("11", "imbalance over time", figure_11),
    Figure("12", "throughput of the nine Zipf groups", figure_12),
    Figure("13", "latency of the nine Zipf groups", figure_13),
    Figure("14", "latency with GreedyFit and with SAFit", figure_14),
)
#: What needs streams that are made to order.
_GENERATED = ("7", "8", "12", "13")

EXPERIMENT = Experiment(
    "fastjoin",
    "FastJoin: a skewness-aware distributed stream join system",
    (*_ALL, Figure("beyond", "Zipf 1.0 on 16 to 20 instances: the bars", beyond)),
    real=tuple(figure for figure in _ALL if figure.name not in _GENERATED),
)
