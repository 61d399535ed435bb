"""Spark settings that a streaming query is started with; the user's session keeps its own."""

from __future__ import annotations

#: Read by Spark when a streaming query starts.
STREAM_CONF = {
    # Without it Spark would take everything in one batch, because the heartbeat knows no "now".
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
}
#: The same for a checkpoint on a local disk. Spark's usual way to its offset logs runs `readlink` in a
#: process of its own several times a batch; this one renames files just as atomically, and asks nobody.
LOCAL_CONF = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
