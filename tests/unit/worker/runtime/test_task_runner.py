"""One task that runs all instances gives each of them its own rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from tidegate.control.balance.rerouting import first_routing
from tidegate.route.assignment import Assignment
from tidegate.worker.runtime.layout import INSTANCE
from tidegate.worker.runtime.state_order import StateOrder
from tidegate.worker.runtime.task_runner import in_one_task

INSTANCES = 3


@dataclass(frozen=True)
class Layout:
    operator: str = "join1"


@dataclass(frozen=True)
class Work:
    layout: Layout = Layout()
    state: StateOrder = field(
        default_factory=lambda: StateOrder("", 0, 0, 0, first_routing([Assignment(INSTANCES, (0, 1, 2))]), ())
    )


class Echo:
    """Returns its rows, and a last row with its instance."""

    attempts: ClassVar[set[str]] = set()

    def __init__(self, work: Any, instance: int, attempt: str):
        self.instance = instance
        self.attempts.add(attempt)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        yield pa.record_batch({"row": [f"report {self.instance}"]})


def received(*instances: int) -> pa.RecordBatch:
    rows = [f"row of {one}" for one in instances]
    return pa.record_batch({"row": rows, INSTANCE: pa.array(instances, pa.int32())})


def test_each_instance_gets_its_rows_of_all_batches_and_reports_last() -> None:
    Echo.attempts.clear()
    results = in_one_task(Echo, Work())(iter([received(0, 2, 0), received(2, 2)]))
    rows = [row for batch in results for row in batch.column("row").to_pylist()]
    assert rows == [*["row of 0"] * 2, "report 0", "report 1", *["row of 2"] * 3, "report 2"]
    assert len(Echo.attempts) == INSTANCES


def test_the_number_of_the_instance_is_no_column_of_its_rows() -> None:
    results = in_one_task(Echo, Work())(iter([received(1)]))
    assert all(batch.schema.names == ["row"] for batch in results)


def test_instances_without_rows_run_too() -> None:
    results = in_one_task(Echo, Work())(iter([]))
    assert [row for batch in results for row in batch.column("row").to_pylist()] == [
        f"report {instance}" for instance in range(INSTANCES)
    ]
