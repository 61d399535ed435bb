"""What Spark knows of a described stream: its schema, and its finished result over batch inputs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tidegate.api.nodes import Node, Output
from tidegate.api.start import StartOptions
from tidegate.driver.compile.compiler import output_schema
from tidegate.driver.compile.graph_checks import sources_of
from tidegate.driver.start import run_flow
from tidegate.errors import FlowError


def schema_of(node: Node) -> T.StructType:
    """The visible columns of a node."""
    return output_schema(Output(node, "schema", function=_nothing))


def batch_result(node: Node, name: str) -> DataFrame:
    """The result of a flow over batch inputs, run at once and kept by Spark's executors."""
    kept: list[DataFrame] = []

    def keep(frame: DataFrame, batch: int) -> None:
        # The engine frees its own copy when the run ends.
        kept.append(frame.localCheckpoint(eager=True))

    output = Output(node, name, function=keep)
    streaming = [source.name for source in sources_of([output]) if source.frame.isStreaming]
    if streaming:
        raise FlowError(
            "to_dataframe needs batch inputs",
            code="TO_DATAFRAME_STREAMING",
            got="streaming inputs " + ", ".join(streaming),
            why="A stream has no finished result",
            do="Read the inputs with spark.read, or run the flow with tg.start",
        )
    run_flow((output,), StartOptions())
    return kept[0]


def _nothing(frame: DataFrame, batch: int) -> None:
    """A sink that is never called."""
