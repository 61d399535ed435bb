"""What a pair is worth: checked before the query starts, so that no batch fails because of it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as T

from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.expression_checks import understood
from tidegate.driver.sql_text import condition
from tidegate.errors import FlowError, explain


def check_utility(compiled: Compiled, utility: Any) -> None:
    """It must be a number, made of the columns of every inner join."""
    valued = [join for join in compiled.joins if join.layout.cells]
    if not valued:
        raise FlowError(
            explain("A utility values the pairs of inner joins", got="a flow without one", do="Leave it out")
        )
    for join in valued:
        empty = compiled.spark.createDataFrame([], join.schema)
        known = ", ".join(column.name for column in join.layout.output)
        with understood(
            f"The utility does not fit the rows of {join.layout.operator}",
            do=f"Use columns of the joined row: {known}",
        ):
            kind = empty.select(condition(utility)).schema.fields[0].dataType
        if not isinstance(kind, T.NumericType):
            raise FlowError(
                explain("A utility is a number", got=kind.simpleString(), do="For example utility='fare'")
            )
