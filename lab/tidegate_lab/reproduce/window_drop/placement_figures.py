"""Figures 10 and 11: how much of the answer is lost by where the drop stands, in a pipeline and in a fan-out.

Paper: window drop, section 4.1. The further up a window drop stands, the more work each dropped window saves,
and the fewer must go. A random drop behind the windows is all that keeps the subset otherwise: it can save
only what lies behind them, and beyond 65 % of excess it delivers nothing.

What we see differently: of three equally costly parts one is behind the last window, so that a random drop
there ends at 50 % of excess by arithmetic. To end at 65 %, two fifths of the work would have to be there.

A loss of 1 says that no drop was enough within the longest gap: the query is shut off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.window.drop.kept_arrows import Arrow
from tidegate.window.drop.placement import DropPlacement, place
from tidegate_lab.plots.bars import at_least, at_most
from tidegate_lab.plots.plots import Panel, Plot
from tidegate_lab.reproduce.claims import number_line
from tidegate_lab.reproduce.curves import band_curve
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.window_drop.scenarios import MAX_GAP, fan_out, pipeline, windows
from tidegate_lab.simulate.windows.delays import (
    Delays,
    Loss,
    all_arrows,
    arrows_behind,
    least_random_drop,
    least_window_drop,
)

EXCESSES = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0)
QUICK_EXCESSES = (0.25, 0.65, 1.0)
#: Where the paper's random drop ends.
RANDOM_ENDS = 0.65

#: Per way of dropping, (seed, excess) → the share of results that is missing.
Losses = Mapping[str, "NDArray[np.float64]"]
Way = Callable[[float, int], Loss | None]


def figure_10(options: Options) -> Outcome:
    """The pipeline: RDrop, Nested1, Nested2."""
    delays = pipeline(windows(options))
    (drop,) = place(delays.network)
    ways: dict[str, Way] = {
        "RDrop": lambda excess, seed: least_random_drop(delays, excess),
        "Nested1": _at(delays, {drop: arrows_behind(delays.network, drop, "inner")}),
        "Nested2": _at(delays, {drop: all_arrows(drop)}),
    }
    losses = measured(ways, options)
    at = excesses(options).index(RANDOM_ENDS)
    lines = [
        _never_less("10", "Nested2 loses no more than Nested1, at any excess", losses, "Nested2", "Nested1"),
        _never_less("10", "Nested1 loses no more than RDrop, at any excess", losses, "Nested1", "RDrop"),
        number_line(
            "10",
            "lost by RDrop at 65 % of excess",
            "everything beyond it",
            losses["RDrop"][:, at].tolist(),
            agrees=bool((losses["RDrop"][:, at] == 1).all()),
        ),
        number_line(
            "10",
            "lost by Nested2 at 65 % of excess",
            "still delivers",
            losses["Nested2"][:, at].tolist(),
            agrees=bool((losses["Nested2"][:, at] < 1).all()),
        ),
    ]
    kept = {name: float(1 - np.median(losses[name][:, at])) for name in ("RDrop", "Nested2")}
    bars = [
        at_least("figure10-65-delivered", kept["Nested2"], "of results", 0.6),
        at_most("figure10-65-delivered-by-random-drop", kept["RDrop"], "of results", 0.0),
    ]
    return Outcome(lines, bars, [_plot("10", "pipeline", losses, options)])


def figure_11(options: Options) -> Outcome:
    """The fan-out: Shared_WinDrop, Split_WinDrop, Split_RDrop."""
    delays = fan_out(windows(options))
    (shared,) = place(delays.network)
    alone = [place(delays.network.without(frozenset({name})))[0] for name in ("b out", "a out")]
    split = {drop: arrows_behind(delays.network, drop, "shared") for drop in alone}
    ways: dict[str, Way] = {
        "Split_RDrop": lambda excess, seed: least_random_drop(delays, excess),
        "Split_WinDrop": _at(delays, split),
        "Shared_WinDrop": _at(delays, {shared: all_arrows(shared)}),
    }
    losses = measured(ways, options)
    best = "the earliest drop loses least, at any excess"
    lines = [
        _never_less("11", best, losses, "Shared_WinDrop", "Split_WinDrop"),
        _never_less("11", "windows lose no more than rows", losses, "Split_WinDrop", "Split_RDrop"),
    ]
    return Outcome(lines, plots=[_plot("11", "fan-out", losses, options)])


def excesses(options: Options) -> Sequence[float]:
    return QUICK_EXCESSES if options.quick else EXCESSES


def measured(ways: Mapping[str, Way], options: Options) -> Losses:
    """The least loss of each way, at each excess; 1 where no drop is enough."""
    return {
        name: np.array(
            [[_missing(way(excess, seed)) for excess in excesses(options)] for seed in options.seeds]
        )
        for name, way in ways.items()
    }


def _at(delays: Delays, drops: Mapping[DropPlacement, Collection[Arrow]]) -> Way:
    return lambda excess, seed: least_window_drop(delays, drops, excess, seed)


def _missing(loss: Loss | None) -> float:
    return 1.0 if loss is None else loss.missing


def _never_less(figure: str, claim: str, losses: Losses, better: str, worse: str) -> Line:
    """How much more the worse one loses, at the excess where that is least."""
    ahead = (losses[worse] - losses[better]).min(axis=1)
    # Coins fall differently for drops in different windows: a hundredth is nothing.
    agrees = bool(np.median(ahead) >= -0.01)
    return number_line(figure, claim, "yes", ahead.tolist(), agrees=agrees, unit="of results")


def _plot(figure: str, what: str, losses: Losses, options: Options) -> Plot:
    percents = [100 * excess for excess in excesses(options)]
    curves = [band_curve(name, percents, losses[name], colour=k) for k, name in enumerate(losses)]
    panel = Panel("excess rate (%)", "share of results missing", curves)
    title = f"Figure {figure}: drop rate by excess load ({what})"
    subtitle = f"at most {MAX_GAP} windows missing in a row; {options.seeds_text}"
    return Plot(f"figure-{figure}", title, subtitle, [panel])
