"""Stream joins and window aggregates for PySpark that stay on time under overload, and report what they shed.

    import tidegate as tg

    orders = tg.stream(orders_df, name="orders", time="ts", lateness="10 seconds")
    tracks = tg.stream(tracks_df, name="tracks", time="ts", lateness="10 seconds")
    near = orders.join(tracks, on="cell", within="20 seconds")
    query = tg.start(
        near.write_to("parquet", "out/near"),
        checkpoint="ck",
        trigger="1 second",
        goal=tg.Goal(latency="2 seconds"),
    )

Importing this package starts nothing: Spark is imported when a query starts. `tidegate.policies` has the
strategies for shedding and balancing, `tidegate.testing` runs flows on rows of a test.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidegate import policies
from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.joins.conditions import equal, inner_product, overlap, pairwise
from tidegate.api.joins.hilbert import hilbert
from tidegate.api.joins.time_bounds import UNBOUNDED, between, same_window
from tidegate.api.listeners import Listener, add_listener, await_any, remove_listener
from tidegate.api.nodes import Output
from tidegate.api.range_queries import RangeQuery
from tidegate.api.sources import stream
from tidegate.api.start import start
from tidegate.api.streams import Stream
from tidegate.api.user_aggregates import Aggregator
from tidegate.api.windows import row_window
from tidegate.errors import BatchFailed, CheckpointInUse, FlowError, StateError, TidegateError
from tidegate.model.progress import Progress
from tidegate.quantities import Duration

if TYPE_CHECKING:
    from tidegate.driver.streaming_query import StreamingQuery

__version__ = "0.1.0"

# Nothing is printed unless the user configures logging.
logging.getLogger("tidegate").addHandler(logging.NullHandler())

__all__ = [
    "UNBOUNDED",
    "Aggregator",
    "Balance",
    "BatchFailed",
    "CheckpointInUse",
    "Duration",
    "FlowError",
    "Goal",
    "Listener",
    "Output",
    "Progress",
    "RangeQuery",
    "Shed",
    "StateError",
    "Stream",
    "StreamingQuery",
    "TidegateError",
    "__version__",
    "add_listener",
    "await_any",
    "between",
    "equal",
    "hilbert",
    "inner_product",
    "overlap",
    "pairwise",
    "policies",
    "remove_listener",
    "row_window",
    "same_window",
    "start",
    "stream",
]


#: Old names that users of unreleased versions may still write, and their new ones.
_MOVED = {
    "Query": "RangeQuery",
    "RunningQuery": "StreamingQuery",
    "rows": "row_window",
    "tumbling": "same_window",
    "udaf": "Aggregator",
}


# Hidden from type checkers, which would take any name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "StreamingQuery":
            from tidegate.driver.streaming_query import StreamingQuery

            return StreamingQuery
        if name in _MOVED:
            raise AttributeError(f"tidegate.{name} is now tidegate.{_MOVED[name]}")
        raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
