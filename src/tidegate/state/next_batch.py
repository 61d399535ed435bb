"""Refuses a batch that does not follow the state: Spark keeps a log of its own, and the two must meet.

    our manifests   … b-1  b
    Spark's log     … b-1  b  b+1       the next batch: runs
                    … b-1  b            died before Spark's commit: b is asked for again, and skipped

Anything else means that files of one of the two are gone. Going on would join against the wrong state, or
skip rows that were never seen, and nobody would notice.
"""

from __future__ import annotations

from tidegate.errors import StateError, explain
from tidegate.state.manifest_log import FOLDER
from tidegate.state.store.paths import batch_path


def is_done(batch: int, newest: int) -> bool:
    """Has the batch been done, given that of the newest manifest? StateError when it does not follow."""
    if batch > newest + 1:
        raise StateError(
            explain(
                f"Batch {batch} cannot run: the manifest of batch {batch - 1} is missing, "
                f"{batch_path(FOLDER, batch - 1)}",
                got="no manifest at all" if newest < 0 else f"{batch_path(FOLDER, newest)} as the newest",
                why="Spark has finished that batch, so what it left in the state is lost with the file",
                do="Restore the file from a backup, or start with a new checkpoint and new outputs",
            )
        )
    if batch < newest:
        raise StateError(
            explain(
                f"Batch {batch} was done long ago, and Spark asks for it again",
                got=f"{batch_path(FOLDER, newest)} as the newest manifest",
                why="Spark's own log (the folder `spark` of the checkpoint) is gone or older than the state, "
                "so new rows would be taken for old ones and skipped",
                do="Restore that folder from a backup, or start with a new checkpoint and new outputs",
            )
        )
    return batch == newest
