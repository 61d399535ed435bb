"""How much of its sources a batch takes without a goal: what the tasks have memory for.

    amount of the first batch ──▶ batch ──▶ received by its largest task ──▶ amount of the next one

Without a limit a backlog of days would be one batch. The amount is one factor for all limited sources: 1 is
what the first batch of a new query takes (`driver/io/default_limits.py`). It is chosen so that the largest
task of the next batch receives `_ROOMS` rooms, a room being the bytes of rows that it handles at a time
(`worker/runtime/memory.py`): a task that can handle its rows in portions needs no file for them then, and one
that cannot still fits. If a worker has more memory than `_PEAK_ROOMS` rooms besides its libraries, the amount
shrinks by that as well, but not far: the cause may be stored rows, which take as much with smaller batches.

Ours. Guarantee: the factor stays in [LEAST, MOST]; it rises by `_RISE` at most from batch to batch and falls
at once; it is a function of what was observed, and the manifest holds it. A replay takes the rows of Spark's
offset log, whatever the factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.model.json_values import Snapshot
from tidegate.model.reports import TaskMemory

#: Key in the manifest's control state.
CONTROL = "batch_size"
#: Bounds of the factor. Below, fixed cost would take most of the time; above, a batch gains no throughput.
LEAST, MOST = 1 / 64, 16.0
#: Largest growth from one batch to the next, because input that comes later may be larger in memory.
_RISE = 4.0
#: A batch that took less than this part of the limits says little of a full one.
_ENOUGH = 1 / 16
#: Rooms that the largest task should receive. It keeps two in memory; keys and streams are never quite even.
_ROOMS = 1.5
#: Rooms of memory that a worker may have besides libraries and free memory that it keeps, and the least
#: factor that more memory leads to.
_PEAK_ROOMS, _LIBRARIES_BYTES, _LEAST_BY_PEAK = 10.0, 384 << 20, 0.25


def factor(control: Mapping[str, Any]) -> float:
    """What the batch after this manifest takes, as a multiple of the first amount."""
    return float(control.get(CONTROL, {}).get("factor", 1.0))


def learn(control: Mapping[str, Any], taken: float, tasks: Iterable[TaskMemory]) -> Snapshot:
    """The factor after a batch that took this part of the limits."""
    now = factor(control)
    if taken < _ENOUGH:
        return {"factor": now}
    measured = [one for one in tasks if one.room_bytes]
    # How much too large a full batch is for the largest task, and for the memory of its worker.
    rows = max((one.received_bytes / one.room_bytes for one in measured), default=0.0) / _ROOMS / taken
    memory = max(((one.peak_bytes - _LIBRARIES_BYTES) / one.room_bytes for one in measured), default=0.0)
    wanted = now / max(rows, 1 / _RISE)
    if memory > _PEAK_ROOMS:
        wanted = min(wanted, max(now * _PEAK_ROOMS / memory, min(now, _LEAST_BY_PEAK)))
    return {"factor": min(MOST, max(LEAST, wanted))}
