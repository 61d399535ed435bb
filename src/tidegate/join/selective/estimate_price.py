"""What choosing by content costs, in comparisons: taken off the budget before any comparison is made.

An estimate and its choice are charged as `CELL_COMPARISONS` comparisons of bitsets of two words with their
pairs written, and the item counts and shares behind them as `ROW_COMPARISONS` per stored row. Measured
(`lab/scripts/set_pairs_speed.py`): 4.4 and 24, for batches of 1000 rows called again and again; batches of 5000
rows, whose values no longer stay in the cache, took up to 7 and 50, so that is what we charge. What is left
for comparing is what a time-only choice would have, less the price of knowing better.
"""

from __future__ import annotations

CELL_COMPARISONS = 7.0
ROW_COMPARISONS = 50.0


def price(cells: float, stored_rows: float) -> float:
    """Estimates for so many cells, and the upkeep of what they are made from."""
    return CELL_COMPARISONS * cells + ROW_COMPARISONS * stored_rows
