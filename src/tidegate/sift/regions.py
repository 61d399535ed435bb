"""Regions: a complete partitioning of the data space, without overlaps, as a tree of cuts.

Paper: sifters, section IV-A. Every partitioner (grid, equi-depth, flexible, ours) returns this: inner node
i sends a row left where its coordinate on axis `axis[i]` is below `at[i]`, else right; `children[i]` holds
the two successors, an inner node j as j, region r as ~r. Node 0 is the root; without any node there is one
region. Cuts of integer and category axes are integers. A cut at infinity separates numbers from rows without
one: NaN, null and +inf are above every cut (`partition/null_patterns.py`).

Guarantee: every row lies in exactly one region. The outermost regions are unbounded: a row outside of the
domain belongs to the nearest region in the tree. The domain bounds volumes only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.model.json_values import Json


@dataclass(frozen=True, eq=False)
class Domain:
    """The box that contains data and queries: lower and upper coordinates per axis."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not len(self.low):
            raise FlowError(
                "A domain needs a lower and an upper bound per axis",
                code="INTERNAL_ARRAYS_INCONSISTENT",
                got=f"{self.low}, {self.high}",
            )
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise FlowError(
                    f"Axis {k} of the domain has no width",
                    code="INTERNAL_ARRAYS_INCONSISTENT",
                    got=f"from {low} to {high}",
                )


@dataclass(frozen=True, eq=False)
class Regions:
    """A tree of cuts over a domain; see the module docstring."""

    domain: Domain
    axis: NDArray[np.int32]
    at: NDArray[np.float64]
    children: NDArray[np.int32]
    #: True if a sample placed the cuts, so that its own counts are biased in their favour (`shrinkage.py`).
    #: Used while thresholds are set from that sample; not stored.
    fitted: bool = False

    @property
    def count(self) -> int:
        return len(self.axis) + 1

    @cached_property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper coordinates of every region, clipped to the domain: two arrays (regions, axes)."""
        n = len(self.domain.low)
        low, high = np.empty((self.count, n)), np.empty((self.count, n))
        waiting = [(0 if len(self.axis) else ~0, self.domain.low, self.domain.high)]
        while waiting:
            node, lower, upper = waiting.pop()
            if node < 0:
                low[~node], high[~node] = lower, upper
                continue
            k, at = self.axis[node], min(max(self.at[node], lower[self.axis[node]]), upper[self.axis[node]])
            middle_high, middle_low = upper.copy(), lower.copy()
            middle_high[k] = middle_low[k] = at
            waiting.append((int(self.children[node, 0]), lower, middle_high))
            waiting.append((int(self.children[node, 1]), middle_low, upper))
        return low, high

    def to_json(self) -> Json:
        return {
            "low": self.domain.low.tolist(),
            "high": self.domain.high.tolist(),
            "axis": self.axis.tolist(),
            "at": self.at.tolist(),
            "children": self.children.tolist(),
        }

    @classmethod
    def from_json(cls, raw: Json) -> Regions:
        return cls(
            Domain(np.array(raw["low"], np.float64), np.array(raw["high"], np.float64)),
            np.array(raw["axis"], np.int32),
            np.array(raw["at"], np.float64),
            np.array(raw["children"], np.int32).reshape(-1, 2),
        )
