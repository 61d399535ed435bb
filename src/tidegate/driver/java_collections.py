"""Collections of Scala and Java as Python lists."""

from __future__ import annotations

from typing import Any


def java_items(collection: Any) -> list[Any]:
    """What a collection of Scala's holds."""
    iterator, found = collection.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return found
