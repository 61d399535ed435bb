#!/usr/bin/env python3
"""Checks that every error has a code, and that every code is documented and tested.

    python scripts/error_codes.py           a line for each violation, exit status 1 if there is one
    python scripts/error_codes.py --draft   rows for docs/errors.md, made from the messages in the source

Codes are found by parsing `src/`: the `code=` of a call that makes an error, the default of a parameter
`code`, and the `code=` of a call that passes one on, such as `spark_errors_as(…, code="STEP_INVALID")`. A
call that makes an error must have a literal code, or pass on one that is called `code`, as of another error.

Only the standard library is used, so that the script runs before anything is installed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ERRORS = {"TidegateError", "FlowError", "StateError", "CheckpointInUse", "BatchFailed"}
#: The module that defines the errors passes codes on.
DEFINED_IN = "src/tidegate/errors.py"
PAGE = "docs/errors.md"
TESTS = ("tests", "lab/tests")

CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_ROW = re.compile(rf"^\| `({CODE.pattern})` \|", re.MULTILINE)
_WORD = re.compile(rf"\b{CODE.pattern}\b")


@dataclass(frozen=True)
class Made:
    """A call in the source that makes an error."""

    path: str
    line: int
    #: Empty if the call has none, or one that is passed on.
    code: str
    passed_on: bool
    problem: str
    remedy: str


def errors_made(root: Path) -> Iterator[Made]:
    """Every call of an error class in `src/`."""
    for path, tree in _modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in ERRORS:
                parts = {keyword.arg: keyword.value for keyword in node.keywords}
                code = parts.get("code")
                yield Made(
                    path,
                    node.lineno,
                    _literal(code),
                    isinstance(code, ast.Name | ast.Attribute) and _last_name(code) == "code",
                    _text(node.args[0]) if node.args else "",
                    _text(parts["do"]) if "do" in parts else "",
                )


def codes(root: Path) -> dict[str, list[str]]:
    """The places of every code in `src/`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in _modules(root):
        for node in ast.walk(tree):
            for value in _given_codes(node):
                if CODE.fullmatch(_literal(value)):
                    found[_literal(value)].append(f"{path}:{value.lineno}")
    return dict(found)


def documented(root: Path) -> list[str]:
    """The codes of the tables in the page, in their order."""
    return _ROW.findall((root / PAGE).read_text(encoding="utf-8"))


def tested(root: Path, *without: Path) -> set[str]:
    """Words of the tests that could be codes, `without` those of these files."""
    files = {path for folder in TESTS for path in (root / folder).rglob("*.py")} - set(without)
    return {word for path in files for word in _WORD.findall(path.read_text(encoding="utf-8"))}


def violations(root: Path) -> list[str]:
    """What is wrong, a line each."""
    known, rows = codes(root), documented(root)
    return [
        *(
            f"{one.path}:{one.line}: an error without a code"
            for one in errors_made(root)
            if not one.code and not one.passed_on
        ),
        *(
            f"{one.path}:{one.line}: {one.code} is not UPPER_SNAKE"
            for one in errors_made(root)
            if one.code and not CODE.fullmatch(one.code)
        ),
        *(f"{places[0]}: {code} has no row in {PAGE}" for code, places in known.items() if code not in rows),
        *(f"{PAGE}: {code} is not a code of the source" for code in rows if code not in known),
        *(f"{PAGE}: {code} has {count} rows" for code, count in Counter(rows).items() if count > 1),
        *(f"{known[code][0]}: {code} occurs in no test" for code in sorted(known.keys() - tested(root))),
    ]


def drafts(root: Path) -> list[str]:
    """A row for each code that the page lacks."""
    rows = set(documented(root))
    first: dict[str, Made] = {}
    for one in errors_made(root):
        first.setdefault(one.code, one)
    missing = sorted(codes(root).keys() - rows)
    return [
        f"| `{code}` | {first[code].problem}. | {first[code].remedy}. |"
        if code in first
        else f"| `{code}` | | |"
        for code in missing
    ]


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((root / "src").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name != DEFINED_IN:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _given_codes(node: ast.AST) -> Iterator[ast.expr]:
    """Literals that are passed as `code`, or are the default of a parameter of this name."""
    if isinstance(node, ast.Call):
        yield from (one.value for one in node.keywords if one.arg == "code" and _literal(one.value))
    elif isinstance(node, ast.FunctionDef):
        arguments = node.args
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if parameter.arg == "code" and default is not None and _literal(default):
                yield default


def _literal(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _called(node: ast.Call) -> str:
    return _last_name(node.func)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> str:
    """The literal parts of a message, with … for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the codes of errors.")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).parents[1], help="the folder of the project"
    )
    parser.add_argument("--draft", action="store_true", help=f"print rows for {PAGE}")
    given = parser.parse_args()
    lines = drafts(given.root) if given.draft else violations(given.root)
    for line in lines:
        print(line)
    return 1 if lines and not given.draft else 0


if __name__ == "__main__":
    sys.exit(main())
