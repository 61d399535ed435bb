"""What a plan asks of the tasks of every operator: one work order each, which travels to the workers."""

from __future__ import annotations

import uuid

from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames.drop_frames import Passing
from tidegate.driver.io.staging import Staging
from tidegate.driver.operators.protocol import BatchOrder
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.worker.runtime.task_runner import WorkOrder


class WorkOrders:
    """What stays the same for the life of a run, and makes a batch's work orders out of a plan."""

    def __init__(self, compiled: Compiled, store_url: str, staging: Staging):
        self._compiled, self._store_url = compiled, store_url
        self._staged = {name: (staging.root, kept_as) for name, kept_as in staging.kept_as.items()}
        self._run = uuid.uuid4().hex[:12]

    def of(self, plan: Plan, before: Manifest, passing: Passing, watch_keys: bool) -> dict[str, WorkOrder]:
        """By operator: what its tasks have to do under this plan."""
        compiled = self._compiled
        order = BatchOrder(
            plan, before, passing, watch_keys, self._store_url, self._run, self._staged, compiled.newest_us
        )
        return {one.name: one.work(order, compiled.graph.inputs[one.name]) for one in compiled.operators}

    def close(self) -> None:
        """Give back what was sent to the workers; no batch may follow."""
        for operator in self._compiled.operators:
            operator.close()
