"""Checks of a described flow before it is compiled, its graph, and the selects that read a join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import types as T

from tidegate.api.goal import Shed
from tidegate.api.nodes import Join, Node, OperatorNode, Output, Source, StatelessStep, Union, name_of
from tidegate.control.identity.renames import Renames
from tidegate.driver.compile import ports
from tidegate.errors import FlowError
from tidegate.model.graph import FlowGraph, FlowTraits
from tidegate.model.times import LEFT
from tidegate.worker.runtime.layout import JoinLayout


def selected(outputs: Sequence[Output], join: Join) -> tuple[str, ...] | None:
    """The columns of a join that its readers select by name, in the order of the select if there is one; None
    if a reader does not begin with one. In that order, staged files can become those of an output."""
    if join.is_conditional:
        return None
    names: dict[str, None] = {}
    for reader in _readers(outputs, join):
        if not isinstance(reader, StatelessStep) or reader.columns is None:
            return None
        names |= dict.fromkeys(reader.columns)
    return tuple(names) or None


def _readers(outputs: Sequence[Output], join: Join) -> Iterator[Output | Node]:
    """The nodes and outputs that read a join; the same reader may occur several times."""
    waiting: list[Output | Node] = list(outputs)
    while waiting:
        reader = waiting.pop()
        parents = (reader.node,) if isinstance(reader, Output) else reader.inputs
        waiting += parents
        if any(parent is join for parent in parents):
            yield reader


def check_outputs(outputs: Sequence[Output]) -> None:
    if not outputs:
        raise FlowError(
            "A query needs an output", code="OUTPUTS_MISSING", do="Pass at least one stream.write_to(…)"
        )
    for output in outputs:
        if not isinstance(output, Output):
            raise FlowError(
                "tg.start takes outputs",
                code="OUTPUT_TYPE",
                got=type(output).__name__,
                do="Pass them one by one: tg.start(*outputs)"
                if isinstance(output, list | tuple)
                else "Call .write_to(…) on the stream",
            )
    names = [output.name for output in outputs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FlowError(
            "Two outputs have the same name",
            code="OUTPUT_NAMES_EQUAL",
            got=", ".join(twice),
            why="Progress and receipts know an output by its name",
            do='Give them names: write_to(…, name="…")',
        )
    paths = [output.path.rstrip("/") for output in outputs if output.path is not None]
    shared = sorted({path for path in paths if paths.count(path) > 1})
    if shared:
        raise FlowError(
            "Two outputs write to the same path",
            code="OUTPUT_PATHS_EQUAL",
            got=", ".join(shared),
            why="Their files have the same names, so the rows of one would be lost",
            do="Give each output its own directory",
        )


def check_columns(output: Output, fields: Sequence[T.StructField]) -> None:
    """The columns that an output names must exist, and the one it adds must not."""
    names = [field.name for field in fields]
    missing = [name for name in output.partition_by if name not in names]
    if missing:
        raise FlowError(
            f"Output {output.name!r} is partitioned by columns that it does not have",
            code="OUTPUT_PARTITION_BY_UNKNOWN",
            got=f"{', '.join(missing)}; columns {', '.join(names)}",
            do="Name columns of the stream in partition_by=…",
        )
    added = output.repair_column
    if added is not None and added.lower() in (name.lower() for name in names):
        raise FlowError(
            f"Output {output.name!r} already has a column {added!r}",
            code="OUTPUT_REPAIR_COLUMN_TAKEN",
            got="columns " + ", ".join(names),
            do="Give repair_column another name",
        )


def sources_of(outputs: Sequence[Output]) -> list[Source]:
    found: dict[int, Source] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Source):
            found.setdefault(id(node), node)
        for parent in node.inputs:
            visit(parent)

    for output in outputs:
        visit(output.node)
    names = [source.name for source in found.values()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FlowError(
            "Two streams have the same name",
            code="STREAM_NAMES_EQUAL",
            got=", ".join(twice),
            why="Checkpoint, progress and receipts know a stream by its name",
            do="Give each its own name=…",
        )
    return list(found.values())


def graph_of(outputs: Sequence[Output]) -> tuple[FlowGraph, dict[int, str]]:
    """The flow graph, and the name of each operator by the identity of its node."""
    names: dict[int, str] = {}
    streams: dict[str, None] = {}
    operators: dict[str, FlowTraits] = {}
    inputs: dict[str, tuple[str, ...]] = {}

    def visit(node: Node) -> str:
        base, _ = ports.steps_of(node)
        if id(base) in names:
            return names[id(base)]
        if isinstance(base, Union):
            # Rows enter an inner union as those of its streams.
            read = tuple(visit(source) for source in base.sources)
        else:
            read = tuple(visit(parent) for parent in base.inputs)
        if isinstance(base, Source):
            streams[base.name] = None
            return base.name
        if not isinstance(base, OperatorNode):
            return read[0]
        name = names[id(base)] = name_of(base)
        if name in operators:
            raise FlowError(
                "Two operators have the same name",
                code="OPERATOR_NAMES_EQUAL",
                got=f"{name!r}, a {operators[name].label} and a {base.label}",
                why="Checkpoint, progress and receipts know an operator by its name",
                do=f'Give them names: {base.label}(…, name="…")',
            )
        operators[name], inputs[name] = _traits(base), read
        return name

    shown = {output.name: visit(output.node) for output in outputs}
    both = sorted(set(streams) & set(operators))
    if both:
        raise FlowError(
            "An operator and a stream have the same name",
            code="OPERATOR_STREAM_NAMES_EQUAL",
            got=", ".join(both),
            why="Checkpoint, progress and receipts know both by their names",
            do="Give the operator another name=…",
        )
    return FlowGraph(tuple(streams), operators, inputs, shown), names


def in_order(streams: Sequence[str], stored: Sequence[str]) -> tuple[str, ...]:
    """Streams in the order of Spark's offset log; those that it does not have come last, by name."""
    known = [name for name in stored if name in streams]
    return (*known, *sorted(set(streams) - set(known)))


