"""Checks user-defined aggregates when a query starts: types, initial state, serialisability."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from tidegate.api.user_aggregates import UserAggregate
from tidegate.driver.compile.expression_checks import check_serialisable
from tidegate.driver.compile.join_columns import arrow_schema
from tidegate.errors import FlowError
from tidegate.window.aggregate.udaf import Udaf
from tidegate.worker.runtime.layout import UdafLayout


def udaf_layout(name: str, given: UserAggregate) -> tuple[UdafLayout, T.DataType]:
    """The layout of an aggregate for tasks, and the type of its result."""
    state = _typed(name, "state", given.state)
    if not isinstance(state, T.StructType):
        raise FlowError(
            f"Aggregate {name!r}: a state has named fields",
            got=repr(given.state),
            do='Write for example state="n long, s double"',
        )
    udaf = Udaf(name, given.init, given.incr, given.final, tuple(state.names), given.merge)
    layout = UdafLayout(udaf, arrow_schema(state, f"the state of {name}"), state.simpleString())
    _check_first_state(layout, given.state)
    for role, function in given.functions.items():
        check_serialisable(f"Aggregate {name!r}: {role}", function)
    return layout, _typed(name, "returns", given.returns)


def _typed(name: str, what: str, text: str) -> T.DataType:
    try:
        return T._parse_datatype_string(text)
    except PySparkException as error:
        raise FlowError(
            f"Aggregate {name!r}: {what} is no type of Spark's",
            got=repr(text),
            do='Write for example state="n long, s double", returns="double"',
        ) from error


def _check_first_state(layout: UdafLayout, declared: str) -> None:
    """The initial state must have the declared types."""
    first, schema = layout.udaf.init(), pa.ipc.read_schema(pa.py_buffer(layout.state))
    try:
        for value, field in zip(first, schema, strict=True):
            pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FlowError(
            f"Aggregate {layout.udaf.name!r}: init does not return the state that was declared",
            got=f"{first!r} for {declared!r} ({error})",
            do="Return a tuple with a value of its type for every field",
        ) from error
