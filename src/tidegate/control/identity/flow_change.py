"""Carries the state of one flow over to a changed one, when a query starts.

    manifest found ──▶ renamed and removed parts (`translation.py`) ──▶ added operators begin ──▶ manifest
    plan not committed ──▶ the same ──▶ what this run plans for added operators ──▶ plan

An added operator begins empty with the next batch, and no row of that is late for it. An added window of time
also begins at a time: rows up to the newest one that its streams have shown were partly read before it
existed, so its first window is the first that begins after them. Where its input is an added operator, too,
or lacks rows that were dropped (`lacking.py`), that one's reach comes on top.

Guarantee: pure, and the same for one manifest however often the query dies before its first commit, which
makes the change last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tidegate.control.identity.lacking import gaps_us
from tidegate.control.identity.renames import Renames, found_in
from tidegate.control.identity.translation import NOTHING_RENAMED, Translation
from tidegate.control.watermarks import unheard
from tidegate.errors import StateError
from tidegate.model.codec import from_plain
from tidegate.model.graph import FlowNames, OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.plan import LateRows, Plan, ShedPlan
from tidegate.model.routing import Routing
from tidegate.model.times import BEGINNING_US, END_US, SIDES
from tidegate.window.lifetime import Lifetime


@dataclass(frozen=True)
class FlowChange:
    """What lies between the flow of a checkpoint and that of a run; an empty one changes nothing."""

    names: Translation = NOTHING_RENAMED
    #: Operators, by their old names.
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed_streams: tuple[str, ...] = ()
    added_streams: tuple[str, ...] = ()

    @classmethod
    def between(cls, flow: Mapping[str, Any], current: FlowNames, renames: Renames) -> FlowChange:
        """The change from the described flow of a checkpoint to one with these names."""
        stored = stored_names(flow)
        if stored is None:
            return cls()
        found = found_in(stored, current, renames)
        removed = _gone(stored.operators, current.operators, found.nodes)
        streams = _gone(stored.streams, current.streams, found.nodes)
        outputs = _gone(stored.outputs, current.outputs, found.outputs)
        names = Translation(
            {**found.nodes, **dict.fromkeys((*removed, *streams))},
            {**found.outputs, **dict.fromkeys(outputs)},
        )
        added = _new(current.operators, stored.operators, found.nodes)
        return cls(names, removed, added, streams, _new(current.streams, stored.streams, found.nodes))

    def manifest(
        self,
        manifest: Manifest,
        flow: Mapping[str, Any],
        routing: Mapping[str, Routing],
        operators: Mapping[str, OperatorTraits],
        now_us: int = 0,
    ) -> Manifest:
        """The manifest from which the changed flow goes on; `routing`: the first one of its operators."""
        carried = self.names.manifest(manifest) if self.names else manifest
        added = [name for name in self.added if name in routing]
        begins_us = {name: _begins_us(name, carried, operators, self.added) for name in added}
        return replace(
            carried,
            flow=flow,
            clocks={**carried.clocks, **{name: unheard(now_us) for name in self.added_streams}},
            routing={**carried.routing, **{name: routing[name] for name in added}},
            settled_us={**carried.settled_us, **dict.fromkeys(added, BEGINNING_US)},
            begins_us={
                **carried.begins_us,
                **{name: begin for name, begin in begins_us.items() if begin > BEGINNING_US},
            },
        )

    def plan(self, known: Plan, manifest: Manifest, planned: Callable[[], Plan]) -> Plan:
        """The plan of a batch that was begun before the change. `manifest`: after the change, before the
        batch; `planned`: plans the batch as this run would.

        The batch is repeated as it was planned, with the added operators as they are planned now: nothing of
        theirs can have been seen before.
        """
        known = self.names.plan(known) if self.names else known
        added = (*self.added, *self.added_streams)
        lacks = sorted({*manifest.routing, *manifest.clocks} - {*known.routing, *known.late.streams, *added})
        if lacks:
            raise StateError(
                "A batch was begun under other names than the flow has now",
                code="CHECKPOINT_PLAN_OF_OTHER_NAMES",
                got=f"the plan of batch {known.batch} without {', '.join(lacks)}",
                why="The batch must be repeated as it was planned",
                do="Start the query once with the names of its last run, until the batch is committed; then "
                "change them",
            )
        if not added:
            return known
        fresh = planned()
        return replace(
            known,
            late=_completed(known.late, fresh.late, added, LateRows),
            settle_us=_with(known.settle_us, fresh.settle_us, added),
            routing=_with(known.routing, fresh.routing, added),
            balance=_with(known.balance, fresh.balance, added),
            shed=_shed(known.shed, fresh.shed, added),
        )


def stored_names(flow: Mapping[str, Any]) -> FlowNames | None:
    """The names in the description of a flow; None where there is none."""
    return from_plain(FlowNames, flow["names"]) if "names" in flow else None


def _gone(stored: tuple[str, ...], current: tuple[str, ...], renamed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in stored if name not in renamed and name not in current)


def _new(current: tuple[str, ...], stored: tuple[str, ...], renamed: Mapping[str, str]) -> tuple[str, ...]:
    kept = {renamed.get(name, name) for name in stored}
    return tuple(name for name in current if name not in kept)


def _with(known: Mapping[str, Any], fresh: Mapping[str, Any], added: tuple[str, ...]) -> dict[str, Any]:
    return {**{name: one for name, one in fresh.items() if name in added}, **known}


def _shed(known: ShedPlan, fresh: ShedPlan, added: tuple[str, ...]) -> ShedPlan:
    would = None if known.would is None else _shed(known.would, fresh.would or fresh, added)
    completed: ShedPlan = _completed(known, fresh, added, ShedPlan, "would")
    return replace(completed, would=would)


def _completed(known: Any, fresh: Any, added: tuple[str, ...], kind: type[Any], but: str = "") -> Any:
    """A part of a plan all of whose fields, but one, go by names."""
    names = [one.name for one in fields(kind) if one.name != but]
    return kind(**{name: _with(getattr(known, name), getattr(fresh, name), added) for name in names})


def _begins_us(
    name: str, manifest: Manifest, operators: Mapping[str, OperatorTraits], added: tuple[str, ...]
) -> int:
    """Start of the first window of an added operator that sees all its rows; BEGINNING_US: it sees all there
    are, or its windows do not go by time."""
    within = operators[name].within
    if not isinstance(within, Lifetime):
        return BEGINNING_US
    whole_us = _whole_after(name, manifest, operators, added)
    return BEGINNING_US if whole_us == BEGINNING_US else within.begins_after(whole_us)


def _whole_after(
    name: str, manifest: Manifest, operators: Mapping[str, OperatorTraits], added: tuple[str, ...]
) -> int:
    """All rows of the input of an operator above this time are still to come."""
    traits, found, missing = operators[name], [BEGINNING_US], gaps_us(manifest)
    for given in traits.inputs:
        if given not in operators:
            read = traits.unions.get(given, (given,))
            found += [manifest.clocks[stream].seen_us for stream in read if stream in manifest.clocks]
            continue
        whole_us = _whole_after(given, manifest, operators, added)
        if given in missing:
            # Rows with which later ones would have made pairs are not stored.
            whole_us = max(whole_us, missing[given] + _reach_us(operators[given], missing[given]))
        if given in added and whole_us > BEGINNING_US:
            whole_us += _reach_us(operators[given], whole_us)
        found.append(whole_us)
    return max(found)


def _reach_us(operator: OperatorTraits, at_us: int) -> int:
    """How far before its own time a result depends on rows; 0 where that is without bound."""
    ages = [at_us - operator.within.dead_before(side, at_us) for side in range(len(SIDES))]
    return max(age if age < END_US // 2 else 0 for age in ages)
