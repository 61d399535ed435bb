from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from tests.unit.state.samples import a_piece

from tidegate.errors import StateError
from tidegate.state.store.sealed import seal, unseal


def test_a_sealed_file_is_plain_json_and_opens_to_what_was_put_in() -> None:
    body = {"a": [1, -(2**63), "ü", None, True, 1.5], "b": MappingProxyType({"c": 1})}
    data = seal("plan", 3, body)
    assert json.loads(data)["body"] == body
    assert unseal(data, "plan", 3, "f") == body


def test_a_dataclass_becomes_what_its_own_to_json_says() -> None:
    piece = a_piece("f", matched={"0": a_piece("g").data})
    assert unseal(seal("x", 0, piece), "x", 0, "f") == json.loads(json.dumps(piece.to_json()))


def test_every_altered_byte_is_found() -> None:
    data = seal("plan", 3, {"a": 1})
    for at in range(len(data)):
        with pytest.raises(StateError, match=r"plan of batch 3 is damaged.*plans/3"):
            unseal(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "plan", 3, "plans/3")


def test_every_truncation_is_found() -> None:
    data = seal("plan", 3, {"a": 1})
    for length in range(len(data)):
        with pytest.raises(StateError, match="without a seal"):
            unseal(data[:length], "plan", 3, "plans/3")


@pytest.mark.parametrize(("kind", "batch"), [("manifest", 3), ("plan", 4)])
def test_a_sound_file_in_the_place_of_another_is_found(kind: str, batch: int) -> None:
    with pytest.raises(StateError, match="format, kind and batch"):
        unseal(seal("plan", 3, {}), kind, batch, "f")


def test_a_file_of_another_format_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    data = seal("plan", 3, {})
    monkeypatch.setattr("tidegate.state.store.sealed.FORMAT", 2)
    with pytest.raises(StateError, match="of another version"):
        unseal(data, "plan", 3, "f")


@pytest.mark.parametrize("body", [object(), {"x": float("nan")}, {"x": {1, 2}}])
def test_what_is_not_json_is_refused(body: Any) -> None:
    with pytest.raises(StateError, match="cannot be written as JSON"):
        seal("plan", 3, body)
