"""The join settings that the paper's experiments compare, by name, and ours next to them.

Paper: selective join, experiments. `random drop` is the paper's baseline: the join is processed fully, and
rows that do not fit into the input buffers are lost, chosen at random. `… by model` has our rate
rule (`simulate/join/rate_model.py`) in place of algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import FixedRate, RateAdaptation, RateRule
from tidegate.control.actuators.policy import Policy, RandomDropPolicy
from tidegate.control.actuators.selective import SelectivePolicy
from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.partial_processing import partial_processing
from tidegate_lab.simulate.join.rate_model import RateModel

RANDOM_DROP = "random drop"
RATE = "rate adaptation"
RATE_MODEL = "rate adaptation by model"
TIME = "rate and time correlation"
DIRECTION = "rate, time correlation and direction"
DIRECTION_MODEL = "rate by model, time correlation and direction"
SELECTIVE = "selective policy"

#: The same setting has the same colour in every plot.
COLOURS = {RATE: 0, RANDOM_DROP: 1, TIME: 2, DIRECTION: 3, RATE_MODEL: 4, SELECTIVE: 5, DIRECTION_MODEL: 4}


def _adaptive(rate: Callable[[], RateRule], *, direction: bool) -> Callable[[Windows], Policy]:
    settings = AdaptiveSettings(direction=direction)
    return lambda windows: AdaptiveShedding(windows, rate(), settings)


POLICIES: dict[str, Callable[[Windows], Policy]] = {
    RANDOM_DROP: lambda windows: RandomDropPolicy(windows, FixedRate(1.0)),
    RATE: lambda windows: partial_processing(windows, RateAdaptation()),
    RATE_MODEL: lambda windows: partial_processing(windows, RateModel()),
    TIME: _adaptive(RateAdaptation, direction=False),
    DIRECTION: _adaptive(RateAdaptation, direction=True),
    DIRECTION_MODEL: _adaptive(RateModel, direction=True),
    SELECTIVE: lambda windows: SelectivePolicy(windows, RateModel()),
}
