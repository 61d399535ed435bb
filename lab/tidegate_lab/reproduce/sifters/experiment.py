"""The sifters paper's experiment: its figures by name."""

from __future__ import annotations

from tidegate_lab.reproduce.experiment import Experiment, Figure
from tidegate_lab.reproduce.sifters.beyond import beyond
from tidegate_lab.reproduce.sifters.construction_figure import figure_6
from tidegate_lab.reproduce.sifters.lookup_figure import figure_7
from tidegate_lab.reproduce.sifters.partition_pictures import figure_3
from tidegate_lab.reproduce.sifters.real_figure import pickups
from tidegate_lab.reproduce.sifters.region_figure import figure_5
from tidegate_lab.reproduce.sifters.sensitivity_figures import figure_9, figure_10
from tidegate_lab.reproduce.sifters.skew_figure import figure_4
from tidegate_lab.reproduce.sifters.throttler_figure import figure_8

#: Where skewed points lie (`readings.py`).
_BOTH = "; points within hot spots, and with whole normals"
_PICTURES = Figure("3", "pictures of partitionings", figure_3)

EXPERIMENT = Experiment(
    "sifters",
    "Sifters: efficient construction of compact shedding filters",
    (
        _PICTURES,
        Figure("4", f"overall QoS by global and local skew{_BOTH}", figure_4),
        Figure("5", f"gain over random dropping by number of regions{_BOTH}", figure_5),
        Figure("6", "construction time by number of regions", figure_6),
        Figure("7", "lookups per second by number of regions", figure_7),
        Figure("8", f"overall QoS by throttler{_BOTH}", figure_8),
        Figure("9", f"gain over random dropping by fairness threshold{_BOTH}", figure_9),
        Figure("10", f"gain over random dropping by side of queries{_BOTH}", figure_10),
        Figure("beyond", f"auto against the best of four, and promises kept{_BOTH}", beyond),
    ),
    real=(_PICTURES, Figure("pickups", "the partitioners on pick-ups of a real city", pickups)),
    seeds=20,
)
