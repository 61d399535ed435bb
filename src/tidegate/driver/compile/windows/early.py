"""Whether the tasks of the operator in front can aggregate its rows for a window aggregate."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.api.nodes import OperatorNode, Window
from tidegate.driver.compile import ports
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.driver.compile.windows.window_aggregates import PartialAggregates
from tidegate.worker.runtime.layout import PANE, ROWS, SEEN, TAG, WindowLayout
from tidegate.worker.window.early_partials import TEXTS, EarlyPartials


@dataclass(frozen=True)
class EarlyAggregation:
    """The aggregation in those tasks, and the columns of the partials as Spark gets them."""

    order: EarlyPartials
    schema: T.StructType


def early_aggregation(
    node: Window, frame: DataFrame, layout: WindowLayout, taken: PartialAggregates, plain: bool
) -> EarlyAggregation | None:
    """None: rows come from a stream, or something only Spark can compute lies between or in the aggregates.

    `plain`: rows may be aggregated one by one, by keys whose equality tasks can decide.
    """
    base, steps = ports.steps_of(node.parent)
    by_name = all(step.columns is not None for step in steps)
    if not (plain and by_name and isinstance(base, OperatorNode)) or layout.approximate:
        return None
    of_rows = {name: _of_row(name, layout, taken) for name in layout.partials}
    known = {name: how for name, how in of_rows.items() if how is not None}
    if len(known) < len(of_rows) or not {read for _, read in known.values() if read} <= set(frame.columns):
        return None
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    schema = T.StructType(
        [
            T.StructField(TAG, T.ShortType()),
            T.StructField(PANE, T.LongType()),
            *(T.StructField(name, kinds[name]) for name in node.by),
            *(T.StructField(name, taken.types[name]) for name in layout.partials),
            T.StructField(ROWS, T.LongType()),
            T.StructField(SEEN, T.LongType()),
        ]
    )
    return EarlyAggregation(EarlyPartials(layout, known, arrow_schema(schema, node.label)), schema)


def _of_row(name: str, layout: WindowLayout, taken: PartialAggregates) -> tuple[str, str | None] | None:
    """The text of a partial of a single row, and the column that it reads; None: Spark must compute it."""
    text, arguments = taken.texts.get(name, ("", ()))
    if text not in TEXTS or len(arguments) != 1:
        return None
    if isinstance(layout.carried.get(name), int):
        return text, None
    read = taken.named.get(arguments[0])
    return None if read is None else (text, read)
