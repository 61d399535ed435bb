"""Rewrites the names in manifests and plans: renamed parts get their new name, removed ones go.

    manifest with `orders`  ──translation──▶  the manifest that a run would have left behind in which the
                                              stream had been called `sales` from the beginning

Stored rows stay where they are: pieces name their files, whatever the folder is called. What controllers have
learnt is JSON of their own; `_CONTROL` says where names stand in it. The numbers that the last goal loop
reported for people are left out, because their texts hold names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tidegate.model.manifest import Manifest, OutputFiles
from tidegate.model.plan import Plan, ShedPlan

V = TypeVar("V")
#: What a name is now; None: it is gone.
_Says = Callable[[str], str | None]

#: Any key.
_EACH = "*"
#: Where names of streams and operators stand in the control state: as keys of an object, as items of a list,
#: or as a text.
_CONTROL = (
    *(("balance",), ("scale",), ("receipts",), ("sources",), ("sources_dropped",)),
    *(("policies",), ("work",), ("bends",), ("forget_us",), ("kept",), ("would_forget_us",)),
    *(("estimates", "rows"), ("estimates", "shares"), ("estimates", "left_out")),
    *(("adding_up", "ratio"), ("adding_up", "by_row")),
    *(("sift", "matches", _EACH, "sifter", "name"), ("sift", "matches"), ("freshest", "streams")),
    *(("goal", "limits"), ("goal", "sources", "streams")),
    *(("goal", model, part) for model in ("model", "cold") for part in ("probing", "keeping")),
)
#: Where those of window drop stand, which are made of the names of outputs.
_DROPS = (
    *(("windows", "shut"), ("windows", "shares"), ("windows", "drops"), ("windows", "advance_us")),
    *(("goal", "levels"), ("goal", "lasting")),
)
#: What was decided about windows, in the control state and in plans: streams and operators, and outputs.
_DROPPED: tuple[tuple[str, ...], ...] = (("windows",), ("gaps",), ("gaps", _EACH))
_SHUT: tuple[tuple[str, ...], ...] = (("shut",), ("drops",), ("drops", _EACH, "shut"))
#: In the description of the flow: streams that an operator reads.
_FLOW = (
    *(("streams",), ("operators", _EACH, "stream"), ("operators", _EACH, "left", "stream")),
    *(("operators", _EACH, "right", "stream"), ("operators",), ("names", "streams"), ("names", "operators")),
    ("steps",),
)
#: An output in the window drop network, outputs that drop windows together, and the level of such a drop.
_OUTPUT, _AND, _LEVEL = "output ", " + output ", "windows of "


@dataclass(frozen=True)
class Translation:
    """Old names and the new ones; None: the part is gone. Names that are not listed stay."""

    nodes: Mapping[str, str | None] = field(default_factory=dict)
    outputs: Mapping[str, str | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.nodes or self.outputs)

    def manifest(self, manifest: Manifest) -> Manifest:
        """The manifest with the new names."""
        return replace(
            manifest,
            flow=self.flow(manifest.flow),
            clocks=self._keys(manifest.clocks),
            settled_us=self._keys(manifest.settled_us),
            late_us=self._keys(manifest.late_us),
            begins_us=self._keys(manifest.begins_us),
            routing=self._keys(manifest.routing),
            pieces=self._owned(manifest.pieces),
            debts=self._owned(manifest.debts),
            written_off=self._owned(manifest.written_off),
            control=self._control(manifest.control),
            files=self._files(manifest.files),
        )

    def plan(self, plan: Plan) -> Plan:
        """The plan with the new names."""
        late, rewrites, shed, repair = plan.late, plan.rewrites, plan.shed, plan.repair
        return replace(
            plan,
            late=replace(
                late,
                streams=self._keys(late.streams),
                inputs=self._keys(late.inputs),
                next_us=self._keys(late.next_us),
            ),
            settle_us=self._keys(plan.settle_us),
            routing=self._keys(plan.routing),
            rewrites=replace(rewrites, merges=self._keys(rewrites.merges), cuts=self._keys(rewrites.cuts)),
            shuffles=replace(plan.shuffles, by_row=tuple(_items(plan.shuffles.by_row, self._node))),
            balance=self._keys(plan.balance),
            shed=self._shed(shed),
            repair=replace(repair, repairs=self._keys(repair.repairs)),
        )

    def _shed(self, shed: ShedPlan) -> ShedPlan:
        return replace(
            shed,
            skipping=self._keys(shed.skipping),
            sifters=self._keys(_at(shed.sifters, (_EACH, "name"), self._node)),
            dropping=self._dropped(shed.dropping),
            estimating=self._keys(shed.estimating),
            would=None if shed.would is None else self._shed(shed.would),
        )

    def flow(self, flow: Mapping[str, Any]) -> Mapping[str, Any]:
        """The description of a flow with the new names."""
        for path in _FLOW:
            flow = _at(flow, path, self._node)
        return _at(flow, ("names", "outputs"), self._output)  # type: ignore[no-any-return]

    def _control(self, control: Mapping[str, Any]) -> Mapping[str, Any]:
        for path in _CONTROL:
            control = _at(control, path, self._node)
        for path in _DROPS:
            control = _at(control, path, self._drop)
        control = _at(control, ("warnings",), self._warning)
        for decided in ("dropped", "would_drop"):
            if decided in control:
                control = {**control, decided: self._dropped(control[decided])}
        goal = control.get("goal")
        if goal is None:
            return control
        return {**control, "goal": {name: one for name, one in goal.items() if name != "told"}}

    def _dropped(self, dropped: Mapping[str, Any]) -> Mapping[str, Any]:
        for path in _DROPPED:
            dropped = _at(dropped, path, self._node)
        for path in _SHUT:
            dropped = _at(dropped, path, self._drop)
        return dropped

    def _keys(self, by_name: Mapping[str, V]) -> dict[str, V]:
        return _keys(by_name, self._node)

    def _owned(self, owned: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pieces or debts, which belong to an operator."""
        if not any(one.operator in self.nodes for one in owned):
            return owned
        named = ((one, self._node(one.operator)) for one in owned)
        return tuple(
            one if one.operator == name else replace(one, operator=name) for one, name in named if name
        )

    def _files(self, files: OutputFiles) -> OutputFiles:
        """What outputs have written; an output that is gone keeps its name there, because its files stay."""
        return replace(
            files,
            folders={self._output(name) or name: folder for name, folder in files.folders.items()},
            drafts=tuple(replace(one, output=self._output(one.output) or one.output) for one in files.drafts),
        )

    def _node(self, name: str) -> str | None:
        return self.nodes.get(name, name)

    def _output(self, name: str) -> str | None:
        return self.outputs.get(name, name)

    def _drop(self, text: str) -> str | None:
        """A name of window drop: its level, outputs that drop together, one output, or an operator."""
        if text.startswith(_LEVEL):
            drop = self._drop(text.removeprefix(_LEVEL))
            return drop and _LEVEL + drop
        if not text.startswith(_OUTPUT):
            return self._node(text)
        kept = _items(text.removeprefix(_OUTPUT).split(_AND), self._output)
        return _OUTPUT + _AND.join(kept) if kept else None

    def _warning(self, text: str) -> str | None:
        """A warning: its code, and what it is about, with or without the kind of that."""
        code, _, subject = text.partition(" ")
        kind, _, name = subject.partition(" ")
        says = {"stream": self._node, "output": self._output}.get(kind)
        if says is not None and name:
            about = says(name)
            return about and f"{code} {kind} {about}"
        both = {**self.outputs, **self.nodes}
        about = both.get(subject, subject)
        return None if about is None else f"{code} {about}".rstrip()


NOTHING_RENAMED = Translation()


def _at(value: Any, path: Sequence[str], says: _Says) -> Any:
    """The value with the names at the end of a path rewritten; as it is where the path does not lead."""
    if not path:
        if isinstance(value, str):
            return says(value) or value  # a name inside of a part that is gone goes with it
        return _keys(value, says) if isinstance(value, Mapping) else _items(value or (), says)
    if not isinstance(value, Mapping):
        return value
    chosen = value if path[0] == _EACH else {path[0]}
    return {
        name: _at(one, path[1:], says) if name in chosen and one is not None else one
        for name, one in value.items()
    }


def _keys(by_name: Mapping[str, V], says: _Says) -> dict[str, V]:
    named = ((says(name), value) for name, value in by_name.items())
    return {name: value for name, value in named if name is not None}


def _items(names: Sequence[str], says: _Says) -> list[str]:
    return [name for name in map(says, names) if name is not None]
