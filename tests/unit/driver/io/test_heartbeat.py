"""The heartbeat of Spark behind a clock that was set back, with a stand-in for Java."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.driver.io import heartbeat
from tidegate.driver.io.heartbeat import Heartbeat


class Beats:
    """Spark's rate source: when it began, and the newest time that it has seen."""

    def __init__(self) -> None:
        self.fields = {"creationTimeMs": 100_000, "lastTimeMs": 100_000}

    def getClass(self) -> Beats:  # noqa: N802
        return self

    def getDeclaredField(self, name: str) -> Any:  # noqa: N802
        def put(of: Beats, value: int) -> None:
            of.fields[name] = value

        return SimpleNamespace(
            setAccessible=lambda accessible: None, getLong=lambda of: of.fields[name], setLong=put
        )


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Beats:
    made = Beats()
    monkeypatch.setattr(heartbeat, "sources_set_up", lambda execution: True)
    monkeypatch.setattr(heartbeat, "leaf_sources", lambda execution: [None, made])
    return made


def made(now_ms: int, counted: int, *monotonic: float) -> Heartbeat:
    system = SimpleNamespace(currentTimeMillis=lambda: now_ms)
    spark: Any = SimpleNamespace(
        _jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    )
    query = SimpleNamespace(streamingQuery=lambda: None)
    times = iter(monotonic)
    return Heartbeat(query, spark, counted, lambda: next(times))


def test_it_begins_where_the_log_of_spark_ends(beats: Beats) -> None:
    made(0, 36, 0.0)
    assert beats.fields == {"creationTimeMs": 100_000, "lastTimeMs": 136_000}
    made(0, 5, 0.0)
    assert beats.fields["lastTimeMs"] == 136_000, "never back"


def test_behind_a_clock_that_was_set_back_it_goes_on_as_time_does(beats: Beats) -> None:
    one = made(90_000, 0, 7.0, 8.0, 10.5)
    one.keep_going()
    one.keep_going()
    assert beats.fields["lastTimeMs"] == 103_500


def test_by_a_right_clock_it_goes_by_itself(beats: Beats) -> None:
    made(100_001, 0, 7.0, 8.0).keep_going()
    assert beats.fields["lastTimeMs"] == 100_000
