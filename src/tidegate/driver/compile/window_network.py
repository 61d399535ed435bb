"""A compiled flow as a network of streams, operators and outputs, for those who decide about windows.

Boxes are left out: they change no times. A match stands for a stream of its own: its rows are sifted, not
dropped by window.
"""

from __future__ import annotations

from tidegate.api.nodes import Join, Node, Output, Refused, Source, Window
from tidegate.driver.compile.compiled import Compiled, CompiledJoin, CompiledOperator, CompiledWindow
from tidegate.driver.compile.ports import boxes_of
from tidegate.errors import FlowError, explain
from tidegate.join.within import Tumbling, Within
from tidegate.quantities import duration_us
from tidegate.window.drop import nodes
from tidegate.window.drop.network import Network
from tidegate.window.drop.window_drop import gap_in_windows
from tidegate.window.spec import SIZE_MAX_US, RowsSpec

#: Outputs may have the names of streams or operators.
_OUTPUT = "output "


def output_name(name: str) -> str:
    """The name of an output in the network."""
    return _OUTPUT + name


def plain_name(name: str) -> str:
    """The name that the user knows an output by."""
    return name.removeprefix(_OUTPUT)


def network_of(compiled: Compiled) -> Network:
    """Every stream, operator and output, and which way rows go."""
    streams = [nodes.Source(name) for name in compiled.sources]
    operators = [_operator(compiled, operator) for operator in compiled.operators]
    outputs = [
        nodes.Output(output_name(output.name), feeding(compiled, output.node), _gap(compiled, output))
        for output in compiled.outputs
    ]
    return Network((*streams, *operators, *outputs))


def _operator(compiled: Compiled, operator: CompiledOperator) -> nodes.Node:
    name = operator.layout.operator
    if isinstance(operator, CompiledJoin):
        left, right = (feeding(compiled, side) for side in (operator.node.left, operator.node.right))
        back, ahead = _reaches(operator.node)
        return nodes.Join(name, left, right, back, ahead, inner=operator.node.how == "inner")
    if isinstance(operator, CompiledWindow):
        return nodes.Window(
            name, feeding(compiled, operator.node.parent), operator.node.spec, operator.node.by
        )
    return nodes.Source(name)


def _reaches(join: Join) -> tuple[int, int]:
    """How far apart the times of a pair may be."""
    if isinstance(join.within, Within):
        return join.within.left_us, join.within.right_us
    if isinstance(join.within, Tumbling):
        return join.within.size_us, join.within.size_us
    return SIZE_MAX_US, SIZE_MAX_US


def feeding(compiled: Compiled, node: Node) -> str:
    """The stream or operator that the rows of a node come from."""
    base, _ = boxes_of(node)
    if isinstance(base, Source):
        return base.name
    if isinstance(base, Refused):
        return base.parent.name
    return compiled.operator_of(base).layout.operator  # type: ignore[arg-type]


def _gap(compiled: Compiled, output: Output) -> int | None:
    """The longest gap of an output, in windows."""
    if output.max_gap is None:
        return None
    base, _ = boxes_of(output.node)
    if not isinstance(base, Window):
        raise FlowError(
            explain(
                f"Output {output.name!r} has a max_gap but no windows",
                got=f"max_gap={output.max_gap!r} on what comes from {feeding(compiled, output.node)}",
                why="It says how many results of a window aggregate may be missing in a row",
                do="Leave it out: joins and matches lose rows here and there, never whole windows",
            )
        )
    if isinstance(base.spec, RowsSpec):
        raise FlowError(
            explain(
                f"Output {output.name!r} has a max_gap, and windows of rows",
                got=f"max_gap={output.max_gap!r} on windows of {base.spec.size} rows",
                why="Without the rows of a dropped window all that follow would hold other rows, so none "
                "could go and nothing would be saved",
                do="Leave it out, or aggregate by time: window('1 minute') in place of tg.rows(…)",
            )
        )
    if base.approximate:
        raise FlowError(
            explain(
                f"Output {output.name!r} has a max_gap, and its windows are approximate",
                got=f"max_gap={output.max_gap!r}",
                why="When time is short, such windows lose rows and come all the same: none will be missing",
                do="Leave out max_gap, or approximate=True",
            )
        )
    if isinstance(output.max_gap, int):
        return output.max_gap
    return gap_in_windows(duration_us(output.max_gap, "max_gap"), base.spec.slide_us)
