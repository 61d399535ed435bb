"""The flow as control sees it: streams, operators with their traits, readers and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.join.within import Tumbling, Unbounded, Within
from tidegate.model.times import SIDES
from tidegate.window.lifetime import Lifetime, RowsLifetime


@dataclass(frozen=True)
class Operator:
    """What planning needs to know of a join, or of a window aggregate: a join with one side to it."""

    name: str
    #: Names of the streams or operators that feed it, left and right.
    inputs: tuple[str, str]
    within: Within | Tumbling | Unbounded | Lifetime | RowsLifetime
    #: Per side: do its rows wait in the state before they are emitted on their own?
    waiting: tuple[bool, bool]
    #: Per side: does the watermark set them free? (Rows of a semi join wait for a partner instead.)
    lonely: tuple[bool, bool]


@dataclass(frozen=True)
class Reader:
    """Who takes rows in; see the module docstring."""

    operator: str
    side: int
    #: Name of the stream or operator whose rows these are.
    source: str
    #: Why rows may be dropped in front of it.
    reason: str
    #: No box stands between the source and the reader: it is offered every row.
    whole: bool
    #: Are rows with a null key stored, too?
    keeps_keyless: bool = True
    #: One of two sides: rows are counted where they are stored.
    joins: bool = False

    @property
    def name(self) -> str:
        return f"{self.operator}.{SIDES[self.side]}" if self.joins else self.operator


@dataclass(frozen=True)
class Outlet:
    """One output of a query: where its rows come from, and whether each of them is written."""

    name: str
    #: The operator, or the stream, that it lies behind.
    source: str
    #: `late` or `rejected` where only such rows of a stream are written.
    takes: str = "rows"
    #: Nothing behind the source changes the number of rows.
    plain: bool = True


@dataclass(frozen=True)
class Ways:
    """The ways of rows through a query: who reads what, in the order of the flow, and what is written."""

    streams: tuple[str, ...]
    readers: tuple[Reader, ...]
    outputs: tuple[Outlet, ...]
    operators: Mapping[str, Operator]
    #: Joins whose results are pairs, so that their recall is that of pairs.
    pairing: frozenset[str] = frozenset()
