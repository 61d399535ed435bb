"""`ReceiptLog`: what every batch lost, one JSON line a batch, as long as the retention of the query says.

    <checkpoint>/receipts/0000000000.json     batches 0 to 99, a line each
                          0000000100.json     batches 100 to …, written anew with every batch

So many lines share a file that thousands of batches stay few files, and a file is replaced as a whole: a
batch has exactly one line at any moment, also after replays and crashes, and readers of the folder (with
Spark: `spark.read.json("<checkpoint>/receipts")`) see whole lines only. A line is written before the
manifest of its batch; until that stands, the batch may run again, and replaces its line by one that
differs in the measured latency alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.errors import StateError
from tidegate.model.json_values import Json
from tidegate.model.times import utc_text
from tidegate.state.store.paths import batch_of
from tidegate.state.store.store import Store

#: Lines of a file. More: fewer files; fewer: less to write with every batch.
PER_FILE = 100


class ReceiptLog:
    """The receipts of one checkpoint; one writer at a time (see `lock`)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: The file that was written last, and its lines by batch: it need not be read again.
        self._open: tuple[str, dict[int, str]] | None = None

    def write(self, receipt: Mapping[str, Any]) -> None:
        """Keep the receipt of a batch; that of a batch that runs again takes the place of the first."""
        batch = int(receipt["batch_id"])
        path = f"{batch - batch % PER_FILE:010d}.json"
        if self._open is None or self._open[0] != path:
            self._open = path, {one: text for one, text, _ in self._lines(path)}
        lines = self._open[1]
        lines[batch] = json.dumps(receipt, separators=(",", ":"), allow_nan=False)
        self._store.write_atomic(path, ("\n".join(lines[one] for one in sorted(lines)) + "\n").encode())

    def read(self, first: int = 0) -> list[Json]:
        """All receipts from this batch on, oldest first."""
        files = sorted(path for path in self._store.list() if batch_of(path) is not None)
        wanted = [path for path in files if (batch_of(path) or 0) + PER_FILE > first]
        return [receipt for path in wanted for batch, _, receipt in self._lines(path) if batch >= first]

    def purge(self, before_us: int) -> None:
        """Delete files all of whose batches began before this time; the newest file stays."""
        before = utc_text(before_us)
        files = sorted(path for path in self._store.list() if batch_of(path) is not None)
        for path in files[:-1]:
            started = [receipt.get("started_at", before) for _, _, receipt in self._lines(path)]
            if started and max(started) >= before:
                return
            self._store.delete(path)

    def tidy(self) -> None:
        """Delete what a crash left of writes that were cut short."""
        for path in self._store.list(temporary=True):
            self._store.delete(path)

    def _lines(self, path: str) -> Iterator[tuple[int, str, Json]]:
        if not self._store.exists(path):
            return
        for text in self._store.read(path).decode().splitlines():
            try:
                receipt = json.loads(text)
                yield int(receipt["batch_id"]), text, receipt
            except (KeyError, TypeError, ValueError) as error:
                raise StateError(
                    f"A receipt file is damaged: {self._store.url}/{path}",
                    code="CHECKPOINT_FILE_DAMAGED",
                    got=text[:60],
                    why="The losses of its batches are unknown without it",
                    do="Restore the file from a backup, or move it away: the state does not depend on it",
                ) from error
