"""Limits of sources on a Spark that looks different inside: everything is left as it is."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from tidegate.control.intake import Taken
from tidegate.spark.read_limits import ReadLimits, _Source


class Strange:
    """Something of Java's that has nothing we look for."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(f"no {name}")


class Session:
    _jvm = Strange()


def test_a_query_that_looks_different_inside_is_left_alone() -> None:
    limits = ReadLimits(Strange(), Session(), ["a"])  # type: ignore[arg-type]
    assert limits.taken("a", 7, 3) == Taken(7, 3)
    limits.set({"a": 5})


def test_a_source_that_no_longer_answers_is_left_alone_from_then_on() -> None:
    class Silent(_Source):
        def gave(self, rows: int) -> tuple[int, int | None]:
            raise Py4JError("gone")

    limits = ReadLimits(Strange(), Session(), ["a"])  # type: ignore[arg-type]
    limits._execution, limits._limits = Strange(), Strange()
    limits._sources = {"a": Silent(Strange(), None, Strange())}
    # A batch that is done does not fail because its successor cannot be limited.
    limits.set({"a": 5})
    assert limits.taken("a", 7, 3) == Taken(7, 3)
    assert not limits._sources
