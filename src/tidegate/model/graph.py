"""The flow as checks, planning and receipts see it: names and traits, without operator kinds or Spark.

FlowGraph        what reads what, and what each operator may lose, repair or estimate
OperatorTraits   what planning knows of an operator with state
Lineage          which reader takes which rows, and what each output writes, for the receipts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from tidegate.model.times import SIDES

if TYPE_CHECKING:
    from tidegate.join.within import Tumbling, Unbounded, Within
    from tidegate.window.lifetime import Lifetime, RowsLifetime

V = TypeVar("V")

#: By whose watermark the rows of an operator are late: the slowest of its group, the fastest, or each
#: stream by its own.
LateRule = Literal["slowest", "fastest", "own"]
#: What an operator sheds: pairs that it does not probe, rows in front of it, whole windows.
PAIRS, ROWS, WINDOWS = "pairs", "rows", "windows"


@dataclass(frozen=True)
class FlowTraits:
    """Properties of an operator that the flow checks use."""

    #: For messages: "A join takes the results of an approximate window".
    label: str
    #: Fewer input rows mean fewer, still correct, output rows.
    fewer_in_fewer_out: bool = False
    #: Rows leave in the batch in which they arrived, with their event time unchanged.
    passes_through: bool = False
    #: Results are estimates: an operator that computes with them has no valid interval.
    estimates: bool = False
    #: Results that were skipped may come in a later batch.
    repairable: bool = False
    sheds: str | None = None


@dataclass(frozen=True)
class FlowNames:
    """The names of a flow. Those of streams and operators differ; an output may be named like one of them."""

    #: In the order of Spark's offset log, which knows them by their position alone.
    streams: tuple[str, ...]
    #: Also those without state.
    operators: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.streams, *self.operators)


@dataclass(frozen=True)
class FlowGraph:
    """Streams, operators and outputs of a flow by name, and what reads what."""

    streams: tuple[str, ...]
    #: In the order in which their inputs are complete.
    operators: Mapping[str, FlowTraits]
    #: By operator: the streams and operators that it reads.
    inputs: Mapping[str, tuple[str, ...]]
    #: By output: the stream or operator that it shows.
    outputs: Mapping[str, str]

    def may_lose(self, sheds: str) -> frozenset[str]:
        """Operators that may skip results: every output stays correct, with fewer rows."""
        allowed = self._against_the_flow(True, lambda traits, below: below and traits.fewer_in_fewer_out)
        return frozenset(
            name
            for name, traits in self.operators.items()
            if traits.sheds == sheds and traits.fewer_in_fewer_out and all(allowed[name])
        )

    def may_sift(self) -> frozenset[str]:
        """Operators in front of which rows of a source may be dropped."""
        return frozenset(n for n in self.may_lose(ROWS) if set(self.inputs[n]) <= set(self.streams))

    def may_repair(self) -> frozenset[str]:
        """Operators whose skipped results may come later: nothing downstream depends on the age of a row.

        A downstream join or window would treat such rows as late.
        """
        straight = self._against_the_flow(True, lambda traits, below: below and traits.passes_through)
        return frozenset(
            name for name in self.may_lose(PAIRS) if self.operators[name].repairable and all(straight[name])
        )

    def needs_time(self) -> frozenset[str]:
        """Operators whose rows need their event time, because a downstream operator uses it."""
        behind = self._against_the_flow(False, lambda traits, below: below or not traits.passes_through)
        return frozenset(name for name, below in behind.items() if any(below))

    def reader_of_estimates(self) -> str | None:
        """The label of an operator that computes with estimates of another; None: there is none."""
        none: str | None = None
        behind = self._against_the_flow(
            none, lambda traits, below: below if traits.passes_through else traits.label
        )
        for name, traits in self.operators.items():
            labels = [label for label in behind[name] if label is not None]
            if traits.estimates and labels:
                return labels[0]
        return None

    def outputs_of(self, name: str) -> list[str]:
        """Names of the outputs that a stream or operator contributes to."""
        return sorted(output for output, shown in self.outputs.items() if self._reaches(shown, name))

    def group_of(self, name: str) -> tuple[str, ...]:
        """The streams that meet in an operator or in one behind it: those of all outputs that it reaches."""
        mine = set(self.outputs_of(name))
        return tuple(stream for stream in self.streams if not mine.isdisjoint(self.outputs_of(stream)))

    def time_from(self, name: str) -> str:
        """The stream, union or other operator that gives the rows of a stream or operator their time."""
        while name in self.operators and self.operators[name].passes_through and name not in self.unions:
            name = self.inputs[name][0]
        return name

    @property
    def names(self) -> FlowNames:
        return FlowNames(self.streams, tuple(self.operators), tuple(self.outputs))

    @property
    def unions(self) -> dict[str, tuple[str, ...]]:
        """Operators that pass on the rows of several streams, and these streams."""
        passing = [name for name, traits in self.operators.items() if traits.passes_through]
        return {name: self.inputs[name] for name in passing if len(self.inputs[name]) > 1}

    def _reaches(self, start: str, name: str) -> bool:
        return start == name or any(self._reaches(one, name) for one in self.inputs.get(start, ()))

    def _against_the_flow(self, at_output: V, through: Callable[[FlowTraits, V], V]) -> dict[str, list[V]]:
        """By operator: a value for each path from it to an output, carried from the output back to it."""
        found: dict[str, list[V]] = {name: [] for name in self.operators}

        def visit(name: str, value: V) -> None:
            if name in self.operators:
                found[name].append(value)
                for one in self.inputs[name]:
                    visit(one, through(self.operators[name], value))

        for shown in self.outputs.values():
            visit(shown, at_output)
        return found


@dataclass(frozen=True)
class OperatorTraits:
    """What planning needs to know of an operator with state; a window is a join with one side."""

    name: str
    #: Names of the streams or operators that give it time, left and right.
    inputs: tuple[str, str]
    #: How long stored rows are needed.
    within: Within | Tumbling | Unbounded | Lifetime | RowsLifetime
    #: Per side: whether its rows wait in the state before they are emitted on their own.
    waiting: tuple[bool, bool]
    #: Per side: whether the watermark emits them. (Rows of a semi join wait for a match instead.)
    unmatched: tuple[bool, bool]
    #: By union among its inputs: the streams whose rows it passes on.
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The streams by whose watermarks it is judged; none: those that it reads.
    group: tuple[str, ...] = ()
    rule: LateRule = "slowest"

    @property
    def waits_for_rows(self) -> bool:
        """Stored rows wait for other rows, not for time: the oldest holds the output watermark back."""
        return self.within.waits_for_rows


@dataclass(frozen=True)
class Reader:
    """An input of an operator: a side of a join, a window aggregate, a match, an input of a union; see
    `control/receipts/ledger.py`.
    """

    operator: str
    side: int
    #: Name of the stream or operator whose rows these are.
    source: str
    #: Why rows may be dropped in front of it; None: it is an input of a union, which drops none.
    reason: str | None
    #: No stateless step stands between the source and the reader: it is offered every row.
    whole: bool
    #: Whether rows with a null key are stored, too.
    keeps_keyless: bool = True
    #: One of two sides: rows are counted where they are stored.
    joins: bool = False

    @property
    def name(self) -> str:
        if self.reason is None:
            return f"{self.operator}.{self.side + 1}"
        return f"{self.operator}.{SIDES[self.side]}" if self.joins else self.operator


@dataclass(frozen=True)
class Outlet:
    """One output of a query: where its rows come from, and whether each of them is written."""

    name: str
    #: The operator or stream whose rows it writes.
    source: str
    #: `late` or `rejected` where only such rows of a stream are written.
    takes: str = "rows"
    #: No step between source and output changes the number of rows.
    plain: bool = True


@dataclass(frozen=True)
class Lineage:
    """The path of rows through a query: readers in the order of the flow, and what is written."""

    streams: tuple[str, ...]
    readers: tuple[Reader, ...]
    outputs: tuple[Outlet, ...]
    operators: Mapping[str, OperatorTraits]
    #: Operators whose results are pairs, so that their recall is that of pairs.
    pairing: frozenset[str] = frozenset()
