"""What pairs will cost once the windows have filled: moving early is cheap, moving twice is not.

While windows fill, every batch finds more pairs than the one before, and rows cost the same. A plan made
from the first batch would give pairs too little weight, and another one would follow when far more rows are
stored. So as long as the state grows, the price of a pair is raised to what pairs will come to in some
batches if it goes on growing like that:

    rows that a batch looks at     now: stored − new / 2     in `BATCHES` batches: that + BATCHES · growth

(a row of the batch itself meets half of the batch, on average). A state that does not grow changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.route.auto.work_costs import MATCH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How far ahead. Farther helps little: pairs outweigh all else by then. If windows are full earlier, pairs
#: got somewhat too much weight.
BATCHES = 3


def prices_ahead(
    prices: NDArray[np.float64], *, stored: float, before: float, new: float
) -> NDArray[np.float64]:
    """Prices for the batches to come: `stored` rows lie in the state, `before` did a batch ago."""
    ahead = prices.copy()
    looked_at = max(stored - new / 2, 1.0)
    ahead[MATCH] *= 1 + BATCHES * max(stored - before, 0.0) / looked_at
    return ahead
