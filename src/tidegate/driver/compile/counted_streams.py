"""Who counts the rows of a stream, and who finds times that are too far ahead: tasks, or Spark before them.

Tasks do it at no cost, where one sees all rows of a stream: behind boxes that drop none, and no sifter. The
others are *observed*: Spark counts their rows in front of all boxes. Times too far ahead are best judged by
tasks, too, by the clock of the plan; Spark's own clock is part of the code that it compiles for each batch.
"""

from __future__ import annotations

from tidegate.api.nodes import Node, Refused, Source
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import Compiled


def observed_streams(compiled: Compiled, sifts: bool) -> set[str]:
    """Streams that no operator sees in full; `sifts`: rows may be dropped in front of matches."""
    readers: list[tuple[Node, bool]] = [(side.node, False) for join in compiled.joins for side in join.inputs]
    readers += [(window.node.parent, False) for window in compiled.windows]
    readers += [(match.node.parent, sifts) for match in compiled.matches]
    seen_whole: set[str] = set()
    dropped: set[str] = set()
    for node, sifted in readers:
        base, boxes = ports.boxes_of(node)
        if isinstance(base, Source):
            (dropped if ports.may_drop(boxes) or sifted else seen_whole).add(base.name)
    return set(compiled.sources) - (seen_whole - dropped)


def judged_by_spark(compiled: Compiled) -> set[str]:
    """Streams whose times Spark must judge: observed ones whose tasks do not, and all that are tapped."""
    return (compiled.observed - _judged_by_matches(compiled)) | _tapped(compiled)


def _judged_by_matches(compiled: Compiled) -> set[str]:
    """Streams that matches read, and no join: their tasks find times too far ahead, as those of joins do."""
    joined = {side.port.stream for join in compiled.joins for side in join.inputs}
    return {match.tap.stream for match in compiled.matches if match.tap is not None} - joined


def _tapped(compiled: Compiled) -> set[str]:
    """Streams with rows that go straight to an output."""
    bases = [ports.boxes_of(output.node)[0] for output in compiled.outputs]
    sources = [base.parent if isinstance(base, Refused) else base for base in bases]
    return {source.name for source in sources if isinstance(source, Source)}
