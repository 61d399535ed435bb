"""Seconds that an instance of a simulated join takes per unit of work; a batch lasts one second."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Speed:
    """Storing and finding are free, as in the papers' cost model; comparing and migrating are not."""

    comparison: float
    #: For each stored row that a migration sends from one instance to another.
    moved_row: float = 0.0
    #: For each key of the giver that a choice of keys must look at.
    chosen_key: float = 0.0
