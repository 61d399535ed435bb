"""The experiments that `tidegate reproduce` knows, by name. Only the one asked for is imported."""

from __future__ import annotations

from importlib import import_module

from tidegate_lab.reproduce.experiment import Experiment

#: Name → module with `EXPERIMENT`.
MODULES = {
    "selective-join": "tidegate_lab.reproduce.selective_join.experiment",
    "sifters": "tidegate_lab.reproduce.sifters.experiment",
    "fastjoin": "tidegate_lab.reproduce.fastjoin.experiment",
    "ls-stream": "tidegate_lab.reproduce.ls_stream.experiment",
    "window-drop": "tidegate_lab.reproduce.window_drop.experiment",
}


def experiment(name: str) -> Experiment:
    """Import and return it."""
    found: Experiment = import_module(MODULES[name]).EXPERIMENT
    return found
