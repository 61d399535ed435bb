"""Every public name has a docstring with an example; those that need no Spark run here.

The others, methods of streams and of the handle on a query, run in tests/spark/test_doctests.py.
"""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import tidegate
from tidegate import errors, policies, testing
from tidegate.api.windows import Windowed
from tidegate.api.write_stream import StreamWriter
from tidegate.driver.trial import TrialRun

#: Classes that a user meets without importing them.
UNNAMED = {"Windowed": Windowed, "StreamWriter": StreamWriter, "TrialRun": TrialRun}
#: Each method and property of these has an example of its own; others are shown by that of their class.
SHOWN_BY_METHOD = (tidegate.Stream, tidegate.StreamingQuery, Windowed)
#: Their examples run with Spark.
WITH_SPARK = {
    *("tidegate.stream", "tidegate.start", "tidegate.await_any", "tidegate.Output", "tidegate.testing.run"),
    *("StreamWriter", "TrialRun"),
}


def public() -> Iterator[tuple[str, Any]]:
    """Public functions, classes and methods by name; spellings of Spark share the text of ours."""
    for module in (tidegate, policies, testing, errors):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
    yield from UNNAMED.items()
    for kind in SHOWN_BY_METHOD:
        for name, value in vars(kind).items():
            if not name.startswith("_") and name.islower():
                yield f"{kind.__name__}.{name}", value


def needs_spark(name: str) -> bool:
    kinds = tuple(kind.__name__ for kind in SHOWN_BY_METHOD)
    return name in WITH_SPARK or name.removeprefix("tidegate.").startswith(kinds)


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_explained_with_an_example(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    assert ">>>" in text, f"the docstring of {name} has no example"


@pytest.mark.parametrize("name", [name for name in PUBLIC if not needs_spark(name)])
def test_an_example_shows_what_it_says(name: str) -> None:
    value = PUBLIC[name]
    module = inspect.getmodule(value)
    assert isinstance(module, ModuleType)
    examples = [one for one in doctest.DocTestFinder(recurse=False).find(value, name, module) if one.examples]
    assert examples
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    for one in examples:
        runner.run(one, out=said.append)
    assert not runner.failures, "".join(said)


def test_the_documentation_of_start_begins_with_its_parameters() -> None:
    text = inspect.getdoc(tidegate.start) or ""
    places = [text.index(f"`{name}`:") for name in inspect.signature(tidegate.start).parameters]
    assert places == sorted(places), "in the order of the signature"
    assert places[0] < 100, "after one sentence"
