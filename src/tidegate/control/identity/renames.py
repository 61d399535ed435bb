"""Which names of a checkpoint are other names in the flow of this run.

    renames={"near": "close"}     applies to a stream, an operator and an output of that name alike, each
                                  where the checkpoint has the old name and the flow has the new one
    default names                 follow: a join of orders and tracks is `orders_tracks_cell` until orders
                                  are renamed, and `sales_tracks_cell` afterwards

A rename that was done in an earlier run is done no more: the checkpoint has the new name and not the old one.
So the same renames may be given at every start. For that, no name may be both old and new.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tidegate.errors import FlowError
from tidegate.model.graph import FlowNames


@dataclass(frozen=True)
class Renames:
    """Old names and the new ones."""

    #: As the user gave them.
    asked: Mapping[str, str] = field(default_factory=dict)
    #: Default names of operators and of outputs, which follow those that they are made of.
    operators: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """The renames that a checkpoint needs: of streams and operators, and of outputs."""

    nodes: dict[str, str]
    outputs: dict[str, str]


@dataclass(frozen=True)
class _Kind:
    """Streams, operators or outputs: their names in the checkpoint and in the flow, and what follows."""

    #: The renames found so far, shared where kinds share their names.
    found: dict[str, str]
    before: Collection[str]
    now: Collection[str]
    #: All names of the checkpoint that must differ from these.
    taken: Collection[str]
    default: Mapping[str, str] = field(default_factory=dict)

    def ask(self, old: str, new: str) -> bool:
        """Note a rename that applies here; whether it does, or did in an earlier run."""
        if new not in self.now:
            return False
        if old in self.before:
            if new in self.taken:
                raise _taken(old, new)
            self.found[old] = new
        return old in self.before or new in self.before

    def follow(self) -> None:
        """Note the default names that are others because of these renames."""
        for old, new in self.default.items():
            free = new not in self.taken and new not in self.found.values()
            if free and new in self.now and old in self.before and old not in {*self.found, *self.now}:
                self.found[old] = new


def found_in(stored: FlowNames, current: FlowNames, renames: Renames) -> Found:
    """The renames that lie between the names of a checkpoint and those of the flow."""
    found = Found({}, {})
    kinds = (
        _Kind(found.nodes, stored.streams, current.streams, stored.nodes),
        _Kind(found.nodes, stored.operators, current.operators, stored.nodes, renames.operators),
        _Kind(found.outputs, stored.outputs, current.outputs, stored.outputs, renames.outputs),
    )
    for old, new in renames.asked.items():
        applies = [kind.ask(old, new) for kind in kinds]
        if not any(applies):
            raise _unknown(old, new, stored, current)
    for kind in kinds:
        kind.follow()
    return found


def _taken(old: str, new: str) -> FlowError:
    return FlowError(
        f"{old!r} cannot be renamed to {new!r}: the checkpoint has both names",
        code="RENAME_NAME_TAKEN",
        got=f"renames={{{old!r}: {new!r}}}",
        why="What is stored under the two names would become one",
        do="Choose a name that the checkpoint does not have. Take the rename out if an earlier run did it "
        f"and {old!r} is another part of the flow since",
    )


def _unknown(old: str, new: str, stored: FlowNames, current: FlowNames) -> FlowError:
    in_flow = new in (*current.nodes, *current.outputs)
    there = (*stored.nodes, *stored.outputs) if in_flow else (*current.nodes, *current.outputs)
    return FlowError(
        f"The checkpoint has no {old!r} that could be renamed to {new!r}"
        if in_flow
        else f"{old!r} cannot be renamed to {new!r}, which is not in the flow",
        code="RENAME_UNKNOWN",
        got=f"renames={{{old!r}: {new!r}}}; the {'checkpoint' if in_flow else 'flow'} has "
        + ", ".join(sorted(set(there))),
        why="What is stored under the old name would be dropped, and the new one would begin empty",
        do="Give the name that the checkpoint has and the one that the flow has, or take the rename out",
    )
