"""The files around the code agree with it: versions, commands, and the paths that texts name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import tidegate

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_lab_and_the_citation_have_the_version_of_the_package() -> None:
    assert tomllib.loads(text("lab/pyproject.toml"))["project"]["version"] == tidegate.__version__
    assert re.findall(r"^version: (.+)$", text("CITATION.cff"), re.MULTILINE) == [tidegate.__version__]


def test_what_make_lint_runs_is_a_hook_before_each_commit() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), re.MULTILINE)
    assert recipe
    commands = [line.strip().removeprefix("$(BIN)/") for line in recipe[1].splitlines()]
    assert "ruff check ." in commands
    hooks = re.findall(r"^ +entry: \.venv/bin/(.+)$", text(".pre-commit-config.yaml"), re.MULTILINE)
    assert [command for command in commands if command not in hooks] == []


TARGETS = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
TEXTS = ["CONTRIBUTING.md", "docs/releasing.md", ".github/PULL_REQUEST_TEMPLATE.md"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_names_targets_that_make_has(name: str) -> None:
    named = re.findall(r"(?:^|`)make ([a-z -]+?)(?:`| *#|$)", text(name), re.MULTILINE)
    assert named
    assert {target for targets in named for target in targets.split()} - TARGETS == set()


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_names_files_that_exist(name: str) -> None:
    paths = re.findall(r"`((?:src|tests|lab|docs|scripts)/[\w./]+)`", text(name))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_first_change_that_contributing_shows_fits_the_code() -> None:
    contributing = text("CONTRIBUTING.md")
    assert '"tib": 2**40,' in contributing
    assert '"tib": 2**40,' in text("src/tidegate/quantities.py")
    assert '("2 TiB", 1 << 41)' in text("tests/unit/test_sizes.py")
