"""Starting a query, its goal, its shedding and its balance: a setting that cannot be has its code."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.messages.expecting import Frame, a_stream, expect

import tidegate as tg
from tidegate import policies, testing
from tidegate.api.listeners import add_listener, await_any
from tidegate.cli.inspect import TRIES, _newest_manifest
from tidegate.driver.compile.condition_checks import check_utility
from tidegate.driver.describe import batch_result
from tidegate.driver.engine.batch import check_complete
from tidegate.driver.engine.settings import positive
from tidegate.driver.frames import observed
from tidegate.driver.goal_settings import _refuse_nothing_to_shed, _that_may_repair, loss_bounds
from tidegate.driver.io import tables
from tidegate.driver.start import _run_batch
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.driver.trial import TrialRun, _check_streams, _rows
from tidegate.errors import StateError
from tidegate.window.drop.window_drop import WindowDrop


def started(**settings: Any) -> object:
    return tg.start(a_stream().write_to("noop"), **settings)


GOAL = tg.Goal(latency="2 seconds")
SETTINGS: list[tuple[str, Callable[[], object]]] = [
    ("START_SETTING_TYPE", lambda: started(goal="2 seconds")),
    ("WATERMARK_RULE_UNKNOWN", lambda: started(watermark="mine")),
    ("SEED_RANGE", lambda: started(seed=-1)),
    ("TRIGGER_AVAILABLE_NOW", lambda: started(trigger="available now")),
    ("AVAILABLE_NOW_TYPE", lambda: started(available_now=1)),
    ("AVAILABLE_NOW_WITH_TRIGGER", lambda: started(available_now=True, trigger="1 second")),
    ("AVAILABLE_NOW_WITH_GOAL", lambda: started(available_now=True, goal=GOAL)),
    ("START_NUMBER_INVALID", lambda: positive(0, "instances", 1)),
    ("GOAL_LATENCY_ZERO", lambda: tg.Goal(latency="0 seconds")),
    ("GOAL_LATENCY_BELOW_TRIGGER", lambda: GOAL.batch_seconds(3_000_000)),
    ("GOAL_MAX_LOSS_ZERO", lambda: loss_bounds(tg.Goal("1 s", max_loss=0), [a_stream().write_to("noop")])),
    ("MAX_LOSS_RANGE", lambda: tg.Goal(latency="1 s", max_loss=1.5)),
    ("SHED_WINDOW_RANGE", lambda: tg.Shed(window=2.0)),
    ("SHED_REGIONS_RANGE", lambda: tg.Shed(regions=0)),
    ("SHED_FAIRNESS_RANGE", lambda: tg.Shed(fairness=2)),
    ("SHED_REPAIR_IMPOSSIBLE", lambda: tg.Shed(join="random_drop", repair="idle")),
    ("SHED_EXPLORE_RATIO_RANGE", lambda: tg.Shed(explore_ratio=0)),
    ("SHED_UTILITY_WITHOUT_JOIN", lambda: check_utility(None, [], "fare")),  # type: ignore[arg-type]
    ("POLICY_PERIOD_ZERO", lambda: policies.Adaptive(rate_period="0 seconds")),
    ("POLICY_PARAMETER_RANGE", lambda: policies.FastJoin(threshold=0.5)),
    ("BALANCE_STRATEGY_UNKNOWN", lambda: tg.Balance(strategy="best")),  # type: ignore[arg-type]
    ("BALANCE_TOPOLOGY_UNKNOWN", lambda: tg.Balance(topology="ring")),  # type: ignore[arg-type]
    ("BALANCE_SCALE_RANGE", lambda: tg.Balance(scale=(4, 2))),
    ("LISTENER_TYPE", lambda: add_listener(print)),  # type: ignore[arg-type]
    ("AWAIT_ANY_EMPTY", lambda: await_any()),
    ("WINDOW_DROP_COIN_INVALID", lambda: WindowDrop(1, 2, per_coin=3)),
    ("TESTING_PROBE_RATIO_RANGE", lambda: testing.run(a_stream(), {}, probe_ratio=0)),
]


@pytest.mark.parametrize(("code", "call"), SETTINGS, ids=[code for code, _ in SETTINGS])
def test_a_setting_that_cannot_be_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


#: As much of a compiled flow as the checks of a goal read.
NO_JOIN: Any = SimpleNamespace(joins=(), graph=SimpleNamespace(may_repair=frozenset))
BATCH_OPTIONS: Any = SimpleNamespace(changed=("trigger",))
RUNNING: list[tuple[str, Callable[[], object]]] = [
    ("GOAL_NOTHING_TO_SHED", lambda: _refuse_nothing_to_shed(NO_JOIN, False)),
    ("SHED_REPAIR_NO_JOIN", lambda: _that_may_repair(NO_JOIN)),
    ("BATCH_SETTINGS_USELESS", lambda: _run_batch(NO_JOIN, BATCH_OPTIONS, 1, 1)),
    ("RESCALE_NOT_RUNNING", lambda: StreamingQuery("near").rescale(2)),
    ("OUTPUT_TABLE_COLUMNS", lambda: tables._check_columns(a_stream().write_to_table("t"), ["a"], ["b"])),
    (
        "OUTPUT_TABLE_BATCH_COLUMN",
        lambda: tables._with_batch(a_stream().write_to_table("t"), Frame(columns=("k", "Batch")), 3),  # type: ignore[arg-type]
    ),
    ("TESTING_OUTPUT_UNKNOWN", lambda: TrialRun({"near": []}, StreamingQuery()).rows("far")),
    ("TESTING_STREAMS_DIFFER", lambda: _check_streams({}, {"orders": []})),
    ("TESTING_COLUMNS_UNKNOWN", lambda: _rows([{"fare": 1}], ["cell"], "orders")),
]


@pytest.mark.parametrize(("code", "call"), RUNNING, ids=[code for code, _ in RUNNING])
def test_what_cannot_run_has_its_code(code: str, call: Callable[[], object]) -> None:
    expect(code, call)


def test_a_data_frame_of_streaming_inputs_is_refused() -> None:
    frame: Any = Frame(isStreaming=True)
    stream = tg.stream(frame, name="orders", time="ts", lateness="1 second")
    error = expect("TO_DATAFRAME_STREAMING", lambda: batch_result(stream.write_to("noop").node, "orders"))
    assert "orders" in str(error)


def test_a_batch_does_not_start_while_the_query_stops() -> None:
    query = StreamingQuery("near")
    query._stopping.set()
    error = expect("STOPPING", lambda: query._running(7).__enter__())
    assert "Batch 7" in str(error)


def test_a_stop_that_takes_too_long_is_an_error() -> None:
    query = StreamingQuery("near")
    query._inner = SimpleNamespace(stop=lambda: None, isActive=True)  # type: ignore[assignment]
    expect("STOP_TIMEOUT", lambda: query.stop(timeout=0.01))


def test_an_instance_that_does_not_report_fails_the_batch() -> None:
    plan: Any = SimpleNamespace(batch=7, routing={"near": SimpleNamespace(instances=2)})
    report: Any = SimpleNamespace(operator="near", instance=0)
    error = expect("INTERNAL_REPORTS_MISSING", lambda: check_complete([report], plan))
    assert "Batch 7" in str(error)
    assert "1 reports, 2 expected" in str(error)


def test_metrics_that_spark_does_not_return_fail_the_batch() -> None:
    batch: Any = SimpleNamespace(observes=lambda name: True, observed=lambda name: None)
    error = expect("INTERNAL_METRICS_MISSING", lambda: observed.read(["orders"], batch))
    assert "orders" in str(error)


def test_a_checkpoint_that_moves_on_during_every_read_is_an_error() -> None:
    batches = iter(range(10 * TRIES))

    class Purged:
        def latest_batch(self) -> int:
            return next(batches)

        def load(self, batch: int) -> None:
            raise StateError("gone", code="CHECKPOINT_FILE_MISSING")

    checkpoint: Any = SimpleNamespace(manifests=Purged())
    expect("CHECKPOINT_CHANGING", lambda: _newest_manifest(checkpoint))
