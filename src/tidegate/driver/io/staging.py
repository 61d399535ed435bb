"""Staging: tasks write their results as Parquet files beside the state, and sinks read these files.

Returning rows through Spark costs two conversions: from Arrow to Spark's rows, and into Spark's cache, so
that sinks can read them more than once. Staged files avoid both, because tasks write and sinks read columns.
Only reports return through Spark, and no second reader can run a kernel again. A row of a match is staged
once, with a list of its queries.

If a flow has one output that Spark writes, and it is not linked, nothing is staged: the action that runs the
operators writes the output too, with whatever steps lie between.

Staged files live until the sinks are done. They are in the folder of the segments and in no manifest, so
recovery removes those that a crash left. Spark persists the results instead for types that Parquet does not
store exactly, operators that several others read, residual conditions, and batch inputs.

If an output needs exactly the staged rows as Parquet on the same disk, Spark need not read and write them
again: it is *linked*, and `publishing.Publisher.link` makes hard links to the staged files its draft. That
holds if nothing lies between the output and the operator (no residual condition, no stateless step but
a select of columns by name, which the tasks apply), it has no options, partition columns or repair column,
and its path is on a local disk. If the disk refuses a link, Spark writes the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tidegate.api.nodes import Output
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.column_pruning import FIXED_WIDTH
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.keys import is_binary, quoted
from tidegate.driver.compile.ports import steps_of
from tidegate.driver.io.folders import LocalFolder, folder_at
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import Store
from tidegate.worker.runtime.layout import REPORT
from tidegate.worker.runtime.stage_file import Kept

#: Types that Parquet stores exactly.
_EXACT = (*({*FIXED_WIDTH} - {T.DayTimeIntervalType}), T.BinaryType)


@dataclass(frozen=True)
class Staging:
    """Which operators stage their results, and which outputs are linked to the staged files."""

    root: str = ""
    #: By operator that stages: how its files are written if an output is linked to them.
    kept_as: Mapping[str, Kept | None] = field(default_factory=dict)
    #: Outputs that are made of staged files.
    linked: frozenset[str] = frozenset()
    #: Operators whose results go straight on to the one that reads them; those in `kept_as` stage them too.
    piped: frozenset[str] = frozenset()
    #: The operator whose one output the action of a batch writes itself; None: there is none.
    direct: str | None = None
    #: Operators that several others read, so that Spark persists their results.
    persisted: frozenset[str] = frozenset()
    #: By piped operator whose tasks can aggregate its results for the window that reads them: its name.
    early: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, compiled: Compiled, store: Store) -> Staging:
        """What the tasks of each operator do with its results."""
        root = store.root if compiled.streaming and isinstance(store, LocalStore) else ""
        readers = Counter(name for names in compiled.graph.inputs.values() for name in names)
        shown = {compiled.feeding(output.node) for output in compiled.outputs}
        can = {one.name for one in compiled.operators if root and one.stages and can_stage(one.schema)}
        pipes = {one.name for one in compiled.operators if one.pipes}
        piped = {name for name in pipes if readers[name] == 1} - (shown - can)
        staged = {name for name in can & shown if not readers[name] or name in piped}
        kept_as, linked = _linked(compiled, staged)
        direct = _direct(compiled, set(readers), linked)
        persisted = frozenset(name for name in pipes if readers[name] > 1)
        return cls(root, kept_as, linked, frozenset(piped), direct, persisted, _early(compiled, piped))


def _early(compiled: Compiled, piped: set[str]) -> dict[str, str]:
    """By piped operator whose tasks can aggregate its results: the window that reads them."""
    feeding = [
        (name, one.name) for one in compiled.windows if one.early for name in compiled.graph.inputs[one.name]
    ]
    return {name: reader for name, reader in feeding if name in piped and compiled.named(name).is_plain}


def _direct(compiled: Compiled, read: set[str], linked: frozenset[str]) -> str | None:
    """The operator whose output the action can write: the only one that no other reads, with one output."""
    last = [one for one in compiled.operators if one.reports and one.name not in read]
    if not compiled.streaming or len(last) != 1 or len(compiled.outputs) != 1 or not last[0].pipes:
        return None
    (output,) = compiled.outputs
    # A function may read its rows several times, or not at all; a table is appended to once.
    by_spark = output.function is None and output.table is None and output.name not in linked
    return last[0].name if by_spark and compiled.shown_by(output) is last[0] else None


def _linked(compiled: Compiled, staged: set[str]) -> tuple[dict[str, Kept | None], frozenset[str]]:
    """By staging operator, how files that stay are written; and the linked outputs."""
    codec = codec_of(compiled.spark)
    hiding = {one.name for one in compiled.operators if one.hides_columns}
    linked = linked_outputs(compiled, staged - hiding if codec is not None else ())
    kept_as: dict[str, Kept | None] = dict.fromkeys(sorted(staged))
    for output in compiled.outputs:
        columns = columns_of(compiled, output)
        if output.name in linked and codec is not None and columns is not None:
            kept_as[compiled.feeding(output.node)] = Kept(codec, columns)
    return kept_as, linked


def can_stage(schema: T.StructType) -> bool:
    """Whether Parquet stores every column exactly."""
    return all(_is_carried(f.dataType) for f in schema.fields)


def _is_carried(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _is_carried(kind.elementType)
    return isinstance(kind, _EXACT) or (type(kind) is T.StringType and is_binary(kind))


def read_staged(
    spark: SparkSession, files: Sequence[str], schema: T.StructType, listed: str | None = None
) -> DataFrame:
    """The staged rows of all tasks.

    `listed`: files have lists in this column, which are exploded.
    """
    shown = T.StructType([f for f in schema.fields if f.name != REPORT])
    if not files:
        return spark.createDataFrame([], shown)
    written = T.StructType(
        [T.StructField(f.name, T.ArrayType(f.dataType)) if f.name == listed else f for f in shown.fields]
    )
    rows = spark.read.schema(written).parquet(*[f"file://{file}" for file in files])
    if listed is None:
        return rows
    # Text is one call into Java; a column object for each would take as long as the reading.
    names = [quoted(name) for name in shown.names]
    names[shown.names.index(listed)] = f"explode({quoted(listed)}) AS {quoted(listed)}"
    return rows.selectExpr(*names)


#: Codec names of Spark → Arrow. Outputs with other codecs are not linked.
_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none", "uncompressed": "none"}


def codec_of(spark: SparkSession) -> str | None:
    """The Parquet codec of the session; None if Arrow does not support it."""
    whole = spark.conf.get("spark.sql.files.maxRecordsPerFile") in (None, "0")
    return _CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec")).lower()) if whole else None


def linked_outputs(compiled: Compiled, staged: Collection[str]) -> frozenset[str]:
    """Outputs to which the files of these operators can be linked."""
    return frozenset(
        output.name
        for output in compiled.outputs
        if compiled.feeding(output.node) in staged and _links(compiled, output)
    )


def columns_of(compiled: Compiled, output: Output) -> tuple[str, ...] | None:
    """The columns of an output, if tasks can write it: they produce these, and nothing else lies between.

    The files of an operator have one set of columns: all, unless it has a single output.
    """
    operator, steps = compiled.shown_by(output), steps_of(output.node)[1]
    if operator is None or not operator.is_plain:
        return None
    made = tuple(name for name in operator.schema.names if not name.startswith(HIDDEN))
    if not steps:
        return made
    chosen = steps[-1].columns if all(step.columns is not None for step in steps) else None
    alone = sum(compiled.shown_by(one) is operator for one in compiled.outputs) == 1
    return chosen if chosen == made or (alone and chosen and set(chosen) <= set(made)) else None


def _links(compiled: Compiled, output: Output) -> bool:
    if columns_of(compiled, output) is None or output.format != "parquet" or output.path is None:
        return False
    if output.options or output.partition_by or output.repair_column is not None:
        return False
    return compiled.spark._jvm is not None and isinstance(folder_at(compiled.spark, output.path), LocalFolder)
