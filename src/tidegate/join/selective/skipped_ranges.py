"""Computes the time ranges that `reach.py` skipped, so that they can be probed later (repair).

Beyond the selective join paper, which loses the pairs that it does not probe. A plan that skips work is a
function of times and row identities (`reach.py`), and stored rows keep the batch they arrived in. So the
skipped pairs of a batch can be determined long afterwards, wherever its rows are stored by then:

    stored basic windows   …|    5    |    6    |    7    |    8    |
    probe ratio                 0.0       1.0       0.4       1.0
    probed                            [▓▓▓▓▓▓▓▓▓]     [▓▓▓][▓▓▓▓▓▓▓▓▓]
    skipped                 [░░░░░░░░░]         [░░░░░]

Guarantee: for the same rows, shares and stored times, `probe_ranges` and `unprobed_ranges` together cover
every time in range that lies in a basic window of stored rows, and no time twice. As with `probe_ranges`,
the ranges of rows of one basic window never move backwards in time, except for exploring rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.join.selective.reach import (
    Ages,
    CandidateWindow,
    NewRows,
    ProbeRange,
    candidate_windows,
    drawn,
    draws,
    explored_part,
    groups,
    newest_part,
    nonempty,
)
from tidegate.model.times import END_US


def unprobed_ranges(
    ages: Ages, shares: Sequence[float], new: NewRows, stored: tuple[int, int], filled_us: int = END_US
) -> Iterator[ProbeRange]:
    """The ranges that `probe_ranges`, given the same arguments, leaves out."""
    if not ages.slot_us:
        yield from _other_rows(new, shares[0])
        return
    for candidate in candidate_windows(ages, new, stored):
        share = shares[candidate.age]
        if share < 1:
            yield from _unprobed_ranges(new, candidate, share, filled=candidate.end_us <= filled_us)


def _unprobed_ranges(
    new: NewRows, candidate: CandidateWindow, share: float, *, filled: bool
) -> Iterator[ProbeRange]:
    """The ranges left out of one basic window."""
    for group, explores in groups(new, candidate.rows):
        whole = draws(new, share, explores, filled)
        if whole:
            group = _not_drawn(new, group, share)
        if group is not None and not group.size:
            continue
        low, high = (new.low, new.high) if group is None else (new.low[group], new.high[group])
        begin, end = np.maximum(low, candidate.begin_us), np.minimum(high, candidate.end_us)
        if whole:
            ranges = [(begin, end)]
        elif explores is not None:
            # Before and behind the part that was probed.
            first, last = explored_part(new, group, explores, candidate, share)
            ranges = [(begin, np.minimum(end, first - 1)), (np.maximum(begin, last + 1), end)]
        else:
            newest, _ = newest_part(begin, end, share)
            ranges = [(begin, newest - 1)]
        for first, last in ranges:
            yield from nonempty(ProbeRange(group, first, last, candidate.age, explores is not None))


def _not_drawn(new: NewRows, rows: NDArray[np.int64] | None, share: float) -> NDArray[np.int64]:
    everyone = np.arange(new.times.size) if rows is None else rows
    return np.setdiff1d(everyone, drawn(new, rows, share), assume_unique=True)


def _other_rows(new: NewRows, share: float) -> Iterator[ProbeRange]:
    """Over the full history a sample of the rows probes everything; these are the other rows."""
    if share >= 1 or new.unit_hashes is None:
        return
    rows = np.flatnonzero(new.unit_hashes >= share)
    if rows.size:
        yield ProbeRange(rows, new.low[rows], new.high[rows], 0, False)


def chosen(
    probe_range: ProbeRange, unit_hashes: NDArray[np.float64], since: float, until: float
) -> Iterator[ProbeRange]:
    """The probe range restricted to rows whose unit hash lies in [since, until)."""
    if since <= 0 and until >= 1:
        yield probe_range
        return
    mine = unit_hashes if probe_range.rows is None else unit_hashes[probe_range.rows]
    kept = np.flatnonzero((mine >= since) & (mine < until))
    if kept.size:
        rows = kept if probe_range.rows is None else probe_range.rows[kept]
        yield ProbeRange(
            rows, probe_range.low[kept], probe_range.high[kept], probe_range.age, probe_range.exploring
        )
