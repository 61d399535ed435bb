"""Writes materialised output: to a function, to files exactly once, or to any other Spark format.

Files of batch N lie in the directory `batch=N` and replace what a first attempt left there. The plan of a
batch fixes its rows, so a replay writes the same rows again: nothing is lost and nothing comes twice. The
directories read back as one data set, with `batch` as a column of its own.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidegate.flow import Output


def write(output: Output, frame: DataFrame, batch: int) -> None:
    """Write one batch of one output."""
    if output.function is not None:
        output.function(frame, batch)
        return
    writer = frame.write.format(output.format or "").options(**output.options)
    if output.path is None:
        writer.mode("append").save()
    else:
        writer.mode("overwrite").save(f"{output.path.rstrip('/')}/batch={batch}")


def may_skip(output: Output, batch: int) -> bool:
    """May an empty batch be left out? Functions are always called; files need one batch for their schema."""
    return output.function is None and batch > 0
