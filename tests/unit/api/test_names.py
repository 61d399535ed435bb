from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.messages.expecting import expect

from tidegate.api.names import NAME_LENGTH_MAX, checked_name, operator_name, path_text


@pytest.mark.parametrize("name", ["orders", "Aufträge 2", "a/b", "x" * NAME_LENGTH_MAX])
def test_any_printable_text_is_a_name(name: str) -> None:
    assert checked_name(name, "stream") == name
    assert operator_name(name, "join") == name


@pytest.mark.parametrize("name", ["", "  ", "a\tb", "a\x00", None, 3, b"orders"])
def test_anything_else_is_not(name: Any) -> None:
    error = expect("NAME_UNUSABLE", lambda: checked_name(name, "stream"))
    assert error.details["got"] == repr(name)


def test_a_name_has_a_largest_length() -> None:
    error = expect("NAME_TOO_LONG", lambda: checked_name("x" * (NAME_LENGTH_MAX + 1), "output"))
    assert error.details["problem"] == "The name of an output is too long"
    assert str(error.details["got"]).startswith("201 characters")


@pytest.mark.parametrize(
    ("kind", "label", "example"),
    [
        ("stream", "a stream", "orders"),
        ("query", "a query", "dispatch"),
        ("window", "a window", "busy"),
        ("output", "an output", "near"),
    ],
)
def test_the_error_says_what_is_named_and_gives_an_example(kind: str, label: str, example: str) -> None:
    error = expect("NAME_UNUSABLE", lambda: checked_name("", kind))
    assert error.details["problem"] == f"The name of {label} is not usable"
    assert f'name="{example}"' in error.details["remedy"]


def test_an_operator_needs_no_name() -> None:
    assert operator_name(None, "join") is None


def test_a_path_is_text_or_has_a_text() -> None:
    assert path_text("s3://bucket/out", "The checkpoint") == "s3://bucket/out"
    assert path_text(Path("some") / "folder", "The checkpoint") == "some/folder"


@pytest.mark.parametrize("path", ["", None, 3, b"out"])
def test_anything_else_is_no_path(path: Any) -> None:
    error = expect("PATH_TYPE", lambda: path_text(path, "The checkpoint"))
    assert error.details["problem"] == "The checkpoint is not a path"
