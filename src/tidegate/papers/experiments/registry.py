"""The experiments that `tidegate reproduce` knows, by name. Only the one asked for is imported."""

from __future__ import annotations

from importlib import import_module

from tidegate.papers.experiments.experiment import Experiment

#: Name → module with `EXPERIMENT`.
MODULES = {
    "selective-join": "tidegate.papers.experiments.selective_join.experiment",
    "sifters": "tidegate.papers.experiments.sifters.experiment",
    "fastjoin": "tidegate.papers.experiments.fastjoin.experiment",
    "ls-stream": "tidegate.papers.experiments.ls_stream.experiment",
    "window-drop": "tidegate.papers.experiments.window_drop.experiment",
}


def experiment(name: str) -> Experiment:
    """Import and return it."""
    found: Experiment = import_module(MODULES[name]).EXPERIMENT
    return found
