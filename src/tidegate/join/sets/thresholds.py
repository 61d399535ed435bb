"""What sets must have in common to match: the thresholds alone, without the loops that apply them.

They are part of what a user describes, and describing a flow must not compile anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import FlowError


@dataclass(frozen=True)
class Overlap:
    """At least so many common items."""

    at_least: int

    def __post_init__(self) -> None:
        if self.at_least < 1:
            raise FlowError(
                "An overlap join needs at least one common item",
                got=self.at_least,
                why="With zero every pair of rows would match",
                do="Give at_least=1 or more",
            )


@dataclass(frozen=True)
class Jaccard:
    """At least this share of all items of the two sets is common."""

    at_least: float

    def __post_init__(self) -> None:
        if not 0 < self.at_least <= 1:
            raise FlowError(
                "A Jaccard similarity lies above 0 and at most at 1",
                got=self.at_least,
                why="Every pair of rows has a similarity of at least 0, and none one of more than 1",
                do="Give a share such as 0.5",
            )


@dataclass(frozen=True)
class InnerProduct:
    """The weights of common items, multiplied and added, reach this."""

    at_least: float

    def __post_init__(self) -> None:
        if not self.at_least > 0:
            raise FlowError(
                "An inner product join needs a threshold above 0",
                got=self.at_least,
                why="With zero, pairs without any common item would match",
                do="Give at_least above 0",
            )


SetCondition = Overlap | Jaccard | InnerProduct
