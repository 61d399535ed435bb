"""What is the same in every batch of a query, and is worth remembering: asking Spark again costs calls.

A batch is a new plan, built anew, and each column of it takes several calls into Java. Most of what a batch
is built of does not depend on it: schemas, columns over the shared layout, the markers of instances.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

Made = TypeVar("Made")


class FrameCache:
    """Values by key, each made once; what it is made of must be part of the key."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self._values:
            self._values[key] = make()
        return cast(Made, self._values[key])
