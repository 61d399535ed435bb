"""Rows as counts of keys: what arrives in each batch, and what the windows contain.

Rows of a key behave alike (they are stored, they probe, they match each other), so a batch is a count per key
and side. A stream is counted once, and every strategy runs over the same counts. Keys are numbered 0 … in
ascending order of their codes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError


@dataclass(frozen=True)
class Counted:
    """The new rows of one side in one batch: distinct key numbers, and how many rows each has."""

    keys: NDArray[np.int64]
    rows: NDArray[np.int64]

    def dense(self, keys: int) -> NDArray[np.int64]:
        """Rows of each of all `keys` keys."""
        rows = np.zeros(keys, np.int64)
        rows[self.keys] = self.rows
        return rows


@dataclass(frozen=True)
class Arrivals:
    """A stream that arrives batch by batch: the codes of all its keys, and [batch][side] what came."""

    #: Ascending, distinct.
    codes: NDArray[np.uint64]
    batches: tuple[tuple[Counted, Counted], ...]


def count_arrivals(batches: Iterable[tuple[NDArray[np.uint64], NDArray[np.uint64]]]) -> Arrivals:
    """Arrivals out of the key codes of the left and the right rows of each batch."""
    counted = [tuple(np.unique(codes, return_counts=True) for codes in sides) for sides in batches]
    parts = [codes for sides in counted for codes, _ in sides]
    codes = np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.uint64)

    def numbered(side: tuple[NDArray[np.uint64], NDArray[np.int64]]) -> Counted:
        return Counted(np.searchsorted(codes, side[0]), side[1])

    return Arrivals(codes, tuple((numbered(sides[0]), numbered(sides[1])) for sides in counted))


class Window:
    """Stored rows of one side: a row that came in batch b is there for the batches b … b + batches - 1."""

    def __init__(self, keys: int, batches: int | None) -> None:
        if batches is not None and batches < 1:
            raise FlowError(
                "A window must last at least the batch that a row comes in",
                code="LAB_WINDOW_INVALID",
                got=f"{batches} batches",
                do="Give 1 or more, or None for a join over the full history",
            )
        self._batches = batches
        self._came: deque[Counted] = deque()
        #: Stored rows per key.
        self.rows: NDArray[np.int64] = np.zeros(keys, np.int64)

    def expire(self) -> None:
        """A new batch begins: rows that are too old for it leave."""
        if self._batches is not None and len(self._came) >= self._batches:
            old = self._came.popleft()
            self.rows[old.keys] -= old.rows

    def add(self, new: Counted) -> None:
        """The rows of the batch are stored."""
        self.rows[new.keys] += new.rows
        if self._batches is not None:
            self._came.append(new)
