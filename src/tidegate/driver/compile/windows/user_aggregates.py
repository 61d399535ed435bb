"""Checks user-defined aggregates when a query starts: types, initial state, serialisability."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from tidegate.api.user_aggregates import Aggregator, for_workers, has_merge
from tidegate.driver.compile.expression_checks import check_serialisable
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.errors import FlowError
from tidegate.window.aggregate.udaf import Udaf
from tidegate.worker.runtime.layout import UdafLayout


def udaf_layout(name: str, given: Aggregator) -> tuple[UdafLayout, T.DataType]:
    """The layout of an aggregate for tasks, and the type of its result."""
    state = _typed(name, "state", given.state)
    if not isinstance(state, T.StructType):
        raise FlowError(
            f"Aggregate {name!r}: the fields of a state need names",
            code="AGGREGATOR_STATE_UNNAMED",
            got=repr(given.state),
            do='Write for example state = "n long, total double"',
        )
    sent = for_workers(given)
    merge = sent.merge if has_merge(given) else None
    udaf = Udaf(name, sent.zero, sent.update, sent.finish, tuple(state.names), merge)
    layout = UdafLayout(udaf, arrow_schema(state, f"the state of {name}"), state.simpleString())
    _check_first_state(layout, given.state)
    # A method is pickled with its instance and, where workers cannot import it, its class.
    check_serialisable(f"Aggregate {name!r}", sent.update)
    return layout, _typed(name, "returns", given.returns)


def _typed(name: str, what: str, text: str) -> T.DataType:
    try:
        return T._parse_datatype_string(text)
    except PySparkException as error:
        raise FlowError(
            f"Aggregate {name!r}: Spark does not know the type in {what}",
            code="AGGREGATOR_TYPE_INVALID",
            got=repr(text),
            do='Write for example state = "n long, total double" and returns = "double"',
        ) from error


def _check_first_state(layout: UdafLayout, declared: str) -> None:
    """The initial state must have the declared types."""
    first, schema = layout.udaf.zero(), pa.ipc.read_schema(pa.py_buffer(layout.state))
    try:
        for value, field in zip(first, schema, strict=True):
            pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FlowError(
            f"Aggregate {layout.udaf.name!r}: zero does not return the state that was declared",
            code="AGGREGATOR_ZERO_TYPE",
            got=f"{first!r} for {declared!r} ({error})",
            do="Return a tuple with a value of its type for every field",
        ) from error
