"""Checks of a described flow that need nothing but the flow: made before anything is compiled.

Which columns of joined rows anybody asks for: no others are made.

A pair costs what its columns cost: gathering and writing two arrays takes several times as long as two
numbers, and longer than the comparisons that found it. So where all who read a join begin with a select of
columns by name, its tasks make only those, in the order of the select if there is only one. What is stored
stays as it is: another run on the checkpoint may select others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import types as T

from tidegate.api.goal import Shed
from tidegate.api.join_conditions import OnSets
from tidegate.api.nodes import Box, Join, Match, Node, Output, Source, Window
from tidegate.driver.compile import ports
from tidegate.errors import FlowError
from tidegate.model.times import LEFT
from tidegate.worker.runtime.layout import JoinLayout


def selected(outputs: Sequence[Output], join: Join) -> tuple[str, ...] | None:
    """The columns of a join that its readers select; None: all of them, or nobody knows."""
    if join.where is not None:
        return None
    names: dict[str, None] = {}
    for reader in _readers(outputs, join):
        if not isinstance(reader, Box) or reader.columns is None:
            return None
        names |= dict.fromkeys(reader.columns)
    return tuple(names) or None


def _readers(outputs: Sequence[Output], join: Join) -> Iterator[Output | Node]:
    """Who takes the rows of a join; the same one may come several times."""
    waiting: list[Output | Node] = list(outputs)
    while waiting:
        reader = waiting.pop()
        parents = _parents(reader)
        waiting += parents
        if any(parent is join for parent in parents):
            yield reader


def _parents(reader: Output | Node) -> list[Node]:
    if isinstance(reader, Output):
        return [reader.node]
    if isinstance(reader, Join):
        return [reader.left, reader.right]
    return [reader.parent] if isinstance(reader, Box | Match | Window) else []


def check_outputs(outputs: Sequence[Output]) -> None:
    if not outputs:
        raise FlowError("A query needs an output", do="Pass at least one stream.write_to(…)")
    for output in outputs:
        if not isinstance(output, Output):
            raise FlowError(
                "tg.start takes outputs", got=type(output).__name__, do="Call .write_to(…) on the stream"
            )
    names = [output.name for output in outputs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FlowError("Two outputs have the same name", got=", ".join(twice), do="Give each its own name=…")
    paths = [output.path.rstrip("/") for output in outputs if output.path is not None]
    shared = sorted({path for path in paths if paths.count(path) > 1})
    if shared:
        raise FlowError(
            "Two outputs write to the same path",
            got=", ".join(shared),
            why="Files of a batch replace what lies in its directory, so one of them would be lost",
            do="Give each a directory of its own",
        )


def sources_of(outputs: Sequence[Output]) -> list[Source]:
    found: dict[int, Source] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Source):
            found.setdefault(id(node), node)
        elif isinstance(node, Join):
            visit(node.left)
            visit(node.right)
        else:
            visit(node.parent)

    for output in outputs:
        visit(output.node)
    names = [source.name for source in found.values()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FlowError("Two streams have the same name", got=", ".join(twice), do="Give each its own name=…")
    return list(found.values())


def outputs_behind(outputs: Sequence[Output], node: Node) -> list[str]:
    """Names of the outputs that a node contributes to."""

    def reaches(start: Node) -> bool:
        if start is node or isinstance(start, Source):
            return start is node
        if isinstance(start, Join):
            return reaches(start.left) or reaches(start.right)
        return reaches(start.parent)

    return sorted(output.name for output in outputs if reaches(output.node))


def alike(described: Mapping[str, Any]) -> list[str]:
    """Names of operators whose descriptions are those of others, too."""
    texts = {name: json.dumps(one, sort_keys=True) for name, one in described.items()}
    counts = Counter(texts.values())
    return [name for name, text in texts.items() if counts[text] > 1]


def all_streaming_or_none(sources: Sequence[Source]) -> bool:
    streaming = {source.name for source in sources if source.frame.isStreaming}
    if streaming and len(streaming) < len(sources):
        still = sorted({source.name for source in sources} - streaming)
        raise FlowError(
            "Streaming and batch inputs cannot be joined here",
            got=f"streaming: {', '.join(sorted(streaming))}; batch: {', '.join(still)}",
            why="A table has no event time to move with the stream",
            do="Join a table with Spark's own join: stream.transform(lambda df: df.join(table, …))",
        )
    return bool(streaming)


def same_time_type(left: T.DataType, right: T.DataType) -> None:
    if left != right:
        raise FlowError(
            "The two streams keep time differently",
            got=f"{left.simpleString()} and {right.simpleString()}",
            why="Local and absolute times are only comparable with a time zone in mind",
            do="Convert one of the columns before tg.stream",
        )


#: Joins for which fewer input rows mean fewer, still correct, output rows.
MAY_LOSE = ("inner", "left_semi")


def joins_that_may_skip(outputs: Sequence[Output]) -> set[int]:
    """Joins that may leave out results: a lonely row must never come out for want of a partner."""
    may_skip: dict[int, bool] = {}

    def visit(node: Node, below: bool) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, Join):
            allowed = below and base.how in MAY_LOSE
            may_skip[id(base)] = may_skip.get(id(base), True) and allowed
            visit(base.left, allowed)
            visit(base.right, allowed)
        elif isinstance(base, Match):
            visit(base.parent, below)
        elif isinstance(base, Window):
            # A window of fewer rows would be wrong, not missing.
            visit(base.parent, False)

    for output in outputs:
        visit(output.node, True)
    return {join for join, allowed in may_skip.items() if allowed}


def joins_by_content(layouts: Sequence[JoinLayout], shed: Shed) -> tuple[str, ...]:
    """Names of the joins whose rows may choose what they look at by what they carry.

    Sets without a key may: there a comparison can find nothing, and items tell before it is made. (What a
    probe for equal keys costs is what it finds.) What was not looked at cannot be named later, so nothing
    could be repaired; and what pairs are worth to the user, sets do not say.
    """
    if shed.join != "auto" or shed.repair is not None or shed.utility is not None:
        return ()
    return tuple(
        one.operator
        for one in layouts
        if one.spread and isinstance(one.condition, OnSets) and one.within.slot_us(LEFT)
    )


def joins_that_may_repair(outputs: Sequence[Output]) -> set[int]:
    """Joins whose left out results may come later: nothing behind them minds how old a row is.

    A join or a window behind them would take such rows for late ones. A left semi join with a condition that
    only Spark can judge emits its rows in a second step, which does not know what batch they belong to.
    """
    may_skip = joins_that_may_skip(outputs)
    straight: dict[int, bool] = {}

    def visit(node: Node, to_an_output: bool) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, Join):
            judged_later = base.how == "left_semi" and base.where is not None
            straight[id(base)] = straight.get(id(base), True) and to_an_output and not judged_later
            visit(base.left, False)
            visit(base.right, False)
        elif isinstance(base, Match):
            visit(base.parent, to_an_output)
        elif isinstance(base, Window):
            visit(base.parent, False)

    for output in outputs:
        visit(output.node, True)
    return {join for join, allowed in straight.items() if allowed and join in may_skip}


def matches_that_may_sift(outputs: Sequence[Output]) -> set[int]:
    """Matches of a source whose rows may be dropped: nothing behind shows a lonely row for want of them."""
    may_sift: dict[int, bool] = {}

    def visit(node: Node, below: bool) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, Join):
            allowed = below and base.how in MAY_LOSE
            visit(base.left, allowed)
            visit(base.right, allowed)
        elif isinstance(base, Match):
            from_source = isinstance(ports.boxes_of(base.parent)[0], Source)
            may_sift[id(base)] = may_sift.get(id(base), from_source) and below
            visit(base.parent, below)
        elif isinstance(base, Window):
            visit(base.parent, False)

    for output in outputs:
        visit(output.node, True)
    return {match for match, allowed in may_sift.items() if allowed}


def check_estimates(outputs: Sequence[Output]) -> None:
    """What is estimated goes to outputs, past no operator that computes with it."""

    def visit(node: Node, taken_by: str | None) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, Window) and base.approximate and taken_by is not None:
            raise FlowError(
                f"A {taken_by} takes the results of an approximate window",
                why="An estimate of estimates has no valid interval, and groups that were not seen would "
                "be missing",
                do="Write the results out, or leave out approximate=True: exact windows may feed others",
            )
        if isinstance(base, Join):
            visit(base.left, "join")
            visit(base.right, "join")
        elif isinstance(base, Match):
            visit(base.parent, taken_by)
        elif isinstance(base, Window):
            visit(base.parent, "window")

    for output in outputs:
        visit(output.node, None)


def operators_whose_time_counts(outputs: Sequence[Output]) -> set[int]:
    """Operators whose rows need their event time, because a join or a window takes them."""
    feeding: set[int] = set()

    def visit(node: Node, below_a_join: bool) -> None:
        base, _ = ports.boxes_of(node)
        if isinstance(base, (Join, Match, Window)) and below_a_join:
            feeding.add(id(base))
        if isinstance(base, Join):
            visit(base.left, True)
            visit(base.right, True)
        elif isinstance(base, Match):
            visit(base.parent, below_a_join)
        elif isinstance(base, Window):
            visit(base.parent, True)

    for output in outputs:
        visit(output.node, False)
    return feeding
