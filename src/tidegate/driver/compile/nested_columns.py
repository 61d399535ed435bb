"""The fields of nested columns that a reader needs are taken out in front of the counts of its stream.

    source ─▶ time ─▶ fields ─▶ counts ─▶ steps of the reader

Events of several kinds often come as one stream with a structure for each kind, and a reader needs a few
fields of one. Spark reads only these fields from files if nothing lies between the source and the steps. But
rows are counted there, and Spark moves an access to a field neither through counts nor through the column of
the time. Then it decodes and copies whole structures, which takes longer than all the rest of the scan.

Spark's optimiser does the work here, once: a limit stands in for the counts, and fields do move through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.driver.compile.column_pruning import blank_like
from tidegate.driver.frames.grafts import Graft, analyzed, frame_of, holds, standing_in
from tidegate.driver.java_collections import java_items
from tidegate.worker.runtime.layout import TIME

_EVERY_ROW = 2**31 - 1
#: What must not be optimised before a batch runs: it belongs to the batch, or may be costly to move.
_OF_A_BATCH = ("CURRENT_LIKE", "PYTHON_UDF", "SCALA_UDF")


@dataclass(frozen=True)
class NestedColumns:
    """The plan of a reader in two parts, with the counts between them."""

    #: On the timed stream: the columns and fields that the reader needs.
    below: Graft
    #: On these: its steps and layout.
    above: Graft


def nested_columns(graft: Graft, place: str, timed: DataFrame) -> NestedColumns | None:
    """The two parts of a reader of one stream; None: it needs no single fields, or they must stay."""
    session: Any = timed.sparkSession
    if not any(isinstance(field.dataType, T.StructType) for field in timed.schema.fields):
        return None
    blank = blank_like(timed)
    limited = standing_in(analyzed(timed), blank.limit(_EVERY_ROW))
    whole = graft.on({place: limited})
    if holds(whole, session, *_OF_A_BATCH):
        return None
    optimised = frame_of(whole, session)._jdf.queryExecution().optimizedPlan()
    counts = _first(optimised, "GlobalLimit")
    if counts is None:
        return None
    fields = counts.children().apply(0).children().apply(0)
    names = [str(column.name()) for column in java_items(fields.output())]
    # What the optimiser calls a field of a nested column.
    extracts = any(name.startswith("_extract_") for name in names)
    if fields.nodeName() != "Project" or TIME not in names or not extracts:
        return None
    stream = fields.children().updated(0, standing_in(analyzed(blank), timed))
    below = Graft(frame_of(fields.withNewChildren(stream), session), {place: timed})
    above = Graft(frame_of(optimised, session), {place: frame_of(counts, session)})
    return NestedColumns(below, above)


def _first(plan: Any, kind: str) -> Any:
    """The first node of a kind in a plan; None if there is none."""
    if plan.nodeName() == kind:
        return plan
    found = (_first(child, kind) for child in java_items(plan.children()))
    return next((one for one in found if one is not None), None)
