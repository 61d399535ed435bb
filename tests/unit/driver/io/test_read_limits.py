"""Limits of sources on a Spark that looks different inside: everything is left as it is."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError

from tidegate.control.goal.backpressure import TakenRows
from tidegate.driver.io.read_limits import ReadLimits, _Files, _Kafka, _Source


class Strange:
    """Something of Java's that has nothing we look for."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JError(f"no {name}")


class Session:
    _jvm = Strange()


def test_a_query_that_looks_different_inside_is_left_alone() -> None:
    limits = ReadLimits(Strange(), Session(), ["a"])  # type: ignore[arg-type]
    limits.begin({"a": 5})
    assert limits.taken("a", 7, 3) == TakenRows(7, 3)
    limits.set({"a": 5})
    limits.withdraw()


def test_a_source_that_no_longer_answers_is_left_alone_from_then_on() -> None:
    class Silent(_Source):
        def gave(self, rows: int) -> tuple[int, int | None]:
            raise Py4JError("gone")

    limits = ReadLimits(Strange(), Session(), ["a"])  # type: ignore[arg-type]
    limits._execution, limits._limits = Strange(), Strange()
    limits._sources = {"a": Silent(Strange(), None, Strange())}
    # A batch that is done does not fail because its successor cannot be limited.
    limits.set({"a": 5})
    assert limits.taken("a", 7, 3) == TakenRows(7, 3)
    assert not limits._sources


class Offset:
    """Kafka's, by topic and partition."""

    def __init__(self, text: str) -> None:
        self._text = text

    def json(self) -> str:
        return self._text


class Some:
    """Scala's Option."""

    def __init__(self, value: Offset | None) -> None:
        self._value = value

    def isDefined(self) -> bool:  # noqa: N802 (Scala's name)
        return self._value is not None

    def get(self) -> Offset | None:
        return self._value


class Topics:
    """A Kafka source that knows its newest offsets, in a query whose batch ends with others."""

    def __init__(self, newest: str | None, ends: str | None) -> None:
        self._newest, self._ends = newest, ends

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Java's name)
        return None if self._newest is None else Offset(self._newest)

    def availableOffsets(self) -> Topics:  # noqa: N802 (Scala's name)
        return self

    def get(self, source: Topics) -> Some:
        assert source is self
        return Some(None if self._ends is None else Offset(self._ends))


@pytest.mark.parametrize(
    ("newest", "ends", "waiting"),
    [
        ('{"t":{"0":1000,"1":50},"u":{"0":7}}', '{"t":{"0":400,"1":50},"u":{"0":2}}', 605),
        ('{"t":{"0":400}}', '{"t":{"0":400}}', 0),
        (None, '{"t":{"0":400}}', None),
        ('{"t":{"0":400}}', None, None),
    ],
)
def test_kafka_says_what_waits_by_its_offsets(
    newest: str | None, ends: str | None, waiting: int | None
) -> None:
    topics = Topics(newest, ends)
    assert _Kafka(topics, None, None, topics).gave(300) == (300, waiting)


def test_a_limit_that_is_nearly_the_one_in_force_is_not_written() -> None:
    source = _Source(Strange(), 200, Strange())
    assert [source.takes(units) for units in (100, 109, 91, 111, 100, 5_000, 7_000)] == [
        True,
        False,
        False,
        True,
        False,
        True,
        False,
    ]
    assert source.limit == 200, "what the user allows"


@pytest.mark.parametrize(
    ("limit", "most", "taken", "waiting"),
    [
        (20, None, 20, 2),
        (20, None, 19, 0),
        (None, 40, 40, 4),
        (5, None, 5, 0),
        (1, None, 1, 0),
        (None, None, 9, 0),
    ],
)
def test_files_that_spark_keeps_back_and_does_not_list_are_thought_to_be_some(
    limit: int | None, most: int | None, taken: int, waiting: int
) -> None:
    source = _Files(Strange(), most, Strange(), limit=limit)
    # Fewer than a fifth of the limit wait, or there would be a list.
    assert source.unlisted(taken) == waiting
