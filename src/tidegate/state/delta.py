"""What changed from one manifest to the next, as plain values, and the way back.

Only pieces and debts are compared: they are many, and few of them change in a batch. Everything else in a
manifest is small and goes into each delta whole. Law, for any two lists of pieces a and b:
`applied(a, difference(a, b)) == b`; and the same for debts, which stay in the order they came in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.errors import StateError, explain
from tidegate.model.debts import Debt
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece


def small_fields(manifest: Manifest) -> dict[str, Any]:
    """A manifest as JSON without its pieces and debts."""
    return {**vars(manifest), "pieces": [], "debts": []}


def difference(previous: Sequence[Piece], current: Sequence[Piece]) -> dict[str, Any]:
    """Pieces removed, changed and added by name; the order only where it is not the natural one.

    The natural order: what stayed, in its old order, then what was added.
    """
    old, new = by_name(previous), by_name(current)
    kept = [name for name in old if name in new]
    added = [name for name in new if name not in old]
    delta: dict[str, Any] = {
        "removed": [name for name in old if name not in new],
        # Most pieces are the very same object as before, and identity is the cheaper question.
        "changed": [new[n] for n in kept if new[n] is not old[n] and new[n] != old[n]],
        "added": [new[name] for name in added],
    }
    natural = kept + added
    if natural != list(new):
        place = {name: i for i, name in enumerate(natural)}
        delta["order"] = [place[name] for name in new]
    return delta


def applied(previous: Sequence[Piece], delta: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The pieces after the change; the delta is as JSON gave it back."""
    pieces = by_name(previous)
    for name in delta["removed"]:
        del pieces[name]
    for raw in (*delta["changed"], *delta["added"]):  # a changed piece keeps its place in the dictionary
        piece = Piece.from_json(raw)
        pieces[piece.name] = piece
    natural = tuple(pieces.values())
    return tuple(natural[i] for i in delta["order"]) if "order" in delta else natural


def debts_difference(previous: Sequence[Debt], current: Sequence[Debt]) -> dict[str, Any]:
    """Debts that are gone, and those that are new or not what they were."""
    old, new = ({(debt.operator, debt.batch): debt for debt in debts} for debts in (previous, current))
    return {
        "removed": [name for name in old if name not in new],
        "changed": [
            debt for name, debt in new.items() if old.get(name) is not debt and old.get(name) != debt
        ],
    }


def debts_applied(previous: Sequence[Debt], delta: Mapping[str, Any]) -> tuple[Debt, ...]:
    """The debts after the change; the delta is as JSON gave it back."""
    debts = {(debt.operator, debt.batch): debt for debt in previous}
    for operator, batch in delta.get("removed", ()):
        del debts[operator, batch]
    for debt in map(Debt.from_json, delta.get("changed", ())):
        debts[debt.operator, debt.batch] = debt
    return tuple(debts.values())


def by_name(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """Pieces by name, in their order; StateError when a name comes twice."""
    named = {piece.name: piece for piece in pieces}
    if len(named) < len(pieces):
        counts = Counter(piece.name for piece in pieces)
        raise StateError(
            explain(
                "A manifest lists one piece twice",
                got=", ".join(name for name, count in counts.items() if count > 1),
                why="Its rows would be joined twice",
                do="Report this: a task's report was counted twice",
            )
        )
    return named
