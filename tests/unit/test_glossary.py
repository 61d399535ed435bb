"""The glossary stays true: its modules exist, its words are defined once, and none is retired."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.house import RETIRED_WORDS

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| word ")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_word_has_a_definition_and_modules_that_exist(row: list[str]) -> None:
    modules = re.findall(r"`([^`]+)`", row[-1])
    assert row[1].endswith(".")
    assert modules
    assert [name for name in modules if not (ROOT / "src" / "tidegate" / name).is_file()] == []


def test_no_word_is_defined_twice() -> None:
    words = [row[0] for row in ROWS]
    assert len(words) > 50
    assert sorted(set(words)) == sorted(words)


def test_no_retired_word_is_used() -> None:
    used = {word for row in ROWS for word in re.findall(r"[a-z]+", " ".join(row[:2]).lower())}
    assert used & RETIRED_WORDS.keys() == set()
