"""How a table recognises a batch that it has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.messages.expecting import a_stream

from tidegate.driver.io import sinks, tables


class Writer:
    """A writer of Spark that remembers its options."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def format(self, name: str) -> Writer:
        return self

    mode = format

    def options(self, **given: Any) -> Writer:
        self.given |= given
        return self

    def save(self, path: str | None = None) -> None:
        pass


class Frame:
    """As much of a data frame as a sink needs."""

    def __init__(self) -> None:
        self.write = Writer()


def options_of(query_id: str, name: str = "near", batch: int = 3) -> dict[str, Any]:
    frame: Any = Frame()
    sinks.write(a_stream().write_to("delta", "out", name=name), frame, batch, query_id)
    given: dict[str, Any] = frame.write.given
    return given


def test_queries_with_equal_output_names_do_not_hide_each_other_s_batches() -> None:
    mine, theirs, other = options_of("a-1"), options_of("b-2"), options_of("a-1", "far")
    assert len({one["txnAppId"] for one in (mine, theirs, other)}) == 3
    assert mine == options_of("a-1"), "a replay is recognised"
    assert mine["txnVersion"] == "3"


def test_batch_runs_never_count_as_repeated() -> None:
    assert options_of("") == {}


@pytest.mark.parametrize("query_id", ["", "a-1"])
def test_what_the_user_says_goes_first(query_id: str) -> None:
    frame: Any = Frame()
    sinks.write(a_stream().write_to("delta", "out", options={"txnAppId": "mine"}), frame, 0, query_id)
    assert frame.write.given["txnAppId"] == "mine"
    assert tables.exactly_once(a_stream().write_to("delta", "out"), 0, query_id).get("txnAppId") != "mine"
