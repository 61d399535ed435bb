"""What rows owe: the time ranges that `reach.py` let them leave out, to be looked at later.

Beyond the selective join paper, which loses what it does not look at. A plan that skips work is a function of
times and of the identity of rows (reach.py), and stored rows keep the batch they came in. So long after the
batch it can be said which pairs its rows left out, wherever they lie by then:

    stored basic windows   …|    5    |    6    |    7    |    8    |
    looked at, share            0.0       1.0       0.4       1.0
                                      [▓▓▓▓▓▓▓▓▓]     [▓▓▓][▓▓▓▓▓▓▓▓▓]
    owed                    [░░░░░░░░░]         [░░░░░]

Guarantee: for the same rows, shares and stored times, `looks` and `owed` together cover every time in reach
that lies in a basic window of stored rows, and no time twice. As with `looks`, for rows of one basic window
the ranges never move backwards in time, but for rows that explore.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.join.selective.reach import (
    Ages,
    Look,
    NewRows,
    Sight,
    drawn,
    draws,
    explored_part,
    groups,
    in_sight,
    newest_part,
    nonempty,
)
from tidegate.model.times import END_US

if TYPE_CHECKING:
    from numpy.typing import NDArray


def owed(
    ages: Ages, shares: Sequence[float], new: NewRows, stored: tuple[int, int], filled_us: int = END_US
) -> Iterator[Look]:
    """What `looks`, given the same, leaves out."""
    if not ages.slot_us:
        yield from _other_rows(new, shares[0])
        return
    for sight in in_sight(ages, new, stored):
        share = shares[sight.age]
        if share < 1:
            yield from _owed(new, sight, share, filled=sight.end_us <= filled_us)


def _owed(new: NewRows, sight: Sight, share: float, *, filled: bool) -> Iterator[Look]:
    """What is left out of one basic window."""
    for group, explores in groups(new, sight.rows):
        whole = draws(new, share, explores, filled)
        if whole:
            group = _not_drawn(new, group, share)
        if group is not None and not group.size:
            continue
        low, high = (new.low, new.high) if group is None else (new.low[group], new.high[group])
        begin, end = np.maximum(low, sight.begin_us), np.minimum(high, sight.end_us)
        if whole:
            ranges = [(begin, end)]
        elif explores is not None:
            # In front of, and behind, what was looked at.
            first, last = explored_part(new, group, explores, sight, share)
            ranges = [(begin, np.minimum(end, first - 1)), (np.maximum(begin, last + 1), end)]
        else:
            newest, _ = newest_part(begin, end, share)
            ranges = [(begin, newest - 1)]
        for first, last in ranges:
            yield from nonempty(Look(group, first, last, sight.age, explores is not None))


def _not_drawn(new: NewRows, rows: NDArray[np.int64] | None, share: float) -> NDArray[np.int64]:
    everyone = np.arange(new.times.size) if rows is None else rows
    return np.setdiff1d(everyone, drawn(new, rows, share), assume_unique=True)


def _other_rows(new: NewRows, share: float) -> Iterator[Look]:
    """Over the full history some rows look at everything; these are the others."""
    if share >= 1 or new.lots is None:
        return
    rows = np.flatnonzero(new.lots >= share)
    if rows.size:
        yield Look(rows, new.low[rows], new.high[rows], 0, False)


def chosen(look: Look, lots: NDArray[np.float64], since: float, until: float) -> Iterator[Look]:
    """The look of those rows alone whose lots lie in [since, until)."""
    if since <= 0 and until >= 1:
        yield look
        return
    mine = lots if look.rows is None else lots[look.rows]
    kept = np.flatnonzero((mine >= since) & (mine < until))
    if kept.size:
        rows = kept if look.rows is None else look.rows[kept]
        yield Look(rows, look.low[kept], look.high[kept], look.age, look.exploring)
