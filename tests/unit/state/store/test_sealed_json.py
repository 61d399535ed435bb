from __future__ import annotations

import json
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

import pytest
from tests.unit.state.samples import a_piece, a_plan, a_range

from tidegate.errors import StateError
from tidegate.model.codec import FORMAT
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.plan import Plan, ShedPlan
from tidegate.model.skip_plan import Skipping
from tidegate.state.store.sealed import seal, unseal

FIELDS = asdict(a_range("f"))
NOT_FINITE = replace(a_plan(3), shed=ShedPlan({"x": Skipping(0.5, ((float("inf"),), ()))}))


def test_a_sealed_file_is_plain_json_and_opens_to_what_was_put_in() -> None:
    body = {"a": [1, -(2**63), "ü", None, True, 1.5], "b": MappingProxyType({"c": 1})}
    data = seal("plan", 3, body)
    assert json.loads(data)["body"] == body
    assert unseal(data, "plan", 3, "f", object) == body


def test_a_dataclass_comes_back_equal_and_is_its_fields_to_a_person() -> None:
    piece = a_piece("f", matched={"0": a_piece("g").data})
    data = seal("x", 0, piece)
    assert unseal(data, "x", 0, "f", Piece) == piece
    assert json.loads(data)["body"] == json.loads(json.dumps(asdict(piece)))


@pytest.mark.parametrize(
    ("body", "says"),
    [({"file": "f"}, "missing required field `offset`"), ({**FIELDS, "length": None}, r"got `null`.*length")],
)
def test_a_body_that_is_not_of_the_type_is_found(body: Any, says: str) -> None:
    with pytest.raises(StateError, match=rf"x of batch 0 is damaged: f.*{says}"):
        unseal(seal("x", 0, body), "x", 0, "f", ByteRange)


def test_every_altered_byte_is_found() -> None:
    data = seal("plan", 3, {"a": 1})
    for at in range(len(data)):
        with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*plan of batch 3 is damaged.*plans/3"):
            unseal(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "plan", 3, "plans/3", object)


def test_every_truncation_is_found() -> None:
    data = seal("plan", 3, {"a": 1})
    for length in range(len(data)):
        with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*without a seal"):
            unseal(data[:length], "plan", 3, "plans/3", object)


@pytest.mark.parametrize(("kind", "batch"), [("manifest", 3), ("plan", 4)])
def test_a_sound_file_in_the_place_of_another_is_found(kind: str, batch: int) -> None:
    with pytest.raises(StateError, match=f"{kind} of batch {batch} is damaged: f.*a sound plan of batch 3"):
        unseal(seal("plan", 3, {}), kind, batch, "f", object)


def test_a_file_of_another_format_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    data = seal("plan", 3, {})
    monkeypatch.setattr("tidegate.state.store.sealed.FORMAT", FORMAT + 1)
    with pytest.raises(
        StateError, match=f"CHECKPOINT_FORMAT_UNKNOWN.*: f.*Got: format {FORMAT}.*new checkpoint"
    ):
        unseal(data, "plan", 3, "f", Plan)


@pytest.mark.parametrize(
    "body",
    [
        object(),
        {"x": float("nan")},
        {"x": {1, 2}},
        replace(a_plan(3), shed=ShedPlan(sifters={"x": float("nan")})),
        NOT_FINITE,
    ],
)
def test_what_is_not_json_is_refused(body: Any) -> None:
    with pytest.raises(StateError, match=r"CHECKPOINT_VALUE_NOT_JSON.*cannot be written as JSON"):
        seal("plan", 3, body)
