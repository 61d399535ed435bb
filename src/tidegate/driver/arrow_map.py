"""`mapInArrow` for columns of any name, at a fixed number of calls into Java.

Spark's own method looks up every column by its unquoted name: it fails on a dot or a backtick, takes `*` for
all columns, and makes eight calls into Java per column. The function gets all columns of the frame whatever
its arguments are; the arguments only say which ones Spark must not prune, and one struct of all says that.
"""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.util import PythonEvalType

from tidegate.driver.compile.keys import quoted
from tidegate.worker.runtime.task_errors import ArrowFunction


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: T.StructType) -> DataFrame:
    """The rows that a function of Arrow batches makes of this frame's, with these columns."""
    made = cast(Any, pandas_udf)(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns = made(F.expr(f"struct({', '.join(map(quoted, frame.columns))})"))
    return DataFrame(frame._jdf.mapInArrow(columns._jc, False, None), frame.sparkSession)
