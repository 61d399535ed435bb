"""The columns of a joined row, by name: the rule that the API and the engine share.

Keys come first: a key with the same name on both sides once, a key with different names as two columns. Then
come the other left columns, then the other right ones. A right column whose name is taken gets the suffix.
Semi and anti joins return the left columns only.

    left (cell, ts, fare) join right (place, ts, speed) on {"cell": "place"}
        cell, place, ts, fare, ts_right, speed

In an outer join a key that comes once has the value of whichever side exists; of two key columns, the one of
the missing side is null, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.api.joins.conditions import JoinKey
from tidegate.errors import FlowError

#: Two names are the same if this makes them equal.
SameName = Callable[[str], str]


@dataclass(frozen=True)
class JoinedColumn:
    """One column of the joined row; `left` and `right` are the columns that it shows."""

    name: str
    left: str | None = None
    right: str | None = None


def joined_columns(
    left: Sequence[str], right: Sequence[str], keys: Sequence[JoinKey], suffix: str, same: SameName
) -> list[JoinedColumn]:
    """The columns of a joined row, including the right ones."""
    of_left, of_right = ({same(name): name for name in names} for names in (left, right))
    plain = [(same(key.left), same(key.right)) for key in keys if not key.expressions]
    once = {one for one, other in plain if one == other}
    # Left and right columns in the order of the result; a dict keeps it and holds each once.
    order: dict[tuple[int, str], None] = {}
    for one, other in plain:
        order[0, one] = None
        if other not in once:
            order[1, other] = None
    order |= {(0, name): None for name in of_left}
    order |= {(1, name): None for name in of_right if name not in once}

    taken, made = set(of_left), []
    for side, name in order:
        if side == 0:
            both = of_right[name] if name in once else None
            made.append(JoinedColumn(of_left[name], of_left[name], both))
            continue
        shown = of_right[name] + (suffix if name in taken else "")
        if same(shown) in taken:
            raise FlowError(
                "Two columns of the joined row have the same name",
                code="JOIN_COLUMNS_CLASH",
                got=f"{shown!r}, from the right column {of_right[name]!r} and suffix={suffix!r}",
                do="Choose another suffix, or rename the column before the join",
            )
        taken.add(same(shown))
        made.append(JoinedColumn(shown, right=of_right[name]))
    return made
