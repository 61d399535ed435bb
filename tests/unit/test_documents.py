"""The documents for users agree with the package: their examples use names and parameters that exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import pytest

import tidegate
from tidegate.api.streams import Stream
from tidegate.driver.streaming_query import StreamingQuery

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page))
]
PROSE = [
    pytest.param(code, id=f"{page.name}:{code}")
    for page in PAGES
    for code in re.findall(
        r"`((?:tg|policies)\.\w+[^`]*)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    )
]


def named(call: ast.expr) -> Any:
    """What a called name of an example is in the package; None for what is not ours or not there."""
    if not isinstance(call, ast.Attribute):
        return None
    modules = {"tg": tidegate, "policies": tidegate.policies}
    if isinstance(call.value, ast.Name) and call.value.id in modules:
        return getattr(modules[call.value.id], call.attr, None)
    owners = (Stream, StreamingQuery) if call.attr in OURS else ()
    return next((getattr(owner, call.attr) for owner in owners if hasattr(owner, call.attr)), None)


#: Methods whose name says that they are ours; others, such as `select`, data frames have too.
OURS = {
    "match",
    "window",
    "write_to",
    "write_to_table",
    "receipts",
    "rescale",
    "set_goal",
    "explain_shedding",
}


def faults(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if is_ours(node) and not hasattr(tidegate, node.attr):
            yield f"tg.{node.attr}"
        elif isinstance(node, ast.Call):
            yield from unknown_parameters(node)


def is_ours(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tg"


def unknown_parameters(call: ast.Call) -> Iterator[str]:
    ours = named(call.func)
    if ours is None or isinstance(ours, property):
        return
    known = inspect.signature(ours).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return
    for word in call.keywords:
        if word.arg and word.arg not in known:
            yield f"{ast.unparse(call.func)}({word.arg}=…)"


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_uses_names_and_parameters_that_exist(code: str) -> None:
    assert list(faults(code)) == []


@pytest.mark.parametrize("code", PROSE)
def test_code_within_a_sentence_uses_names_and_parameters_that_exist(code: str) -> None:
    assert list(faults(code.replace("=…", "=0").replace("(…, ", "(").replace("…", ""))) == []


@pytest.mark.parametrize(
    "code", ["tg.nothing()", "tg.Goal(latency='1 s', speed=3)", "a.window('1 s', group='b')"]
)
def test_a_name_or_parameter_that_does_not_exist_is_noticed(code: str) -> None:
    assert len(list(faults(code))) == 1


def test_the_readme_is_short_and_its_first_example_is_the_file() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= 700
    first = blocks(ROOT / "README.md")[0]
    assert first == (ROOT / "examples/overload.py").read_text(encoding="utf-8")
    assert len(first.splitlines()) <= 25


def test_the_change_log_has_a_line_for_each_change() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert {line for line in lines if line.startswith("### ")} == {"### Added", "### Changed", "### Fixed"}
    assert [line for line in lines if line.startswith("  ")] == []
    assert [
        line for line in lines if line.startswith("- ") and not (line.endswith(".") and len(line) <= 160)
    ] == []
