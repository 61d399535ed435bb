"""The conditions on sets: the thresholds alone, without the loops that apply them.

Conditions are part of the description of a flow, and describing a flow must not compile anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import FlowError


@dataclass(frozen=True)
class Overlap:
    """At least this many common items."""

    at_least: int

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise FlowError(
                "tg.overlap needs at_least=1 or more",
                code="JOIN_SET_THRESHOLD",
                got=self.at_least,
                why="With zero every pair of rows would match",
                do="Give the number of common items, for example at_least=2",
            )


@dataclass(frozen=True)
class Jaccard:
    """At least this share of the items in the union of the two sets is common."""

    at_least: float

    def __post_init__(self) -> None:
        if not 0 < self.at_least <= 1:
            raise FlowError(
                "A Jaccard similarity must be above 0 and at most 1",
                code="JOIN_SET_THRESHOLD",
                got=self.at_least,
                do="Give a ratio such as 0.5",
            )


@dataclass(frozen=True)
class InnerProduct:
    """The sum over common items of the product of both weights is at least this."""

    at_least: float

    def __post_init__(self) -> None:
        if not self.at_least > 0:
            raise FlowError(
                "tg.inner_product needs at_least above 0",
                code="JOIN_SET_THRESHOLD",
                got=self.at_least,
                why="With zero, pairs without a common item would match",
                do="Give for example at_least=0.5",
            )


SetCondition = Overlap | Jaccard | InnerProduct
