"""A manifest or a plan with its names rewritten is what it would have been under the new names.

Names are any texts, also those that stand in manifests for something else.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.identity import translation
from tidegate.control.identity.translation import Translation
from tidegate.model.codec import encode_exactly
from tidegate.model.debts import Debt
from tidegate.model.manifest import Draft, Manifest, OutputFiles, StreamClock
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import LateRows, Plan, RepairPlan, Rewrites, ShedPlan, Shuffles
from tidegate.model.routing import together
from tidegate.model.skip_plan import Skipping

ROUTING = together(0, 2, (0, 1))
SKIPPING = Skipping(0.5, ((1.0,), (1.0,)))
#: What stands in manifests anyway.
WORDS = [
    "goal",
    "one",
    "levels",
    "streams",
    "left",
    "stream",
    "names",
    "outputs",
    "drops",
    "told",
    "(sources)",
]
TEXTS = st.one_of(st.sampled_from(WORDS), st.text("abc xy_+", min_size=1, max_size=6).map(str.strip)).filter(
    bool
)


def piece(operator: str) -> Piece:
    place = ByteRange("segments/as it was/1.arrow", crc32(operator.encode()), 1, "c")
    return Piece(operator, 0, 0, 0, 1, 0, 0, (0, 0), False, (0,), (0, 1), place)


def debt(operator: str) -> Debt:
    return Debt(operator, 1, SKIPPING, 0, ((0, 1), (0, 1)), ())


def drops(outputs: list[str]) -> list[str]:
    """Outputs that drop windows alone, and together."""
    one = [f"output {name}" for name in outputs]
    return list(dict.fromkeys([*one, " + ".join(one)])) if one else []


def dropped(operators: list[str], outputs: list[str]) -> dict[str, Any]:
    """What was decided about windows."""
    shown = [f"output {name}" for name in outputs]
    return {
        "drops": {name: {"p": 0.5, "shut": shown} for name in drops(outputs)},
        "windows": {name: {"until_us": 1, "debt": 0, "dropped": [[0, 1]]} for name in operators},
        "shut": {name: [[0, 1]] for name in shown},
        "gaps": {name: {child: [[0, 1]] for child in operators} for name in operators},
    }


def control(streams: list[str], operators: list[str], outputs: list[str]) -> dict[str, Any]:
    """What controllers remember, with every name in every place that has names."""
    by_stream: Mapping[str, Any] = {name: {"rows": 1.0} for name in streams}
    by_operator: Mapping[str, Any] = {name: [1, {"cells": 2}] for name in operators}
    by_drop: Mapping[str, Any] = {name: {"p": 0.5} for name in drops(outputs)}
    shown = [f"output {name}" for name in outputs]
    levels = {
        **dict.fromkeys([*operators, *shown], 0.5),
        **{f"windows of {name}": 0.25 for name in drops(outputs)},
    }
    model = {"probing": by_operator, "keeping": by_operator, "rest": {"times": [1]}}
    return {
        **dict.fromkeys(("balance", "scale", "receipts", "sources", "sources_dropped"), by_operator),
        **dict.fromkeys(("policies", "work", "bends", "forget_us", "would_forget_us"), by_operator),
        "kind": "selective",
        "estimates": {"rows": by_operator, "shares": by_operator, "left_out": by_operator},
        "adding_up": {"ratio": by_operator, "by_row": operators},
        "sift": {
            "rate": {"fraction": 1.0},
            "matches": {name: {"queries": "?", "sifter": {"name": name}, "made": None} for name in operators},
        },
        "freshest": {"keep_share": 1.0, "streams": by_stream},
        "windows": {"short": 0, "shut": shown, **dict.fromkeys(("shares", "drops", "advance_us"), by_drop)},
        "goal": {
            "model": model,
            "cold": None,
            "sources": {"streams": by_stream, "fits": None},
            "limits": by_stream,
            "levels": levels,
            "lasting": levels,
        },
        "dropped": dropped(operators, outputs),
        "would_drop": dropped(operators, outputs),
        "warnings": {
            "GOAL_UNREACHABLE": 3,
            **{f"OUTPUT_SHUT_OFF output {name}": 1 for name in outputs},
            **{f"ROWS_UNEXPLAINED stream {name}": 2 for name in streams},
        },
        "batch_size": {"factor": 1.0},
    }


def flow(streams: list[str], operators: list[str], outputs: list[str]) -> dict[str, Any]:
    read = [*streams, None][0]
    described = {"how": "inner", "left": {"stream": read, "columns": ["stream"]}, "right": {"stream": None}}
    return {
        "partitions": 4,
        "streams": {name: {"time": "ts", "schema": {"k": "int"}} for name in streams},
        "operators": {name: {**described, "stream": read} for name in operators},
        "steps": {name: ["Filter (streams > 3)"] for name in operators},
        "names": {"streams": streams, "operators": operators, "outputs": outputs},
    }


def manifest(streams: list[str], operators: list[str], outputs: list[str]) -> Manifest:
    return Manifest(
        batch=3,
        flow=flow(streams, operators, outputs),
        clocks={name: StreamClock(1, 2, 3) for name in streams},
        settled_us=dict.fromkeys(operators, 5),
        late_us=dict.fromkeys(operators, 6),
        begins_us=dict.fromkeys(operators, 7),
        routing=dict.fromkeys(operators, ROUTING),
        pieces=tuple(map(piece, operators)),
        control=control(streams, operators, outputs),
        debts=tuple(map(debt, operators)),
        written_off=tuple(map(debt, operators)),
    )


def plan(streams: list[str], operators: list[str], outputs: list[str]) -> Plan:
    return Plan(
        batch=4,
        now_us=1,
        late=LateRows(
            dict.fromkeys(streams, 1), dict.fromkeys(operators, (1, 2)), dict.fromkeys(operators, 3)
        ),
        settle_us=dict.fromkeys(operators, 2),
        routing=dict.fromkeys(operators, ROUTING),
        rewrites=Rewrites({key: {"0": (("a",),)} for key in operators}, dict.fromkeys(operators, ())),
        shuffles=Shuffles(tuple(operators)),
        balance={key: {"wanted": 1} for key in operators},
        shed=ShedPlan(
            dict.fromkeys(operators, SKIPPING),
            {name: {"name": name, "kind": "sifter"} for name in operators},
            dropped(operators, outputs),
            {key: {"shares": [1.0]} for key in operators},
        ),
        repair=RepairPlan(None, dict.fromkeys(operators, ())),
    )


@st.composite
def renamed(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]], Translation]:
    """Streams, operators and outputs; the same after renames and removals; and what leads there."""
    nodes = draw(st.lists(TEXTS, unique=True, min_size=2, max_size=5))
    outputs = draw(st.lists(TEXTS, unique=True, max_size=3))
    cut = draw(st.integers(1, len(nodes)))
    given_nodes, given_outputs = nodes, outputs
    new_nodes = [_changed(draw, name, given_nodes, number >= cut) for number, name in enumerate(nodes)]
    new_outputs = [_changed(draw, name, given_outputs, True) for name in outputs]
    before = [nodes[:cut], nodes[cut:], outputs]
    after = [
        [name for name in part if name is not None]
        for part in (new_nodes[:cut], new_nodes[cut:], new_outputs)
    ]
    changed = (
        {old: new for old, new in zip(*both, strict=True) if old != new}
        for both in ((nodes, new_nodes), (outputs, new_outputs))
    )
    return before, after, Translation(*changed)


def _changed(draw: st.DrawFn, name: str, taken: list[str], removable: bool) -> str | None:
    """The name, another one that is free, or None for what is gone."""
    kind = draw(st.sampled_from(["kept", "renamed", "removed"] if removable else ["kept", "renamed"]))
    if kind == "removed":
        return None
    return name if kind == "kept" else f"new {taken.index(name)}"


@given(renamed())
def test_a_rewritten_manifest_is_that_of_the_new_names(
    given: tuple[list[list[str]], list[list[str]], Translation],
) -> None:
    before, after, names = given
    old, new = manifest(*before), manifest(*after)
    found = names.manifest(old)
    # Where pieces lie does not change with their names.
    assert [one.operator for one in found.pieces] == after[1]
    assert {one.data for one in found.pieces} <= {one.data for one in old.pieces}
    assert encode_exactly(replace(found, pieces=())) == encode_exactly(replace(new, pieces=()))


@given(renamed())
def test_a_rewritten_plan_is_that_of_the_new_names(
    given: tuple[list[list[str]], list[list[str]], Translation],
) -> None:
    before, after, names = given
    assert encode_exactly(names.plan(plan(*before))) == encode_exactly(plan(*after))


@given(renamed())
def test_nothing_is_rewritten_twice(given: tuple[list[list[str]], list[list[str]], Translation]) -> None:
    before, _, names = given
    once = names.manifest(manifest(*before))
    assert names.manifest(once) == once


def test_numbers_for_people_are_left_out_because_their_texts_hold_names() -> None:
    told = manifest(["a"], ["near"], [])
    told = replace(told, control={**told.control, "goal": {"told": {"warnings": ["near is slow"]}}})
    assert Translation({"near": "close"}).manifest(told).control["goal"] == {}


def test_files_follow_their_output_and_those_of_a_removed_one_stay_known() -> None:
    drafts = tuple(Draft(name, 3, f"file:/{name}", "draft", {"a": "b"}, 1) for name in ("near", "gone"))
    files = OutputFiles({"near": "file:/near", "gone": "file:/gone"}, drafts)
    found = Translation({}, {"near": "close", "gone": None}).manifest(
        replace(manifest([], [], ["near", "gone"]), files=files)
    )
    assert found.files.folders == {"close": "file:/near", "gone": "file:/gone"}
    assert [one.output for one in found.files.drafts] == ["close", "gone"]


#: Parts of the control state in which no name stands.
NAMELESS = {"batch_size", "repair", "small_batches"}


def test_every_part_of_the_control_state_says_where_names_stand_in_it() -> None:
    """A new module that keeps something must be listed in `translation.py`, or above.

    What stands deeper in a part is watched by `tests/spark/test_random_restarts.py`.
    """
    packages = [importlib.import_module(f"tidegate.{name}") for name in ("control", "window", "driver")]
    names = [
        one.name
        for package in packages
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    kept = {getattr(importlib.import_module(name), "CONTROL", None) for name in names} - {None}
    listed = {path[0] for path in (*translation._CONTROL, *translation._DROPS)} | {
        *("dropped", "would_drop", "warnings")
    }
    assert kept >= NAMELESS
    assert kept - listed == NAMELESS
