"""Makes the work orders of a batch: what the plan asks of the tasks of each operator."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.engine.piece_files import PieceFiles
from tidegate.driver.frames.drop_frames import Passing
from tidegate.driver.io.staging import Staging
from tidegate.driver.operators.protocol import BatchOrder
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.worker.runtime.pipe import Pipe, Reports
from tidegate.worker.runtime.task_runner import WorkOrder


class WorkOrders:
    """Makes work orders from plans; holds what stays the same for the life of a run."""

    def __init__(self, compiled: Compiled, store_url: str, staging: Staging):
        self._compiled, self._store_url = compiled, store_url
        staged = {name: (staging.root, kept_as) for name, kept_as in staging.kept_as.items()}
        #: Tasks stage their results themselves, unless these go straight on.
        self._staged = {name: one for name, one in staged.items() if name not in staging.piped}
        self._piped = {name: staged.get(name, (None, None)) for name in sorted(staging.piped)}
        adding: Any = Reports()
        sends = staging.piped or staging.direct is not None
        self._reports: Any = compiled.spark.sparkContext.accumulator([], adding) if sends else None
        self._persisted, self._early = staging.persisted, staging.early
        self._run = uuid.uuid4().hex[:12]
        self._piece_files = PieceFiles(store_url)

    def of(
        self, plan: Plan, before: Manifest, passing: Passing, watch_keys: bool, direct: str | None = None
    ) -> dict[str, WorkOrder]:
        """The work order of each operator under this plan; `direct`: its output is written by the action."""
        compiled = self._compiled
        staged = {name: one for name, one in self._staged.items() if name != direct}
        self._piece_files.clear(plan.batch)
        order = BatchOrder(
            plan=plan,
            before=before,
            passing=passing,
            watch_keys=watch_keys,
            store_url=self._store_url,
            run=self._run,
            staged=staged,
            newest_us=compiled.newest_us,
            sent=self._piece_files.sent,
        )
        return {one.name: one.work(order, compiled.graph.inputs[one.name]) for one in compiled.operators}

    def pipes(self, plan: Plan, works: Mapping[str, WorkOrder], direct: str | None = None) -> dict[str, Pipe]:
        """By operator whose results go straight on in a pass under this plan: how."""
        token = uuid.uuid4().hex[:12]
        windows = {one.name: one for one in self._compiled.windows}
        onward = {name: windows[reader].onward(works[reader]) for name, reader in self._early.items()}
        made = {
            name: Pipe(name, plan.batch, token, self._reports, root, kept_as, onward=onward.get(name))
            for name, (root, kept_as) in self._piped.items()
        }
        if direct is not None:
            # The action collects no reports then, so all of them are sent.
            made[direct] = Pipe(direct, plan.batch, token, self._reports)
            for name in sorted(self._persisted):
                made[name] = Pipe(name, plan.batch, token, self._reports, persists=True)
        return made

    def close(self) -> None:
        """Release what was sent to workers; no batch may follow."""
        for operator in self._compiled.operators:
            operator.close()
        self._piece_files.close()
