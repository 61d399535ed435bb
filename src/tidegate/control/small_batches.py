"""Decides whether one task runs all instances of the operators of a batch, without a shuffle.

    shuffled    scan ─▶ shuffle ─▶ a task for each instance ─▶ shuffle ─▶ …      instances work side by side
    one task    scan ─▶ all instances in turn ─▶ all instances in turn ─▶ …      one stage, whatever the flow

A shuffle and the tasks behind it have a fixed cost, which is most of a small batch. So a batch runs in one
task if it has few bytes, the state behind it is small, and the last batch took little time to run. The last
condition keeps batches apart whose rows are few but expensive, for example by a Python function of the user.

Both ways give the same rows, state and reports. The choice is in the plan, so a replay makes it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import index_of
from tidegate.model.routing import Routing

#: Key in the manifest's control state: how long the last batch with rows ran.
CONTROL = "small_batches"
#: Twenty thousand rows of ten columns in Parquet have about a megabyte. With four times that, two tasks are
#: as fast as one on two cores, and faster on more.
INPUT_BYTES_MAX = 4 << 20
#: One worker reads all of the state; what it has read once stays mapped.
STATE_BYTES_MAX = 256 << 20
#: About five times the fixed cost of a small batch: one that takes longer has work to share.
RUN_SECONDS_MAX = 0.5
#: Each instance costs its task some milliseconds, even without rows.
INSTANCES_MAX = 16


def in_one_task(manifest: Manifest, routing: Mapping[str, Routing], input_bytes: int | None) -> bool:
    """Whether the next batch runs in one task. `input_bytes`: of its sources; None: they do not say."""
    known = manifest.control.get(CONTROL)
    if known is None or input_bytes is None or input_bytes > INPUT_BYTES_MAX:
        return False
    few = all(one.instances <= INSTANCES_MAX for one in routing.values())
    stored = sum(total.size_bytes for total in index_of(manifest.pieces).totals().values())
    return few and stored <= STATE_BYTES_MAX and known["run_seconds"] <= RUN_SECONDS_MAX


def learn(before: Manifest, run_seconds: float | None) -> Snapshot | None:
    """What is remembered; `run_seconds`: of the action of a batch with rows, None: it had none."""
    known: Snapshot | None = before.control.get(CONTROL)
    return known if run_seconds is None else {"run_seconds": run_seconds}
