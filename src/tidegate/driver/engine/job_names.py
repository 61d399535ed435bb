"""Descriptions of Spark jobs, as the Spark UI shows them: `dispatch batch 17: near`.

A description is a local property of the calling thread, which is Spark's thread of the streaming query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

#: Spark's own name of the property.
_DESCRIPTION = "spark.job.description"


class JobNames:
    """Names the jobs of one batch; `within` restores the description that was set before."""

    def __init__(self, context: SparkContext, query: str) -> None:
        self._context, self.query = context, query
        self._batch = -1

    @contextmanager
    def within(self, batch: int) -> Iterator[None]:
        before = self._context.getLocalProperty(_DESCRIPTION)
        self._batch = batch
        try:
            yield
        finally:
            self._context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]

    def next(self, what: str) -> None:
        """The jobs that follow do this."""
        self._context.setLocalProperty(_DESCRIPTION, f"{self.query} batch {self._batch}: {what}")
