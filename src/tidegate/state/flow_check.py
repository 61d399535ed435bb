"""Refuses to go on from a checkpoint that another flow has written, and says exactly what differs.

Stored rows carry no meaning of their own: with another key, window or schema the same bytes would join
to something else. So the description of the flow is part of every manifest and compared at each start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.errors import StateError, explain

#: More differences than this are counted, not listed.
LISTED_MAX = 10
_ABSENT = object()


def check_flow(stored: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """StateError when the two descriptions differ as JSON (a tuple is a list there)."""
    changes = list(_differences(json.loads(json.dumps(stored)), json.loads(json.dumps(current)), ""))
    if not changes:
        return
    listed = "; ".join(changes[:LISTED_MAX])
    more = f"; and {len(changes) - LISTED_MAX} more" if len(changes) > LISTED_MAX else ""
    raise StateError(
        explain(
            "The checkpoint was written by another flow",
            got=listed + more,
            why="Its stored rows would be joined by rules they were not stored under",
            do="Start this flow with a new checkpoint, or change it back",
        )
    )


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """One line per leaf that differs: path: old → new."""
    if isinstance(old, list) and isinstance(new, list):
        old, new = (dict(enumerate(side)) for side in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            below = f"{path}.{key}" if path else str(key)
            yield from _differences(old.get(key, _ABSENT), new.get(key, _ABSENT), below)
    elif _text(old) != _text(new):  # as text: 1, 1.0 and true are equal in Python and not in a schema
        yield f"{path}: {_text(old)} → {_text(new)}"


def _text(value: Any) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value)
