"""Spark settings for starting a streaming query; the user's session does not change."""

from __future__ import annotations

#: Read by Spark when a streaming query starts.
STREAM_CONF = {
    # Otherwise Spark would take everything in one batch: the heartbeat does not support AvailableNow.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    # Spark switches it off for streaming queries anyway, with a warning.
    "spark.sql.adaptive.enabled": "false",
}
#: The same for a checkpoint on a local disk. Spark's default manager of offset logs starts a `readlink`
#: process several times per batch; this one renames files just as atomically without it.
LOCAL_CONF = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
