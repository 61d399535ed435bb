"""What an experiment is made of, whatever the paper: figures that are measured, and what came out.

    Options ─▶ Figure.measure ─▶ Outcome: lines (paper said / we measured), plots, bars, what is behind them

A figure decides nothing about files or screens: it gives back plain data, and the command prints, draws and
writes it. A line without a bar is a claim of the paper that nobody set a target for.

Guarantee: the same options give the same outcome, because cost is counted and not timed; a figure that is
about time itself says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.observe.json_frame import Bar
from tidegate_lab.plots.plots import Plot

#: Bars of a run that was cut short say nothing about the real ones, so their ids end in this.
QUICK_MARK = ".quick"


@dataclass(frozen=True)
class Options:
    """What may differ from run to run."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    #: Short runs at low rates: for tests, and for looking at the shape of things.
    quick: bool = False
    #: Where real data lie; none: the paper's made-up workload.
    real: Path | None = None

    @property
    def seeds_text(self) -> str:
        if len(self.seeds) == 1:
            return f"seed {self.seeds[0]}"
        return f"medians of seeds {self.seeds[0]} to {self.seeds[-1]}"

    def plot_name(self, figure: str) -> str:
        """Pictures of real data lie beside those of the made-up workload."""
        return f"real-figure-{figure}" if self.real else f"figure-{figure}"


@dataclass(frozen=True)
class Line:
    """One claim: what the paper's text says, and what we measured."""

    figure: str
    claim: str
    paper: str
    measured: str
    #: The figure behind `measured`: the median over the seeds, if it is one number.
    value: float | None = None
    unit: str = ""
    samples: tuple[float, ...] = ()
    #: Whether we see what the paper says; None where it says nothing to compare with.
    agrees: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return {"kind": "claim", **{name: getattr(self, name) for name in self.__dataclass_fields__}}


@dataclass(frozen=True)
class Outcome:
    """What one figure gives back."""

    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    plots: Sequence[Plot] = ()
    #: The numbers behind the plots that are no curve of theirs, for the JSON.
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Figure:
    """One figure of a paper (or what goes beyond it), by the name that `--figure` takes."""

    name: str
    shows: str
    measure: Callable[[Options], Outcome]


@dataclass(frozen=True)
class Experiment:
    """A paper's figures."""

    name: str
    paper: str
    figures: tuple[Figure, ...]
    #: Those that can also be measured on real data.
    real: tuple[Figure, ...] = ()
    #: So many, unless the command line says otherwise.
    seeds: int = 5
