"""Partial processing: the selective join paper's first step, rate adaptation without learning.

Paper: selective join, section 4.1. Only the newest part of each window is processed, a share of r.
"""

from __future__ import annotations

from tidegate.control.actuators.adaptive import AdaptiveSettings, AdaptiveShedding
from tidegate.control.actuators.paper_rate import RateRule
from tidegate.control.actuators.policy import Shape


def partial_processing(windows: Shape, rate: RateRule) -> AdaptiveShedding:
    """Rate adaptation alone: the newest part of each window."""
    return AdaptiveShedding(windows, rate, AdaptiveSettings(time_correlation=False, direction=False))
