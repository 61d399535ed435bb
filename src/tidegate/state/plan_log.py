"""`PlanLog`: what was decided for a batch, written before the batch runs, read back when it runs again.

Guarantee: the plan of a batch is written once. A replay therefore sheds, routes and emits exactly as the
first try did, even under other settings.
"""

from __future__ import annotations

from tidegate.errors import StateError
from tidegate.model.plan import Plan
from tidegate.state.store.paths import batch_of, batch_path
from tidegate.state.store.sealed import seal, unseal
from tidegate.state.store.store import Store

FOLDER = "plans"
KIND = "plan"


class PlanLog:
    """The plans of one checkpoint; of two writers of one batch, one succeeds."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, batch: int) -> Plan | None:
        """The plan of a batch that has been tried before; None for a batch that never was."""
        path = batch_path(FOLDER, batch)
        if not self._store.exists(path):
            return None
        return unseal(self._store.read(path), KIND, batch, path, Plan)

    def write(self, plan: Plan) -> None:
        """Fix the plan of a batch. Writing the same plan again is fine, another one is refused."""
        sealed = seal(KIND, plan.batch, plan)
        path = batch_path(FOLDER, plan.batch)
        # The bytes are compared, not the values: what counts is what a replay will read.
        if not self._store.write_new(path, sealed) and self._store.read(path) != sealed:
            raise StateError(
                f"Batch {plan.batch} already has a different plan: {path}",
                code="CHECKPOINT_PLAN_CONFLICT",
                got=f"a second plan, made at {plan.now_us} us",
                why="Part of the batch may have run under the first plan, which a replay must repeat",
                do="Check that no other run uses this checkpoint, then start the query again: it replays "
                "the first plan",
            )

    def purge(self, before: int) -> None:
        """Delete the plans of batches below `before`: they are done and will not run again."""
        for path in self._store.list(FOLDER):
            batch = batch_of(path)
            if batch is not None and batch < before:
                self._store.delete(path)
