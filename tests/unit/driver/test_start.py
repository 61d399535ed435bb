"""What is refused between compiling a flow and running it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.messages.expecting import a_stream, expect

from tidegate.api.start import StartOptions
from tidegate.driver import start


@pytest.fixture(autouse=True)
def nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The flow as compiled, without Spark."""
    compiled = SimpleNamespace(streaming=True, spark=None, outputs=[])
    monkeypatch.setattr(start, "_session", lambda outputs: None)
    monkeypatch.setattr(start, "compile_flow", lambda outputs, partitions, needs, **settings: compiled)
    monkeypatch.setattr(start, "refuse_unknown_formats", lambda spark, outputs: None)
    return compiled


def run(**settings: Any) -> object:
    return start.run_flow([a_stream().write_to("noop")], StartOptions(**settings))


def test_a_stream_keeps_its_state_in_a_checkpoint() -> None:
    expect("CHECKPOINT_MISSING", run)


def test_a_cluster_needs_a_checkpoint_that_all_machines_reach(nothing_compiles: SimpleNamespace) -> None:
    nothing_compiles.spark = SimpleNamespace(sparkContext=SimpleNamespace(master="yarn"), conf={})
    expect("CHECKPOINT_NOT_SHARED", lambda: run(checkpoint="ck"))


def test_settings_without_a_meaning_for_batch_inputs_are_named(nothing_compiles: SimpleNamespace) -> None:
    nothing_compiles.streaming = False
    error = expect("BATCH_SETTINGS_USELESS", lambda: run(checkpoint="ck", trigger="1 second", seed=3))
    assert error.details["got"] == "checkpoint, trigger"


@pytest.mark.parametrize(
    ("settings", "trigger"),
    [
        ({"available_now": True}, {"availableNow": True}),
        ({"trigger": "1500 ms"}, {"processingTime": "1500 milliseconds"}),
        ({}, {"processingTime": "0 milliseconds"}),
    ],
)
def test_batches_start_as_spark_says_it(settings: dict[str, Any], trigger: dict[str, Any]) -> None:
    assert start._trigger(StartOptions(**settings)) == trigger
