"""What a pair is worth: checked before the query starts, so that no batch fails because of it."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from tidegate.errors import FlowError, explain
from tidegate.spark.compiled import Compiled
from tidegate.spark.residual import condition


def check_utility(compiled: Compiled, utility: Any) -> None:
    """It must be a number, made of the columns of every inner join."""
    valued = [join for join in compiled.joins if join.layout.cells]
    if not valued:
        raise FlowError(
            explain("A utility values the pairs of inner joins", got="a flow without one", do="Leave it out")
        )
    for join in valued:
        empty = compiled.spark.createDataFrame([], join.schema)
        try:
            kind = empty.select(condition(utility).alias("utility")).schema["utility"].dataType
        except AnalysisException as error:
            raise FlowError(
                explain(
                    f"The utility does not fit the rows of {join.layout.operator}",
                    got=str(error).splitlines()[0],
                    do="Use columns of the joined row: " + ", ".join(c.name for c in join.layout.output),
                )
            ) from error
        if not isinstance(kind, T.NumericType):
            raise FlowError(
                explain("A utility is a number", got=kind.simpleString(), do="For example utility='fare'")
            )
