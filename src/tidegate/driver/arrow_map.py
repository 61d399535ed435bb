"""`mapInArrow` for columns of any name.

Spark's own method looks its columns up by unquoted names: it fails on a dot or a backtick, and takes `*` for
all columns.
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
    columns = made(*[F.col(quoted(name)) for name in frame.columns])
    return DataFrame(frame._jdf.mapInArrow(columns._jc, False, None), frame.sparkSession)
