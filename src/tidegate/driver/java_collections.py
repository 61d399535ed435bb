"""Converts Scala and Java collections to Python lists."""

from __future__ import annotations

from typing import Any


def java_items(collection: Any) -> list[Any]:
    """The items of a Scala collection."""
    iterator, found = collection.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return found
