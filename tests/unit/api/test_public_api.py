"""All public names and their signatures, against the committed list `public_api.txt`.

A change of the list is a change for users: it should be meant, and stand in the changelog.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from difflib import unified_diff
from pathlib import Path
from types import ModuleType
from typing import Any

import tidegate
from tidegate import errors, policies, testing
from tidegate.api.windows import Windowed
from tidegate.api.write_stream import StreamWriter
from tidegate.driver.trial import TrialRun
from tidegate.model import progress
from tidegate.model.receipts import Receipt

LISTED = Path(__file__).with_name("public_api.txt")
UPDATE = "TIDEGATE_UPDATE_PUBLIC_API"

#: Classes that users meet without importing them.
UNNAMED = [
    Windowed,
    StreamWriter,
    *(one for name, one in vars(progress).items() if name.endswith("Progress") and name != "Progress"),
    Receipt,
    TrialRun,
]


class Text(str):
    """An annotation as it stands in the source; signatures show the `repr` of what is no type."""

    def __repr__(self) -> str:
        return str(self)


def test_the_public_names_and_signatures_are_those_of_the_list() -> None:
    found = "\n".join(public_api()) + "\n"
    if os.environ.get(UPDATE):
        LISTED.write_text(found, encoding="utf-8")
    listed = LISTED.read_text(encoding="utf-8") if LISTED.exists() else ""
    difference = unified_diff(
        listed.splitlines(), found.splitlines(), "public_api.txt", "found", lineterm="", n=1
    )
    assert found == listed, (
        "The public names or signatures have changed:\n"
        + "\n".join(difference)
        + f"\nIf this is meant: run this test with {UPDATE}=1, commit {LISTED.name}, and note it in CHANGELOG"
    )


def test_the_list_notices_another_default(monkeypatch: Any) -> None:
    def start(*outputs: tidegate.Output, seed: int = 1) -> None: ...

    before = list(public_api())
    monkeypatch.setattr(tidegate, "start", start)
    assert list(public_api()) != before


def public_api() -> Iterator[str]:
    for module in (tidegate, policies, testing, errors):
        for name in sorted(module.__all__):
            yield from described(f"{module.__name__}.{name}", getattr(module, name))
    for kind in UNNAMED:
        yield from described(f"{kind.__module__}.{kind.__name__}", kind)


def described(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}" + (f"({bases})" if bases else "")
        yield from (f"    {line}" for line in members(value))
    elif isinstance(value, ModuleType):
        yield f"module {name}"
    elif inspect.isfunction(value):
        yield f"def {name}{signature(value)}"
    else:
        # The value of the version is no part of the interface.
        yield f"{name}" if name.endswith("__") else f"{name} = {value!r}"


def members(kind: type) -> Iterator[str]:
    if is_dataclass(kind):
        yield from (field_line(one) for one in fields(kind) if not one.name.startswith("_"))
    elif "__init__" in vars(kind):
        yield f"__init__{signature(vars(kind)['__init__'])}"
    for name in sorted(name for name in vars(kind) if not name.startswith("_")):
        value = vars(kind)[name]
        if isinstance(value, property):
            assert value.fget is not None
            returned = inspect.signature(value.fget).return_annotation
            yield f"property {name}: {returned}" + alias(name, value.fget)
        elif isinstance(value, classmethod):
            yield f"classmethod {name}{signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"def {name}{signature(value)}" + alias(name, value)
        elif not (is_dataclass(kind) and name in {one.name for one in fields(kind)}):
            yield f"{name} = {value!r}"


def alias(name: str, function: Any) -> str:
    return "" if function.__name__ == name else f"  # {function.__name__}"


def field_line(one: Any) -> str:
    default = "" if one.default is MISSING else f" = {one.default!r}"
    if one.default_factory is not MISSING:
        default = f" = {one.default_factory.__name__}()"
    return f"{'*' if one.kw_only else ''}{one.name}: {one.type}{default}"


def signature(function: Any) -> inspect.Signature:
    found = inspect.signature(function)
    plain = [one.replace(annotation=text(one.annotation)) for one in found.parameters.values()]
    return found.replace(parameters=plain, return_annotation=text(found.return_annotation))


def text(annotation: Any) -> Any:
    return Text(annotation) if isinstance(annotation, str) else annotation
