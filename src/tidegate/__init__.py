"""Tidegate keeps stream joins on time and balanced when Spark gets more than its machines can take.

import tidegate as tg

orders = tg.stream(orders_df, time="ts", name="orders", lateness="2 seconds")
tracks = tg.stream(tracks_df, time="ts", name="tracks")
near = orders.join(tracks, on="cell", within=("20 seconds", "20 seconds"))
query = tg.start(near.write_to("parquet", "out/near"), checkpoint="ck", trigger="1 second")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.join_conditions import inner_product, overlap, pairwise, tumbling
from tidegate.api.nodes import Output
from tidegate.api.range_queries import Query
from tidegate.api.streams import Stream, stream
from tidegate.api.user_aggregates import udaf
from tidegate.api.windows import rows
from tidegate.errors import BatchFailed, CheckpointInUse, FlowError, StateError, TidegateError

if TYPE_CHECKING:
    from tidegate.driver.streaming_query import StreamingQuery as RunningQuery

__version__ = "0.1.0"

__all__ = [
    "Balance",
    "BatchFailed",
    "CheckpointInUse",
    "FlowError",
    "Goal",
    "Output",
    "Query",
    "Shed",
    "StateError",
    "Stream",
    "TidegateError",
    "__version__",
    "hilbert",
    "inner_product",
    "overlap",
    "pairwise",
    "rows",
    "start",
    "stream",
    "tumbling",
    "udaf",
]


def hilbert(lat: Any, lon: Any, bits: int) -> Any:
    """The cell of a place on a Hilbert curve, as a key: near numbers are near places.

    Columns (or expressions as text) give a column, numpy arrays an array; the same cells either way. A
    place out of range has none: null, or -1. `tidegate.route.hilbert.cell_bounds` leads back to the cell.
    """
    import numpy as np

    if isinstance(lat, np.ndarray):
        from tidegate.route.hilbert import hilbert as of_arrays

        return of_arrays(lat, lon, bits)
    from tidegate.driver.frames.hilbert import hilbert as of_columns

    return of_columns(lat, lon, bits)


def start(*outputs: Output, **settings: Any) -> RunningQuery:
    """Run a flow; see `tidegate.driver.streaming_query.start` for all settings."""
    # Spark is imported only here, so that describing a flow, and the stages, need no Java.
    from tidegate.driver.start import start as run

    return run(*outputs, **settings)
