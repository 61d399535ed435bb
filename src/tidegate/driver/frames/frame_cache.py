"""Caches Spark columns and schemas that are the same in every batch.

Every batch builds a new Spark plan, and each column of it takes several calls into Java. Most parts do not
depend on the batch: schemas, columns over the shared layout, the markers of instances.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

from pyspark.sql import Column, DataFrame

Made = TypeVar("Made")


class FrameCache:
    """Values by key, each made once; the key must contain everything that the value depends on."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self._values:
            self._values[key] = make()
        return cast(Made, self._values[key])


class Selection:
    """Columns to select, brought to Java once: a frame of them is one call, however many there are."""

    def __init__(self, columns: Sequence[Column | str]) -> None:
        self._columns = columns
        self._sequence: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """These columns of a frame."""
        if self._sequence is None:
            self._sequence = cast(Any, frame)._jcols(*self._columns)
        return DataFrame(frame._jdf.select(self._sequence), frame.sparkSession)
