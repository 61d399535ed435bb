"""Runs a described flow: compiles it, checks what only Spark can tell, and runs it once or as a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from tidegate.api.balance import Balance
from tidegate.api.goal import Goal, Shed
from tidegate.api.nodes import Output
from tidegate.api.start import StartOptions, WatermarkRule, check_options
from tidegate.control.balance.balancing import partitions_of
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.compiler import compile_flow
from tidegate.driver.engine.settings import Settings, numbers
from tidegate.driver.goal_settings import (
    balance_settings,
    batch_seconds,
    drop_settings,
    estimate_settings,
    goal_settings,
    needs_of,
    repair_settings,
)
from tidegate.driver.io.publishing import check_commit_every
from tidegate.driver.io.shared_paths import check_shared
from tidegate.driver.io.sinks import (
    refuse_unknown_databases,
    refuse_unknown_formats,
    refuse_unreachable_paths,
)
from tidegate.driver.runner import run_batch, run_stream
from tidegate.driver.streaming_query import StreamingQuery
from tidegate.driver.worker_python import prepare_workers
from tidegate.errors import FlowError
from tidegate.model.codec import to_json_values
from tidegate.model.graph import LateRule
from tidegate.model.plan import Plan
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.receipt_log import Retention

#: Which watermark Spark takes where streams meet: that of the slowest (`min`) or the fastest (`max`).
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
#: Settings that have a meaning for batch inputs.
_OF_BATCH = {"name", "instances", "partitions", "seed", "watermark"}


def run_flow(outputs: Sequence[Output], options: StartOptions) -> StreamingQuery:
    """Run a flow; `tidegate.api.start.start` explains the options."""
    spark = _session(outputs)
    if spark is not None:
        prepare_workers(spark)
    parallelism = 1 if spark is None else spark.sparkContext.defaultParallelism
    stored, begun, owes = _stored(options.checkpoint)
    # Before the first commit, the plan of the batch that was begun has the number.
    planned = {} if begun is None else partitions_of(begun)
    kept = stored.get("partitions", max(planned.values(), default=None))
    partitions, instances = numbers(options.partitions, options.instances, kept, parallelism)
    shed = options.shed or Shed()
    # Also without a goal, because a running query may get one.
    needs = needs_of(shed)
    # The first batch may have been planned by another run, which dropped rows in front of matches.
    sifts = begun is not None and bool(begun.shed.sifters)
    compiled = compile_flow(
        outputs,
        partitions,
        replace(needs, sifts=needs.sifts or sifts, repairs=needs.repairs or owes),
        stored=stored,
        renames=options.renames,
    )
    refuse_unknown_formats(compiled.spark, compiled.outputs)
    refuse_unknown_databases(compiled.spark, compiled.outputs)
    refuse_unreachable_paths(compiled.spark, compiled.outputs)
    check_commit_every(compiled.spark, compiled.outputs, options.goal)
    if not compiled.streaming:
        return _run_batch(compiled, options, partitions, instances)
    if options.checkpoint is None:
        raise FlowError(
            "A streaming query needs a checkpoint",
            code="CHECKPOINT_MISSING",
            why="Its state is stored there",
            do='Write checkpoint="some/folder", one folder for each query',
        )
    if compiled.spark is not None:
        check_shared(compiled.spark, options.checkpoint)
    settings_of = partial(_settings, compiled, options, partitions, instances)
    settings = settings_of(options.goal)

    def another(goal: Goal | None) -> Settings:
        """The settings with another goal, which is checked as that of a start."""
        check_options(replace(options, goal=goal))
        check_commit_every(compiled.spark, compiled.outputs, goal)
        return settings_of(goal)

    return run_stream(compiled, settings, options.checkpoint, _trigger(options), options.name, another)


def _settings(
    compiled: Compiled, options: StartOptions, partitions: int, instances: int, goal: Goal | None
) -> Settings:
    """The settings of a streaming query with this goal."""
    shed = options.shed or Shed()
    keep = goal_settings(compiled, goal, shed, options.trigger_us, options.seed)
    seconds = batch_seconds(goal, options.trigger_us)
    return Settings(
        partitions,
        instances,
        options.seed,
        balance_settings(compiled, options.balance or Balance(), partitions, instances, seconds),
        keep,
        repair_settings(options.shed, keep),
        estimate_settings(compiled, goal, shed),
        drop_settings(compiled, keep, options.seed),
        Retention.of(options.retention_us),
        _late_rule(compiled.spark, options.watermark),
        options.renames,
    )


def _run_batch(compiled: Compiled, options: StartOptions, partitions: int, instances: int) -> StreamingQuery:
    useless = [name for name in options.changed if name not in _OF_BATCH]
    if useless:
        raise FlowError(
            "These settings have no meaning for batch inputs",
            code="BATCH_SETTINGS_USELESS",
            got=", ".join(useless),
            why="A batch run takes all rows at once, emits everything and keeps no state",
            do="Leave them out, or read the inputs with spark.readStream",
        )
    # A batch run emits everything in one pass, which has no copies of rows.
    balance = balance_settings(compiled, Balance(strategy="none"), partitions, instances)
    exact = estimate_settings(compiled, None, Shed())
    settings = Settings(partitions, instances, options.seed, balance, estimating=exact)
    return run_batch(compiled, settings, options.name)


def _session(outputs: Sequence[Output]) -> SparkSession | None:
    for output in outputs:
        node: Any = getattr(output, "node", None)
        while node is not None and not hasattr(node, "frame"):
            node = node.inputs[0] if node.inputs else None
        if node is not None:
            found: SparkSession = node.frame.sparkSession
            return found
    return None


def _stored(path: str | None) -> tuple[Mapping[str, Any], Plan | None, bool]:
    """The flow of the checkpoint, the plan of a batch that was begun, and whether there are debts.

    The flow's partitions and stored columns stay: also on a machine with another number of cores, and where
    fewer columns are read. Before the first commit it has names alone.
    """
    if path is None:
        return {}, None, False
    try:
        checkpoint = Checkpoint(path)
        found = checkpoint.manifests.load_latest()
        names = checkpoint.first_names() if found is None else None
        begun = checkpoint.plans.read(0 if found is None else found.batch + 1)
    except Exception:
        return {}, None, False  # Opening the checkpoint, or recovery of the state, raises the full error.
    if found is not None:
        return found.flow, begun, bool(found.debts)
    return {} if names is None else {"names": to_json_values(names)}, begun, False


def _late_rule(spark: SparkSession, wanted: WatermarkRule) -> LateRule:
    """By whose watermark rows are late: as Spark judges it, or each stream by its own."""
    if wanted == "own":
        return "own"
    return "fastest" if str(spark.conf.get(_POLICY, "min")).lower() == "max" else "slowest"


def _trigger(options: StartOptions) -> dict[str, Any]:
    if options.available_now:
        return {"availableNow": True}
    return {"processingTime": f"{(options.trigger_us or 0) // 1000} milliseconds"}