def renames_of(outputs: Sequence[Output], asked: Mapping[str, str]) -> Renames:
    """The renames of the user, and those of default names that follow from them."""
    former = {new: old for old, new in asked.items()}
    operators: dict[str, str] = {}
    shown: dict[str, str] = {}
    waiting: list[Node] = [output.node for output in outputs] if asked else []
    while waiting:
        node = waiting.pop()
        waiting += node.inputs
        if isinstance(node, OperatorNode):
            operators[name_of(node, former)] = name_of(node)
    for output in outputs if asked else ():
        if output.given_name is None:
            shown[name_of(output.node, former)] = output.name
    return Renames(asked, operators, shown)


def _traits(node: OperatorNode) -> FlowTraits:
    return FlowTraits(
        node.label,
        node.fewer_in_fewer_out,
        node.passes_through,
        node.estimates,
        node.repairable,
        node.sheds,
    )


def check_estimates(graph: FlowGraph) -> None:
    """Estimates may not enter another operator."""
    reader = graph.reader_of_estimates()
    if reader is not None:
        raise FlowError(
            f"A {reader} reads the results of an approximate window",
            code="WINDOW_ESTIMATES_REUSED",
            why="An estimate of estimates has no valid interval, and groups without a sampled row would be "
            "missing",
            do="Write the results to an output, or leave out approximate=True",
        )


def all_streaming_or_none(sources: Sequence[Source]) -> bool:
    streaming = {source.name for source in sources if source.frame.isStreaming}
    if streaming and len(streaming) < len(sources):
        still = sorted({source.name for source in sources} - streaming)
        raise FlowError(
            "Streaming and batch inputs cannot be used in one flow",
            code="STREAM_INPUTS_MIXED",
            got=f"streaming: {', '.join(sorted(streaming))}; batch: {', '.join(still)}",
            why="A table has no event time that advances with the stream",
            do="Join a table by Spark's own join: stream.transform(lambda df: df.join(table, …))",
        )
    return bool(streaming)


def same_time_type(left: T.DataType, right: T.DataType) -> None:
    if left != right:
        raise FlowError(
            "The time columns of the two streams have different types",
            code="JOIN_TIME_TYPES_DIFFER",
            got=f"{left.simpleString()} and {right.simpleString()}",
            why="Times with and without a time zone cannot be compared",
            do="Convert one of the columns before tg.stream, for example with to_timestamp_ltz",
        )


def joins_by_content(layouts: Sequence[JoinLayout], shed: Shed) -> tuple[str, ...]:
    """Names of the joins that may use content-aware probes: joins of sets without a key.

    There the items of a row show before a comparison whether it can match. (A probe for equal keys costs only
    what it finds.) Not with repair, because the skipped pairs are not recorded, and not with a utility,
    because items say nothing about it.
    """
    if shed.join != "auto" or shed.repair is not None or shed.utility is not None:
        return ()
    return tuple(
        one.operator
        for one in layouts
        if one.spread and one.condition is not None and one.condition.holds_sets and one.within.slot_us(LEFT)
    )
