"""The scenarios of `tidegate bench join`: one comparison set by options, or the settings of the bars.

default            set by options: rows per batch, keys, Zipf, window, row size, engines
hundred-thousand   100 k rows per batch, 1 M keys, ±10 s: a state of 1.1 M rows
million            1 M rows per batch, 10 M keys, ±10 s: a state of 11 M rows
wide-rows          the same with rows of 200 bytes
fixed-cost         a thousand batches of a thousand rows: the fixed cost of a batch
long-stream        ten windows long, memory and disk measured after each batch
long-window        ±10 s against ±100 s at the same rate: once with the same keys (ten times the pairs),
                   once with ten times the keys (the same pairs)
bars               all of these but the first, one after the other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tidegate.observe.json_frame import Bar
from tidegate_lab.bench.join.bars import (
    fixed_cost_bars,
    long_stream_bars,
    long_window_bar,
    marked,
    speed_bars,
)
from tidegate_lab.bench.join.rounds import REFERENCE, Entry, Line
from tidegate_lab.bench.join.spec import ENGINES
from tidegate_lab.bench.join.summary import US
from tidegate_lab.workloads.join_data import PLAIN_ROW_BYTES, JoinData

#: Batches after the window is full that are still not timed.
EXTRA_WARMUP = 2
#: Where a batch is short, Java's compilers take this many before its time settles: a stream runs for days.
WARM_BATCHES = 30
BASE_WINDOW_MS = 10_000


@dataclass(frozen=True)
class Options:
    """What the command line decides; sizes are those of the default scenario."""

    rows_per_batch: int = 100_000
    keys: int = 1_000_000
    zipf: float = 0.0
    window_ms: int = BASE_WINDOW_MS
    batch_ms: int = 1000
    row_bytes: int = PLAIN_ROW_BYTES
    #: Timed batches; None where the scenario decides.
    batches: int | None = None
    warmup: int | None = None
    engines: tuple[str, ...] = ENGINES
    empty_batches: int = 1000
    #: Rows and keys of the named scenarios are multiplied by this: below 1 is a dry run.
    scale: float = 1.0
    seed: int = 7


@dataclass(frozen=True)
class Scenario:
    """Entries to run in turns, and the bars that their lines answer."""

    name: str
    entries: Sequence[Entry]
    bars: Callable[[Sequence[Line]], list[Bar]]
    rounds: int = 3


def entries(options: Options, engines: Sequence[str], timed: int, **watch: bool) -> list[Entry]:
    """One entry per engine that was asked for, all with the work that the options describe."""
    filled = ceil(options.window_ms / options.batch_ms) + EXTRA_WARMUP
    warmup = filled if options.warmup is None else options.warmup
    data = JoinData(
        rows_per_batch=options.rows_per_batch,
        batches=warmup + (timed if options.batches is None else options.batches),
        keys=options.keys,
        zipf=options.zipf,
        batch_ms=options.batch_ms,
        row_bytes=options.row_bytes,
        seed=options.seed,
    )
    return [Entry(e, data, options.window_ms, warmup, **watch) for e in engines if e in options.engines]


def default(options: Options) -> Scenario:
    return Scenario("default", entries(options, ENGINES, 12), lambda lines: speed_bars(lines, 1.0))


def at(options: Options, rows: int, keys: int, row_bytes: int = PLAIN_ROW_BYTES) -> Options:
    """The setting of a bar: uniform keys, ±10 s, ticks of a second, sizes scaled."""
    return replace(
        options,
        rows_per_batch=max(2, round(rows * options.scale)),
        keys=max(1, round(keys * options.scale)),
        zipf=0.0,
        window_ms=BASE_WINDOW_MS,
        batch_ms=1000,
        row_bytes=row_bytes,
    )


def warmed(options: Options) -> Options:
    return options if options.warmup is not None else replace(options, warmup=WARM_BATCHES)


def hundred_thousand(options: Options) -> Scenario:
    work = entries(warmed(at(options, 100_000, 1_000_000)), ENGINES, 12)
    return Scenario("hundred-thousand", work, lambda lines: speed_bars(lines, options.scale))


def million(options: Options) -> Scenario:
    work = entries(at(options, 1_000_000, 10_000_000), ENGINES, 6)
    return Scenario("million", work, lambda lines: speed_bars(lines, options.scale), rounds=2)


def wide_rows(options: Options) -> Scenario:
    """No bar was set for these; the ratios stand in the rows."""
    engines = (US, "spark-memory", "spark-rocksdb-4", "floor", REFERENCE)
    work = entries(at(options, 1_000_000, 10_000_000, 200), engines, 6)
    return Scenario("wide-rows", work, lambda lines: [], rounds=2)


def fixed_cost(options: Options) -> Scenario:
    small = replace(warmed(at(options, 1000, 1_000_000)), rows_per_batch=1000, batches=None)
    work = entries(small, (US, REFERENCE), options.empty_batches)

    def bars(lines: Sequence[Line]) -> list[Bar]:
        return marked([bar for us in ours(lines) for bar in fixed_cost_bars(us)], options.scale)

    return Scenario("fixed-cost", work, bars, rounds=1)


def long_stream(options: Options) -> Scenario:
    """A row lives through the window on either side, so one window is 20 ticks and ten of them are 200."""
    span = 2 * BASE_WINDOW_MS // 1000
    long = replace(at(options, 100_000, 1_000_000), batches=None, warmup=2 * span)
    work = entries(long, (US, REFERENCE), 8 * span, watch=True)

    def bars(lines: Sequence[Line]) -> list[Bar]:
        return marked([bar for us in ours(lines) for bar in long_stream_bars(us)], options.scale)

    return Scenario("long-stream", work, bars, rounds=1)


def long_window(options: Options) -> Scenario:
    narrow = warmed(at(options, 100_000, 1_000_000))
    wide = replace(narrow, window_ms=10 * BASE_WINDOW_MS, warmup=None)
    sparse = replace(wide, keys=10 * narrow.keys)
    work = [entry for one in (narrow, wide, sparse) for entry in entries(one, (US, REFERENCE), 12)]

    def bars(lines: Sequence[Line]) -> list[Bar]:
        if not ours(lines):
            return []
        base, same_keys, same_pairs = ours(lines)
        found = [
            long_window_bar("join.window_10x_cost", base, same_keys),
            long_window_bar("join.window_10x_cost_same_pairs", base, same_pairs),
        ]
        return marked(found, options.scale)

    return Scenario("long-window", work, bars)


def ours(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.entry.engine == US]


NAMED = {
    "hundred-thousand": hundred_thousand,
    "fixed-cost": fixed_cost,
    "long-stream": long_stream,
    "long-window": long_window,
    "million": million,
    "wide-rows": wide_rows,
}
