"""Which streams are counted by tasks and which by Spark; likewise for rejecting times too far ahead. And
which are kept in a batch.

Counting in tasks is free, but needs an operator that reads all rows of the stream: no stateless step in front
may drop rows, no sifter, and no union stands between. All other streams are *observed*: Spark counts their
rows in front of all steps. Times too far ahead are checked by tasks where possible, at no cost.
"""

from __future__ import annotations

from collections import Counter

from tidegate.api.nodes import Node, Source
from tidegate.driver.compile import ports
from tidegate.driver.compile.compiled import Compiled
from tidegate.driver.frames.query_input import is_cheap
from tidegate.model.graph import ROWS


def observed_streams(compiled: Compiled, sifts: bool) -> set[str]:
    """Streams that no operator reads in full; `sifts`: rows may be dropped in front of matches."""
    seen_whole: set[str] = set()
    dropped: set[str] = set()
    for operator in compiled.operators:
        if not operator.reports:
            dropped.update(stream for stream in operator.streams if stream is not None)
            continue
        sifted = sifts and operator.node.sheds == ROWS
        for node in operator.node.inputs:
            base, steps = ports.steps_of(node)
            if isinstance(base, Source):
                (dropped if ports.may_drop(steps) or sifted else seen_whole).add(base.name)
    return set(compiled.sources) - (seen_whole - dropped)


def judged_by_spark(compiled: Compiled) -> set[str]:
    """Observed streams whose times Spark must check, because their tasks do not."""
    operators = compiled.operators
    by_tasks = {stream for one in operators if one.judges_observed for stream in one.streams}
    by_tasks -= {stream for one in operators if one.needs_judged for stream in one.streams}
    return compiled.observed - by_tasks


def _tapped(compiled: Compiled) -> set[str]:
    """Streams with rows that go straight to an output."""
    bases: list[Node] = [ports.steps_of(output.node)[0] for output in compiled.outputs]
    straight = [base for base in bases if compiled.operator_of(base) is None]
    return {compiled.feeding(base) for base in straight}


def shared_streams(compiled: Compiled) -> set[str]:
    """Streams whose rows are kept in a batch.

    Outputs may be written more than once, unless the action writes them; unions are counted besides, and a
    frame that Spark must run itself may run only once. Otherwise rows are kept for several readers, unless it
    is cheaper to read them twice.
    """
    readers = Counter(stream for entry in compiled.entries for stream in entry.streams)
    united = {stream for one in compiled.unions for stream in one.streams if stream is not None}
    read_twice = {stream for stream, number in readers.items() if number > 1}
    if compiled.streaming:
        read_twice = {name for name in read_twice if not is_cheap(compiled.sources[name].frame)}
    tapped = _tapped(compiled) if compiled.direct_tap is None else set()
    return tapped | united | read_twice
