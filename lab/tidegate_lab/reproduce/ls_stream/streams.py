"""What comes in: Zipf streams with many and with few keys, and a city, made up or real, in place of DiDi's.

Paper: Ls-Stream, experimental setup: Zipf 0.2 to 1.0, "generated in a similar way" to FastJoin, which has 10
million keys. The number of keys is not printed, and it decides nearly everything: over 10 million keys hash
routing is almost balanced up to Zipf 0.6, while the paper reports an imbalance of 1.5 at 0.4 and of 5.3 at
0.8. Some 300 keys come near those. So both are measured.

A batch is a second, the window ten of them; the paper prints no window. Both streams have half of the rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.taxis import TaxiStreams, taxi_batches
from tidegate_lab.simulate.balance.key_counts import Arrivals, count_arrivals
from tidegate_lab.workloads.skew import Batch, ZipfStreams, city_streams, zipf_batches

SKEWS, QUICK_SKEWS = (0.2, 0.4, 0.6, 0.8, 1.0), (0.4, 1.0)
MANY_KEYS, QUICK_MANY_KEYS, FEW_KEYS = 10_000_000, 100_000, 300
#: Batches that a row is stored.
WINDOWS = (10, 10)


@dataclass(frozen=True)
class Source:
    """One stream pair: `keys` of Zipf(`skew`), or with `keys` 0 the city, or taxis from the folder `real`."""

    rate: int
    seed: int
    batches: int
    keys: int = 0
    skew: float = 0.0
    #: Batches before this one fill the windows and let strategies settle; they are not counted.
    settled: int = 20
    real: Path | None = None


def source(options: Options, seed: int, rate: int, keys: int = 0, skew: float = 0.0) -> Source:
    """At the paper's rate, or at a fifth of it and for a shorter time in a quick run."""
    real = None if keys else options.real
    if options.quick:
        return Source(rate // 5, seed, 18, keys, skew, settled=13, real=real)
    return Source(rate, seed, 36, keys, skew, real=real)


def place_text(options: Options) -> str:
    return "made-up city" if options.real is None else "San Francisco taxis"


def many_keys(options: Options) -> int:
    return QUICK_MANY_KEYS if options.quick else MANY_KEYS


def keys_text(keys: int) -> str:
    return f"{keys // 1_000_000} million keys" if keys >= 1_000_000 else f"{keys:,} keys"


@lru_cache(maxsize=64)
def arrivals(source: Source) -> Arrivals:
    if source.real is not None:
        return count_arrivals(_taxis(source, source.real))
    if source.keys:
        half = source.rate // 2
        streams = ZipfStreams(
            exponents=(source.skew, source.skew),
            keys=source.keys,
            rows=(half, half),
            batches=source.batches,
            seed=source.seed,
        )
    else:
        # One order for every nine tracks, as in FastJoin's data.
        orders = source.rate // 10
        streams = city_streams((orders, source.rate - orders), source.batches, source.seed)
    return count_arrivals(zipf_batches(streams))


def _taxis(source: Source, folder: Path) -> Iterator[Batch]:
    """The first batches of three days that are replayed at the rate asked for, on average."""
    (everything,) = taxi_batches(TaxiStreams(folder, batches=1))
    batches = max(source.batches, round(sum(side.size for side in everything) / source.rate))
    return islice(taxi_batches(TaxiStreams(folder, batches=batches, seed=source.seed)), source.batches)
