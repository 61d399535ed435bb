"""Ls-Stream's experiment: its figures by name."""

from __future__ import annotations

from tidegate_lab.reproduce.experiment import Experiment, Figure
from tidegate_lab.reproduce.ls_stream.beyond import partitions, table, with_index
from tidegate_lab.reproduce.ls_stream.city_figures import figure_2, figure_10, figure_11
from tidegate_lab.reproduce.ls_stream.latency_figures import figure_12, figure_13
from tidegate_lab.reproduce.ls_stream.skew_figures import figure_7, figure_8
from tidegate_lab.reproduce.ls_stream.skew_latency import figure_9
from tidegate_lab.reproduce.ls_stream.threshold_figures import figure_14, figure_15

_CITY = (
    Figure("2", "instances ranked by their rows", figure_2),
    Figure("10", "throughput by nodes", figure_10),
    Figure("11", "throughput by instances", figure_11),
    Figure("12", "latency over time", figure_12),
    Figure("13", "latency by instances", figure_13),
)

EXPERIMENT = Experiment(
    "ls-stream",
    "Ls-Stream: lightening stragglers in join operators",
    (
        _CITY[0],
        Figure("7", "load imbalance by skew", figure_7),
        Figure("8", "throughput by skew", figure_8),
        Figure("9", "latency by skew", figure_9),
        *_CITY[1:],
        Figure("14", "throughput by threshold", figure_14),
        Figure("15", "latency by threshold", figure_15),
        Figure("partitions", "throughput by partitions per instance", partitions),
        Figure("index", "balance where a row costs its matches", with_index),
        Figure("table", "size of the routing table by rows moved", table),
    ),
    real=_CITY,
)
