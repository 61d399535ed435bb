"""Figures 7 and 8: imbalance and throughput by skew, 20 instances, α = 1.

Paper: Ls-Stream, section VI-B.

Where we see something else, and why:

- At Zipf 1.0 one key has 6 % of all rows (of 10 million keys; 16 % of 300), and its comparisons are more than
  half of all. No migration can spread one key, so Ls-Stream's imbalance rises with skew. The paper shows it
  stable.
- So at Zipf 1.0 nearly all of Ls-Stream's gain is from looking at partitions: the straggler has little
  besides the hot key that could leave it. More than about 1.8 times BiStream is out of reach with 10
  million keys: (share of the hot key + 1/20 of the rest) / share of the hot key; a little more where the
  hash puts another heavy key beside it.
- At Zipf 0.2 the paper has all systems alike. In its own cost model Ls-Stream compares a row with a
  sixteenth of what BiStream does, and sustains four times the rate.
- Rows of BiStream-ContRand visit two instances, each compares them with its part: on mild skew it does twice
  BiStream's work. The paper has the two nearly equal there.
"""

from __future__ import annotations

from statistics import median

from tidegate_lab.reproduce.claims import bar, series_line, shorter_line, times_line
from tidegate_lab.reproduce.experiment import Line, Options, Outcome
from tidegate_lab.reproduce.ls_stream.measures import imbalance, ratios, sustained
from tidegate_lab.reproduce.ls_stream.skew_runs import (
    BAR_INSTANCES,
    STEEPEST,
    by_skew_plot,
    capacity_of,
    gains,
    runs,
    skews_of,
)
from tidegate_lab.reproduce.ls_stream.streams import FEW_KEYS, keys_text, many_keys
from tidegate_lab.reproduce.ls_stream.systems import (
    BISTREAM,
    BY_PARTITION,
    CONTRAND,
    FASTJOIN,
    LS_STREAM,
    System,
)


def figure_7(options: Options) -> Outcome:
    """Load imbalance degree by skew."""
    plot = by_skew_plot(
        "figure-7",
        "Figure 7: load imbalance degree (equation 13) by skew",
        "load imbalance degree LI",
        options,
        lambda one, _: imbalance(one),
    )
    lines = [
        *(
            _imbalance_line(BISTREAM, keys, options, "increasingly unbalanced", True)
            for keys in _keys(options)
        ),
        *(_imbalance_line(LS_STREAM, keys, options, "stable, about 1", False) for keys in _keys(options)),
        *(_imbalance_line(FASTJOIN, keys, options, "stable", False) for keys in _keys(options)),
        _contrand_line(options),
    ]
    return Outcome(lines, plots=[plot])


def _keys(options: Options) -> tuple[int, int]:
    return many_keys(options), FEW_KEYS


def _imbalance_line(system: System, keys: int, options: Options, paper: str, rises: bool) -> Line:
    skews = skews_of(options)
    found = [median(imbalance(one) for one in runs(system, options, keys, skew)) for skew in skews]
    claim = f"LI of {system.name}, Zipf {skews[0]:g} to {skews[-1]:g}, {keys_text(keys)}"
    return series_line("7", claim, paper, found, agrees=(found[-1] > found[0] + 1) is rises)


def _contrand_line(options: Options) -> Line:
    keys = many_keys(options)
    found = ratios(imbalance, *(runs(one, options, keys, STEEPEST) for one in (CONTRAND, BISTREAM)))
    return shorter_line("7", "LI of ContRand against BiStream, Zipf 1.0", "lower", found, most=1.0)


def figure_8(options: Options) -> Outcome:
    """Throughput by skew."""
    plot = by_skew_plot(
        "figure-8",
        "Figure 8: system bottleneck by skew",
        "maximum throughput (tuples/s)",
        options,
        lambda one, keys: sustained(one, capacity_of(options, keys)),
    )
    many = many_keys(options)
    at_bar = [gains(LS_STREAM, BISTREAM, options, many, STEEPEST, number) for number in BAR_INSTANCES]
    over_hash = [
        times_line(
            "8", f"Ls-Stream over BiStream, Zipf 1.0, {number} instances", "more than 2 ×", found, least=2.0
        )
        for number, found in zip(BAR_INSTANCES, at_bar, strict=True)
    ]
    lines = [
        *over_hash,
        times_line(
            "8",
            f"the same with {FEW_KEYS} keys, 20 instances",
            "more than 2 ×",
            gains(LS_STREAM, BISTREAM, options, FEW_KEYS, STEEPEST),
            least=2.0,
        ),
        times_line(
            "8",
            "of it by routing: Ls-Stream over BiStream by partition",
            "-",
            gains(LS_STREAM, BY_PARTITION, options, many, STEEPEST),
        ),
        *(
            times_line(
                "8",
                f"the same, Zipf {skew:g}, {FEW_KEYS} keys",
                "-",
                gains(LS_STREAM, BY_PARTITION, options, FEW_KEYS, skew),
            )
            for skew in (0.4, 0.6)
            if skew in skews_of(options)
        ),
        times_line(
            "8",
            "Ls-Stream over FastJoin, Zipf 1.0",
            "more than 1 ×",
            gains(LS_STREAM, FASTJOIN, options, many, STEEPEST),
            least=1.0,
        ),
        times_line(
            "8",
            "BiStream-ContRand over BiStream, Zipf 1.0",
            "1.32 ×",
            gains(CONTRAND, BISTREAM, options, many, STEEPEST),
            least=1.2,
        ),
        _falls(BISTREAM, options, "29,500 → 11,000"),
        _falls(CONTRAND, options, "28,500 → 14,500"),
    ]
    least = min(over_hash, key=lambda line: line.value or 0.0)
    return Outcome(lines, [bar(least, "ls_stream.throughput_over_hash", 1.5)], [plot])


def _falls(system: System, options: Options, paper: str) -> Line:
    keys, skews = many_keys(options), skews_of(options)
    capacity = capacity_of(options, keys)
    first, last = (
        median(sustained(one, capacity) for one in runs(system, options, keys, skew))
        for skew in (skews[0], skews[-1])
    )
    return Line(
        "8",
        f"throughput of {system.name}, Zipf {skews[0]:g} and {skews[-1]:g}, tuples/s",
        paper,
        f"{first:,.0f} → {last:,.0f}",
        samples=(first, last),
        agrees=first > last,
    )
