"""`tidegate.start`: checks its arguments, compiles the flow and runs it, once or as a stream."""

from __future__ import annotations

import os
from typing import Any

from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.nodes import Output
from tidegate.api.streams import path_text
from tidegate.driver.compile.compiler import compile_flow
from tidegate.driver.engine.settings import Settings, numbers
from tidegate.driver.goal_settings import (
    AVAILABLE_NOW,
    balance_settings,
    batch_seconds,
    estimate_settings,
    goal_settings,
    repair_settings,
)
from tidegate.driver.io.sinks import refuse_unknown_formats
from tidegate.driver.runner import run_batch, run_stream
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.errors import FlowError, StateError
from tidegate.quantities import duration_us, is_whole
from tidegate.state.checkpoint import Checkpoint


def start(
    *outputs: Output,
    checkpoint: str | os.PathLike[str] | None = None,
    trigger: str | None = None,
    goal: Goal | None = None,
    shed: Shed | None = None,
    balance: Balance | None = None,
    seed: int = 0,
    partitions: int | None = None,
    instances: int | None = None,
) -> StreamingQuery:
    """Run a flow.

    `trigger`: a duration ("1 second"), "available now" (process what is there, then stop), or None (back to
    back). `goal`: the latency of results; under overload, work is shed as `shed` says. Without a goal nothing
    is shed. `balance`: how work is distributed over instances; it loses nothing and needs no goal.
    `partitions` (fixed for the life of a checkpoint) default to eight per instance. `instances` default to
    the parallelism of the session, at most one per partition, and may differ from run to run.
    Batch inputs run at once, emit everything and need neither a checkpoint nor a goal.
    """
    _check_kinds(goal=(goal, Goal), shed=(shed, Shed), balance=(balance, Balance))
    _check_seed(seed)
    checkpoint = None if checkpoint is None else path_text(checkpoint, "The checkpoint")
    sources_spark = _session(outputs)
    parallelism = sources_spark.sparkContext.defaultParallelism if sources_spark is not None else 1
    parts, count = numbers(partitions, instances, _stored_partitions(checkpoint), parallelism)
    shed = shed or Shed()
    compiled = compile_flow(
        outputs,
        parts,
        cells=goal is not None and shed.utility is not None,
        sifts=goal is not None and shed.sift != "none",
        repairs=goal is not None and shed.repair is not None,
    )
    refuse_unknown_formats(compiled.spark, compiled.outputs)
    if not compiled.streaming:
        # A batch run emits everything in one pass, which has no copies of rows.
        balancing = balance_settings(compiled, Balance(strategy="none"), parts, count)
        exact = estimate_settings(compiled, None, shed)
        return run_batch(compiled, Settings(parts, count, False, seed, balancing, estimating=exact))
    if checkpoint is None:
        raise FlowError(
            "A streaming query needs a checkpoint", why="Its state lives there", do='checkpoint="…"'
        )
    keep = goal_settings(compiled, goal, shed, trigger, seed)
    balancing = balance_settings(compiled, balance or Balance(), parts, count, batch_seconds(goal, trigger))
    repairing = None if keep is None else repair_settings(shed, keep.overload)
    estimating = estimate_settings(compiled, goal, shed)
    bounded = trigger == AVAILABLE_NOW
    settings = Settings(parts, count, bounded, seed, balancing, keep, repairing, estimating)
    return run_stream(compiled, settings, checkpoint, _trigger(trigger))


def _check_kinds(**given: tuple[Any, type]) -> None:
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            raise FlowError(
                f"{name} is no tg.{kind.__name__}",
                got=repr(value),
                do=f"Write {name}=tg.{kind.__name__}(…), or leave it out",
            )


def _check_seed(seed: int) -> None:
    if not is_whole(seed, 0) or seed >= 2**63:
        raise FlowError(
            "The seed is a whole number from 0 to 2**63 - 1",
            got=repr(seed),
            why="Which rows are left out follows from it, in the same way on every machine",
        )


def _session(outputs: tuple[Output, ...]) -> Any:
    for output in outputs:
        node = getattr(output, "node", None)
        while node is not None and not hasattr(node, "frame"):
            node = node.inputs[0] if node.inputs else None
        if node is not None:
            return node.frame.sparkSession
    return None


def _stored_partitions(checkpoint: str | None) -> int | None:
    """The partitions of the checkpoint, so that a machine with another number of cores can continue it."""
    if checkpoint is None:
        return None
    try:
        found = Checkpoint(checkpoint).manifests.load_latest()
    except StateError:
        return None  # Recovery of the state raises the full error.
    return None if found is None else int(found.flow["partitions"])


def _trigger(given: str | None) -> dict[str, Any]:
    if given is None:
        return {"processingTime": "0 seconds"}
    if given == AVAILABLE_NOW:
        return {"availableNow": True}
    return {"processingTime": f"{duration_us(given, 'trigger') // 1000} milliseconds"}
