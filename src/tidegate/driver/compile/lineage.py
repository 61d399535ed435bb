"""The ways of rows through a compiled flow, for its receipts: who reads what, and what is written.

Joins and windows of a compiled flow, as planning knows them.

A compiled flow as a network of streams, operators and outputs, for those who decide about windows.

Boxes are left out: they change no times. A match stands for a stream of its own: its rows are sifted, not
dropped by window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from tidegate.api.nodes import Join, Match, Node, Output, Refused, Source, Window
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.receipts.ledger import RANDOM_DROP, SAMPLING, SIFTER, WINDOW_DROP
from tidegate.driver.compile.compiled import (
    Compiled,
    CompiledJoin,
    CompiledMatch,
    CompiledOperator,
    CompiledWindow,
)
from tidegate.driver.compile.ports import boxes_of, may_drop
from tidegate.errors import FlowError
from tidegate.join.within import Tumbling, Within
from tidegate.model.graph import Operator, Outlet, Reader, Ways
from tidegate.quantities import duration_us
from tidegate.window.drop import network
from tidegate.window.drop.network import Network
from tidegate.window.drop.window_drop import gap_in_windows
from tidegate.window.lifetime import Lifetime, RowsLifetime
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
    streams = [network.DropSourceNode(name) for name in compiled.sources]
    operators = [_operator(compiled, operator) for operator in compiled.operators]
    outputs = [
        network.DropOutputNode(
            output_name(output.name), feeding(compiled, output.node), _gap(compiled, output)
        )
        for output in compiled.outputs
    ]
    return Network((*streams, *operators, *outputs))


def _operator(compiled: Compiled, operator: CompiledOperator) -> network.Node:
    name = operator.layout.operator
    if isinstance(operator, CompiledJoin):
        left, right = (feeding(compiled, side) for side in (operator.node.left, operator.node.right))
        back, ahead = _reaches(operator.node)
        return network.DropJoinNode(name, left, right, back, ahead, inner=operator.node.how == "inner")
    if isinstance(operator, CompiledWindow):
        return network.DropWindowNode(
            name, feeding(compiled, operator.node.parent), operator.node.spec, operator.node.by
        )
    return network.DropSourceNode(name)


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
            f"Output {output.name!r} has a max_gap but no windows",
            got=f"max_gap={output.max_gap!r} on what comes from {feeding(compiled, output.node)}",
            why="It says how many results of a window aggregate may be missing in a row",
            do="Leave it out: joins and matches lose rows here and there, never whole windows",
        )
    if isinstance(base.spec, RowsSpec):
        raise FlowError(
            f"Output {output.name!r} has a max_gap, and windows of rows",
            got=f"max_gap={output.max_gap!r} on windows of {base.spec.size} rows",
            why="Without the rows of a dropped window all that follow would hold other rows, so none "
            "could go and nothing would be saved",
            do="Leave it out, or aggregate by time: window('1 minute') in place of tg.rows(…)",
        )
    if base.approximate:
        raise FlowError(
            f"Output {output.name!r} has a max_gap, and its windows are approximate",
            got=f"max_gap={output.max_gap!r}",
            why="When time is short, such windows lose rows and come all the same: none will be missing",
            do="Leave out max_gap, or approximate=True",
        )
    if isinstance(output.max_gap, int):
        return output.max_gap
    return gap_in_windows(duration_us(output.max_gap, "max_gap"), base.spec.slide_us)


def operators_of(compiled: Compiled) -> dict[str, Operator]:
    """All operators with state, by name."""
    return {
        **{join.layout.operator: _join(compiled, join) for join in compiled.joins},
        **{window.layout.operator: _window(compiled, window) for window in compiled.windows},
    }


def _join(compiled: Compiled, join: CompiledJoin) -> Operator:
    left, right = (_feeding(compiled, side.node) for side in join.inputs)
    layout = join.layout
    return Operator(layout.operator, (left, right), layout.within, layout.tracked, layout.preserved)


def _window(compiled: Compiled, window: CompiledWindow) -> Operator:
    # Windows wait in the state, and time sets them free, as it does lonely rows. There is no other side.
    name = _feeding(compiled, window.node.parent)
    spec = window.layout.spec
    lifetime = RowsLifetime() if isinstance(spec, RowsSpec) else Lifetime(spec)
    return Operator(window.layout.operator, (name, name), lifetime, (True, False), (True, False))


def _feeding(compiled: Compiled, node: Node) -> str:
    """The stream or operator that gives a node its time; a match passes rows on in the batch they came in."""
    base, _ = boxes_of(node)
    while isinstance(base, Match):
        base, _ = boxes_of(base.parent)
    if isinstance(base, Source):
        return base.name
    return compiled.operator_of(cast(Join | Window, base)).layout.operator


def ways_of(
    compiled: Compiled, operators: Mapping[str, Operator], dropping: DropSettings | None = None
) -> Ways:
    """Made once, when a query starts."""
    return Ways(
        streams=tuple(compiled.sources),
        readers=tuple(reader for one in compiled.operators for reader in _readers(compiled, one, dropping)),
        outputs=tuple(_outlet(compiled, output) for output in compiled.outputs),
        operators=operators,
        pairing=frozenset(join.layout.operator for join in compiled.joins if join.node.how == "inner"),
    )


def emits_every_row(node: Node) -> bool:
    """Does an output of this node write just the rows that its operator, or its stream, gave out?"""
    base, boxes = boxes_of(node)
    # The condition of an inner join is a filter behind it.
    filtered = isinstance(base, Join) and base.where is not None and base.how == "inner"
    return not filtered and not may_drop(boxes)


def _readers(
    compiled: Compiled, operator: CompiledOperator, dropping: DropSettings | None
) -> Iterator[Reader]:
    name = operator.layout.operator
    if isinstance(operator, CompiledJoin):
        for side, node in enumerate((operator.node.left, operator.node.right)):
            source, whole = _source(compiled, node)
            keyless = operator.layout.preserved[side]
            # A join below windows that may be dropped never skips work itself.
            below = dropping is not None and dropping.reached(name)
            reason = WINDOW_DROP if below else RANDOM_DROP
            yield Reader(name, side, source, reason, whole, keyless, joins=True)
        return
    source, whole = _source(compiled, operator.node.parent)
    yield Reader(name, 0, source, _reason(operator), whole)


def _reason(operator: CompiledMatch | CompiledWindow) -> str:
    """Why rows may be dropped in front of it. Windows that are missing now and then are never approximate."""
    if isinstance(operator, CompiledMatch):
        return SIFTER
    return SAMPLING if operator.layout.approximate else WINDOW_DROP


def _source(compiled: Compiled, node: Node) -> tuple[str, bool]:
    """Where the rows of a node come from, and whether they come without a box in between."""
    base, boxes = boxes_of(node)
    if isinstance(base, Source):
        return base.name, not boxes
    return compiled.operator_of(cast(Join | Match | Window, base)).layout.operator, not boxes


def _outlet(compiled: Compiled, output: Output) -> Outlet:
    base, _ = boxes_of(output.node)
    plain = emits_every_row(output.node)
    if isinstance(base, Refused):
        return Outlet(output.name, base.parent.name, base.kind, plain)
    return Outlet(output.name, _source(compiled, output.node)[0], plain=plain)
