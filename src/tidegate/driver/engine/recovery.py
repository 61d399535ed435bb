"""Where a run begins: the state in the checkpoint, carried over to the flow of this run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.api.nodes import Output
from tidegate.control import planning
from tidegate.control.balance import balancing
from tidegate.control.identity.flow_change import FlowChange
from tidegate.control.identity.lacking import refuse_lacking
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.graph_checks import renames_of
from tidegate.driver.compile.lineage import UNVERSIONED
from tidegate.driver.engine.settings import Settings
from tidegate.driver.frames.drop_frames import refuse_rows_gone
from tidegate.errors import StateError
from tidegate.model.codec import to_json_values
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.times import utc_text
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.recovery import added_columns, check_flow, check_streams

_log = logging.getLogger(__name__)


def recovered(
    compiled: Compiled,
    checkpoint: Checkpoint,
    settings: Settings,
    operators: Mapping[str, OperatorTraits],
    now_us: int,
) -> tuple[Manifest, FlowChange]:
    """The state to go on from, and how its flow differs from that of this run."""
    found, flow, names = checkpoint.recover(), compiled.fingerprint, compiled.graph.names
    renames = renames_of(compiled.outputs, settings.renames)
    routing = balancing.first(settings.balance, settings.instances)
    if found is not None:
        change = FlowChange.between(found.flow, names, renames)
        _check_streams(change, checkpoint, found.spark_batch.number)
        begun = checkpoint.plans.read(found.batch + 1)
        if begun is not None:
            check_tables(change, compiled.outputs)
            begun = change.names.plan(begun)
        before = change.names.flow(found.flow)
        check_flow(before, flow)
        report_rows(before, flow)
        manifest = change.manifest(found, flow, routing, operators, now_us)
        balancing.refuse_topology(settings.balance, manifest.routing)
        refuse_lacking(change.added, compiled.graph, operators, manifest, begun)
        refuse_rows_gone(settings.dropping, manifest)
        report(change, found, manifest)
        return manifest, change
    stored = checkpoint.first_names() if compiled.streaming else None
    named = {} if stored is None else {"names": to_json_values(stored)}
    change = FlowChange.between(named, names, renames)
    _check_streams(change, checkpoint, 0)
    begun = checkpoint.plans.read(0)
    if begun is not None:
        # It will run under its plan, whose routing tables are valid for this number of partitions only.
        begun = change.names.plan(begun)
        balancing.refuse_topology(settings.balance, begun.routing)
        check_flow(
            {"partitions": balancing.partitions_of(begun)},
            {"partitions": dict.fromkeys(begun.routing, settings.partitions)},
        )
    if compiled.streaming and stored is None:
        checkpoint.begin(names)
    return planning.first_manifest(flow, list(compiled.sources), routing, now_us), change


def _check_streams(change: FlowChange, checkpoint: Checkpoint, number: int) -> None:
    """Streams come and go only where Spark knows them by name."""
    if not checkpoint.spark_log.knows_names(number):
        check_streams(change.removed_streams, change.added_streams)


def check_tables(change: FlowChange, outputs: Sequence[Output]) -> None:
    """A table may know a batch that is repeated by the name of its output (`driver/io/tables.py`)."""
    renamed = {new: old for old, new in change.names.outputs.items()}
    for output in outputs:
        if output.table is not None and output.name in renamed:
            raise StateError(
                "An output to a table was renamed while a batch is not complete",
                code="CHECKPOINT_PLAN_OF_OTHER_NAMES",
                got=f"{renamed[output.name]} → {output.name}, table {output.table}",
                why="The table would not recognise the rows that it may have already",
                do="Start the query once with the names of its last run, until the batch is committed; then "
                "change them",
            )


def report_rows(before: Mapping[str, Any], flow: Mapping[str, Any]) -> None:
    """Say in what the rows that are stored differ from those of this run, as far as that can be told."""
    for name, columns in added_columns(before, flow).items():
        lacking = ", ".join(columns)
        _log.warning("%s has new columns, which are null in the rows that it has stored: %s", name, lacking)
    for name, texts in before.get("steps", {}).items():
        now = flow["steps"].get(name)
        if now is not None and now != texts:
            _log.warning(
                "Steps in front of %s have changed: rows that it has stored keep the earlier ones", name
            )
        elif now is not None and any(text.endswith(UNVERSIONED) for text in texts):
            _log.warning(
                "Steps in front of %s call Python functions, which cannot be compared with those of the last "
                'run. Put them into transform(…, version="1"), and change the version with the function',
                name,
            )


def report(change: FlowChange, found: Manifest, manifest: Manifest) -> None:
    """Say what the change means for the results."""
    for name in change.removed:
        rows = sum(piece.rows for piece in found.pieces if piece.operator == name and not piece.marks)
        debts = sum(debt.comparisons for debt in found.debts if debt.operator == name)
        lost = f", and {debts:.0f} skipped pairs are written off" if debts else ""
        _log.warning(
            "Operator %s is not in the flow any more: %d stored rows are dropped with the next commit, with "
            "all results that they wait for%s",
            *(name, rows, lost),
        )
    for name in change.added:
        since = f"operator {name} is new and begins empty with batch {manifest.batch + 1}"
        begins_us = manifest.begins_us.get(name)
        if begins_us is None:
            _log.info("The %s", since)
        else:
            at = utc_text(begins_us)
            _log.warning("The %s; its first window begins at %s, the first that lacks no row", since, at)
