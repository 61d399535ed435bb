"""Real news as input of a simulated join: items of two sources, replayed at stepping rates, matched by terms.

Paper: selective join, motivation: news items of two sources as weighted keywords, an inner product join.

The items are Reuters-21578 (research use; the files are not part of this project): per item its desk and its
eight heaviest terms with weights. Weights are scaled to length one, so an inner product is a cosine. Two ways
to make two sources of it:

    wire    two feeds that share the wire: every other item goes to the left, the rest to the right
    desks   financial desks (F…) on the left, all others on the right; these share few stories

Items keep their order; they are replayed so that both sources together follow the steps of a rate. A window
of 20 s must not span the whole year, or nearness in time means nothing: a run replays one fifth of the items
(about seven weeks), and the seed says which. The right source can be made to lag: it then sends everything so
much later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.join.sets.inverted_lists import InvertedLists
from tidegate.join.sets.item_sets import ItemSets, item_sets
from tidegate.join.sets.thresholds import InnerProduct
from tidegate_lab.reproduce.real_files import require
from tidegate_lab.simulate.join.basic_windows import Windows
from tidegate_lab.simulate.join.known_pairs import KnownPairs, identities
from tidegate_lab.simulate.join.machine import SECOND_US, Stream
from tidegate_lab.workloads.selective_join import Steps

WIRE, DESKS = "wire", "desks"
#: A run replays one of so many parts of the items.
PARTS = 5
FILES = ("reuters21578_news.parquet", "reuters21578_terms.parquet")
#: Pairs that are found at a time.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class News:
    """Where the items lie, how alike two must be, and how far the right source is behind."""

    folder: Path
    sources: str = WIRE
    at_least: float = 0.3
    lag_seconds: float = 0.0

    def __post_init__(self) -> None:
        require(
            self.folder,
            FILES,
            "The news items",
            why="They may be used for research only, so they do not come with Tidegate",
            made_of="made of Reuters-21578 in the order of time, columns newid, desk and newid, term, weight",
            instead="the paper's own workload is generated",
        )


@lru_cache(maxsize=1)
def _items(folder: Path) -> tuple[NDArray[np.bool_], ItemSets]:
    """In the order of their times: who is of a financial desk, and everyone's weighted terms."""
    import pyarrow.parquet as pq

    news = pq.read_table(folder / FILES[0], columns=["newid", "desk"])
    terms = pq.read_table(folder / FILES[1], columns=["newid", "term", "weight"])
    numbers = news["newid"].to_numpy()
    financial = np.array([str(desk).startswith("F") for desk in news["desk"].to_pylist()])
    place = np.full(int(numbers.max()) + 1, -1, np.int64)
    place[numbers] = np.arange(numbers.size)
    owner = place[terms["newid"].to_numpy()]
    order = np.argsort(owner, kind="stable")
    words = terms["term"].combine_chunks().dictionary_encode()
    codes: Any = words.indices.to_numpy()
    weights = terms["weight"].to_numpy().astype(np.float64)
    lengths = np.sqrt(np.bincount(owner, weights=weights**2, minlength=numbers.size))
    bounds = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=numbers.size))))
    scaled_weights = (weights / np.maximum(lengths, 1e-12)[owner])[order]
    return financial, item_sets(bounds, codes[order], len(words.dictionary), scaled_weights)


def item_count(news: News) -> int:
    """Items of both sources in one run."""
    return len(_items(news.folder)[1]) // PARTS


def replay_seconds(steps: Steps, items: int) -> NDArray[np.float64]:
    """When each item comes, so that together they follow the steps: evenly within each."""
    edges = np.concatenate(([0.0], np.cumsum([seconds for seconds, _ in steps.levels])))
    due = np.concatenate(([0.0], np.cumsum([seconds * level for seconds, level in steps.levels])))
    return np.asarray(np.interp((np.arange(items) + 0.5) / items * due[-1], due, edges))


@lru_cache(maxsize=16)
def news_streams(
    news: News, steps: Steps, windows: Windows, seed: int
) -> tuple[tuple[Stream, Stream], KnownPairs]:
    """Both sources as streams, and which of their items within the windows are alike."""
    financial, sets = _items(news.folder)
    count = item_count(news)
    part = np.arange(count) + seed % PARTS * count
    sets = sets.take(part)
    is_left = part % 2 == 0 if news.sources == WIRE else financial[part]
    times = (replay_seconds(steps, count) * SECOND_US).astype(np.int64)
    left, right = np.flatnonzero(is_left), np.flatnonzero(~is_left)
    left_us, right_us = times[left], times[right] + round(news.lag_seconds * SECOND_US)
    starts = np.searchsorted(right_us, left_us - windows.lengths_us[1], side="left")
    ends = np.searchsorted(right_us, left_us + windows.lengths_us[0], side="right")
    prepared = InvertedLists(InnerProduct(news.at_least)).prepare(sets.take(right))
    found = list(prepared.find(sets.take(left), starts, ends, _AT_ONCE))
    none = np.zeros(0, np.int64)
    pairs = [np.concatenate([none, *(chunk[side] for chunk in found)]) for side in (0, 1)]
    streams = (
        Stream(left_us, identities(left.size, 0)),
        Stream(right_us, identities(right.size, 1)),
    )
    return streams, KnownPairs(pairs[0], pairs[1], (left.size, right.size))
