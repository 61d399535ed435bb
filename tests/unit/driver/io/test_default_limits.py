"""Default limits of sources on a Spark that looks different inside, and of sources that Spark describes."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from tidegate.driver.io.default_limits import FIRST_BYTES, FIRST_ROWS, DefaultLimits, _Limited


class Strange:
    """Something of Java's that has nothing we look for."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(f"no {name}")


class Session:
    _jvm = Strange()


class Limits:
    """Spark's constructors of limits."""

    @staticmethod
    def maxBytes(number: int) -> str:  # noqa: N802 (Java's name)
        return f"{number} bytes"

    @staticmethod
    def maxRows(number: int) -> str:  # noqa: N802 (Java's name)
        return f"{number} rows"


def limits_of(*sources: _Limited, factor: float = 1.0) -> DefaultLimits:
    limits = DefaultLimits(Strange(), Session(), ["a", "b"])  # type: ignore[arg-type]
    limits._sources, limits._execution, limits._limits = list(sources), Strange(), Strange()
    limits.begin(factor)
    return limits


FILES = _Limited(Strange(), True, ((0, "a"),))
KAFKA = _Limited(Strange(), False, ((1, "b"),))


def test_a_query_that_looks_different_inside_is_left_alone() -> None:
    limits = limits_of()
    limits.set(5.0)
    assert limits.taken({"a": 7}) == 0


def test_limits_are_bytes_of_files_and_rows_of_topics() -> None:
    assert FILES.limit(Limits, 2.0) == f"{2 * FIRST_BYTES} bytes"
    assert KAFKA.limit(Limits, 0.5) == f"{FIRST_ROWS // 2} rows"


def test_what_was_taken_is_a_part_of_the_limits(monkeypatch: Any) -> None:
    limits = limits_of(FILES, KAFKA, factor=2.0)
    monkeypatch.setattr(limits, "_bytes", lambda: {0: FIRST_BYTES})
    assert limits.taken({"a": 3, "b": FIRST_ROWS}) == 0.5
    assert limits.taken({"a": 3, "b": 0}) == 0.25
    assert limits.taken({"a": 0, "b": 0}) == 0


def test_a_source_that_does_not_answer_says_nothing_of_what_was_taken() -> None:
    assert limits_of(FILES).taken({"a": 7}) == 0


def test_a_factor_that_is_nearly_the_one_in_force_is_not_written(monkeypatch: Any) -> None:
    limits, written = limits_of(FILES), []
    monkeypatch.setattr(limits, "_write", lambda: written.append(limits._factor))
    for factor in (1.05, 0.95, 1.2, 1.25, 4.0):
        limits.set(factor)
    assert written == [1.2, 4.0]
