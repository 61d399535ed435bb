"""The lineage of a compiled flow, for planning, receipts and window drop.

The window drop network leaves out stateless steps, which change no times. A match is a source there, because
its rows are sifted, not dropped by window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from pyspark.sql import DataFrame

from tidegate.api.nodes import Node, Output, Refused, StatelessStep, Window
from tidegate.api.streams import HIDDEN
from tidegate.driver.compile.column_pruning import inner_nodes
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.compile.ports import may_drop, steps_of
from tidegate.driver.frames.drop_frames import output_name
from tidegate.errors import FlowError
from tidegate.model.graph import PAIRS, LateRule, Lineage, OperatorTraits, Outlet
from tidegate.quantities import duration_us
from tidegate.window.drop import network
from tidegate.window.drop.network import Network, groups_text
from tidegate.window.drop.window_drop import gap_in_windows
from tidegate.window.spec import RowsSpec, WindowSpec

#: Spark's numbers of columns, and columns of ours.
_NUMBERED = re.compile(rf"#\d+L?|{HIDDEN}\w+(#\d+L?)?(, )?")
_TEXT_MAX = 100_000
#: Ends the text of steps with Python functions that have no version.
UNVERSIONED = "functions without a version"


def steps_text(frame: DataFrame, steps: Sequence[StatelessStep], below: Sequence[DataFrame]) -> str:
    """What a frame with these steps computes, as Spark reads it, and the versions of functions.

    `below`: the frame that the user gave, and what the engine makes of it in front of the steps. The same in
    every run whose steps mean the same: it lacks sources, watermarks, and numbers of columns.
    """
    lines = _lines(frame)
    given, made = below or (None, None)
    for line in [] if made is None else _lines(made):
        if line in lines:
            lines.remove(line)
    versions = [f"version {step.version}" for step in steps if step.version is not None]
    java = frame.sparkSession._jvm
    if java is not None and not versions:
        python = java.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
        plan = frame._jdf.queryExecution().analyzed()
        versions += [UNVERSIONED] if plan.containsPattern(python) else []
    return "\n".join([*lines, *([] if given is None else _lines(given)), *versions])


def _lines(frame: DataFrame) -> list[str]:
    nodes = inner_nodes(frame._jdf.queryExecution().analyzed())
    return [
        _NUMBERED.sub("", node.simpleString(_TEXT_MAX))
        for node in nodes
        if node.nodeName() != "EventTimeWatermark"
    ]


def network_of(compiled: Compiled) -> Network:
    """The window drop network: every stream, operator and output, and the arrows between them."""
    streams = [network.DropSourceNode(name) for name in compiled.sources]
    operators = _with_common_groups(
        one.drop_node(compiled.graph.inputs[one.name]) for one in compiled.operators
    )
    outputs = [
        network.DropOutputNode(
            output_name(output.name), compiled.feeding(output.node), _gap(compiled, output)
        )
        for output in compiled.outputs
    ]
    return Network((*streams, *operators, *outputs))


def _with_common_groups(nodes: Iterable[network.Node]) -> Iterator[network.Node]:
    """The same nodes; windows of windows with the same groups have those of the windows in front."""
    known: dict[str, network.DropWindowNode] = {}
    for node in nodes:
        if isinstance(node, network.DropWindowNode):
            front = known.get(node.parent)
            if front is not None and front.groups and node.groups == groups_text(front.by, front.name):
                node = replace(node, groups=front.groups)
            known[node.name] = node
        yield node


def _gap(compiled: Compiled, output: Output) -> int | None:
    """The longest gap of an output, in windows."""
    if output.max_gap is None:
        return None
    shown = compiled.shown_by(output)
    base = None if shown is None else shown.node
    if not isinstance(base, Window):
        raise FlowError(
            f"Output {output.name!r} has max_gap but writes no windows",
            code="OUTPUT_MAX_GAP_UNSUPPORTED",
            got=f"max_gap={output.max_gap!r} on results of {compiled.feeding(output.node)}",
            why="max_gap limits how many consecutive windows may be missing",
            do="Leave out max_gap, and limit losses of joins and matches with max_loss",
        )
    if base.spec.counts_rows:
        raise FlowError(
            f"Output {output.name!r} has max_gap on row windows",
            code="OUTPUT_MAX_GAP_UNSUPPORTED",
            got=f"max_gap={output.max_gap!r} on windows of {cast(RowsSpec, base.spec).size} rows",
            why="Dropping the rows of one row window would change all later ones",
            do="Leave out max_gap, or use time windows: window('1 minute') in place of tg.row_window(…)",
        )
    if base.approximate:
        raise FlowError(
            f"Output {output.name!r} has max_gap on approximate windows",
            code="OUTPUT_MAX_GAP_UNSUPPORTED",
            got=f"max_gap={output.max_gap!r}",
            why="Under load, approximate windows are estimated from fewer rows and never dropped",
            do="Leave out max_gap or approximate=True",
        )
    if isinstance(output.max_gap, int):
        return output.max_gap
    return gap_in_windows(duration_us(output.max_gap, "max_gap"), cast(WindowSpec, base.spec).slide_us)


def traits_of(compiled: Compiled, rule: LateRule = "slowest") -> dict[str, OperatorTraits]:
    """All operators with state, by name; `rule`: whose watermark judges their rows."""
    graph = compiled.graph
    found = {
        one.name: one.traits([graph.time_from(name) for name in graph.inputs[one.name]])
        for one in compiled.operators
    }
    unions = graph.unions
    return {
        name: replace(
            traits,
            unions={one: unions[one] for one in traits.inputs if one in unions},
            group=() if rule == "own" else graph.group_of(name),
            rule=rule,
        )
        for name, traits in found.items()
        if traits is not None
    }


def lineage_of(compiled: Compiled, operators: Mapping[str, OperatorTraits]) -> Lineage:
    """The lineage that receipts are computed from; made once, when a query starts."""
    skip = compiled.graph.may_lose(PAIRS)
    return Lineage(
        streams=tuple(compiled.sources),
        readers=tuple(
            reader
            for one in compiled.operators
            for reader in one.readers(
                [_source(compiled, node) for node in one.node.inputs],
                one.name not in skip,
            )
        ),
        outputs=tuple(_outlet(compiled, output) for output in compiled.outputs),
        operators=operators,
        pairing=frozenset(join.name for join in compiled.joins if join.node.how == "inner"),
    )


def emits_every_row(compiled: Compiled, node: Node) -> bool:
    """Whether an output of this node writes exactly the rows that its operator or stream emitted."""
    base, steps = steps_of(node)
    operator = compiled.operator_of(base)
    return (operator is None or operator.is_plain) and not may_drop(steps)


def _source(compiled: Compiled, node: Node) -> tuple[str, bool]:
    """The origin of the rows of a node, and whether no stateless step lies between."""
    return compiled.feeding(node), not steps_of(node)[1]


def _outlet(compiled: Compiled, output: Output) -> Outlet:
    base, _ = steps_of(output.node)
    takes = base.kind if isinstance(base, Refused) else "rows"
    return Outlet(output.name, compiled.feeding(output.node), takes, emits_every_row(compiled, output.node))
