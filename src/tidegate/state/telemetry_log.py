"""`TelemetryLog`: what each batch reported, one file a batch, for receipts, control and inspection.

A replayed batch replaces its file. Numbers that are not finite (the ratio of nothing to nothing) are written
as null, because JSON has no word for them and a report must never fail a batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tidegate.state.store.paths import batch_of, batch_path
from tidegate.state.store.sealed import seal, unseal
from tidegate.state.store.store import Store

FOLDER = "telemetry"
KIND = "telemetry"
#: Batches kept unless told otherwise: a quarter of an hour at a batch a second.
KEEP = 1000

Records: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class TelemetryLog:
    """The telemetry of one checkpoint."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, batch: int, records: Records) -> None:
        """Keep what a batch reported; numpy numbers become plain ones."""
        self._store.write_atomic(batch_path(FOLDER, batch), seal(KIND, batch, _plain(records)))

    def read(self, batch: int) -> Any:
        """What was written for a batch; None when nothing was, or when it has been purged."""
        path = batch_path(FOLDER, batch)
        if not self._store.exists(path):
            return None
        return unseal(self._store.read(path), KIND, batch, path, object)

    def batches(self) -> list[int]:
        """All batches that have a file, oldest first."""
        return sorted(b for b in map(batch_of, self._store.list(FOLDER)) if b is not None)

    def purge(self, keep: int = KEEP) -> None:
        """Delete all but the newest `keep` batches."""
        for batch in self.batches()[: -keep or None]:
            self._store.delete(batch_path(FOLDER, batch))


def _plain(value: Any) -> Any:
    """The value with numpy numbers as Python's and numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
