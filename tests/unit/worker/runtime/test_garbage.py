"""Loaded objects are exempt from garbage collection; what a task leaves behind is not."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator

import pytest

from tidegate.worker.runtime.task_runner import LoadedObjects


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.collect()
    yield
    gc.unfreeze()


def test_what_is_loaded_before_a_task_is_left_alone() -> None:
    LoadedObjects().keep()
    assert gc.get_freeze_count() > 10_000
    assert len(gc.get_objects()) < 10_000


def test_garbage_of_later_tasks_is_collected() -> None:
    loaded = LoadedObjects()
    for _ in range(40):
        loaded.keep()
    before = gc.get_freeze_count()
    for _ in range(40):
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() > 0
        loaded.keep()
    assert gc.get_freeze_count() <= before


def test_modules_that_a_later_task_loads_are_left_alone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = LoadedObjects()
    for _ in range(40):
        loaded.keep()
    before = gc.get_freeze_count()
    module = types.ModuleType("made_by_a_test")
    module.things = [[number] for number in range(1_000)]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_by_a_test", module)
    loaded.keep()
    assert gc.get_freeze_count() >= before + 1_000
