"""The workload of the sifters paper: hot spots that data and range queries share, skewed at two levels.

Paper: sifters, section VI-A and Table I. The data space is [0, 1)ⁿ. Hot spots lie at random centres in it,
with sides U[0.5, 1] / G: the more *global skew* G, the more of the space is empty. Every row, and the centre
of every query, belongs to one of the hot spots, each as likely as the others, and lies there

    unif    anywhere in the hot spot, or
    skew    normally around a mean in the hot spot, with deviations U[0.5, 1] / (L · G) (*local skew* L).

Means and deviations of data and of queries are drawn apart: what is plenty need not be what is asked for;
unless `same_normals` lets them go together.

What the paper leaves open, and what we do:

- A hot spot that reaches over the border of the space is cut off there; centres stay uniform.
- Normals have no end, and hot spots do: skewed points are drawn again until they lie in a hot spot, because
  the paper says that data and queries are "located within these hot-spots". With `whole_normals`, its other
  reading, they may reach out of the hot spots, though not out of the data space. Gains hang on it:
  `hot_spots.py` says how.
- Queries, too, end at the border of the space.

Guarantee: the same settings give the same rows and queries. Hot spots, queries and each part of the data have
random numbers of their own: another G stretches the same picture, another kind of data leaves the queries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.sift.queries.axes import Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.queries.query_set import QuerySet
from tidegate.sift.regions import Domain
from tidegate_lab.workloads.box_queries import queries_of_boxes
from tidegate_lab.workloads.hot_spots import Spread, draw_points

KINDS = ("unif", "skew")
#: Whose random numbers; parts of the data follow.
_HOT_SPOTS, _QUERIES, _DATA = range(3)
#: Rows times queries that are compared at a time: some tens of megabytes.
_COMPARED_AT_ONCE = 10_000_000


@dataclass(frozen=True)
class Workload:
    """What data and queries look like; the defaults are those of the paper's Table I."""

    data: str = "skew"
    queries: str = "unif"
    #: G and L; sides and deviations are divided by them.
    global_skew: float = 4.0
    local_skew: float = 4.0
    axes: int = 2
    query_count: int = 1000
    #: Shortest and longest side of a query, as a share of the data space.
    query_sides: tuple[float, float] = (0.005, 0.01)
    #: Least and largest loss of QoS by loss of completeness.
    alphas: tuple[float, float] = (1.0, 2.0)
    hot_spots: int = 5
    #: Skewed queries lie in the normals of the data.
    same_normals: bool = False
    #: Skewed rows and queries may lie out of the hot spots; otherwise they are drawn again until they do not.
    whole_normals: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, good, do in (
            ("data", self.data in KINDS, "Say 'unif' or 'skew'"),
            ("queries", self.queries in KINDS, "Say 'unif' or 'skew'"),
            ("global_skew", 1 <= self.global_skew < np.inf, "Give a number from 1 on"),
            ("local_skew", 1 <= self.local_skew < np.inf, "Give a number from 1 on"),
            ("axes", self.axes >= 1, "Give at least one axis"),
            ("query_count", self.query_count >= 1, "Give at least one query"),
            (
                "query_sides",
                0 < self.query_sides[0] <= self.query_sides[1] <= 1,
                "Give 0 < least <= most <= 1",
            ),
            ("alphas", 0 <= self.alphas[0] <= self.alphas[1] < np.inf, "Give 0 <= least <= most"),
            ("hot_spots", self.hot_spots >= 1, "Give at least one hot spot"),
            ("seed", self.seed >= 0, "Give a whole number from 0 on"),
        ):
            if not good:
                raise FlowError(
                    f"Workload({name}=…) is out of range",
                    code="LAB_WORKLOAD_INVALID",
                    got=getattr(self, name),
                    do=do,
                )

    @property
    def domain(self) -> Domain:
        return Domain(np.zeros(self.axes), np.ones(self.axes))


def spreads(workload: Workload) -> tuple[Spread, Spread]:
    """Where the data lies, and where the queries do: the same hot spots, normals of their own."""
    random = np.random.default_rng([workload.seed, _HOT_SPOTS])
    shape = (workload.hot_spots, workload.axes)
    centre = random.random(shape)
    half = random.uniform(0.25, 0.5, shape) / workload.global_skew
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)

    def spread(kind: str) -> Spread:
        deviation = random.uniform(0.5, 1.0, shape) / (workload.local_skew * workload.global_skew)
        return Spread(kind, low, high, random.uniform(low, high), deviation, workload.whole_normals)

    data, queries = spread(workload.data), spread(workload.queries)
    return data, replace(data, kind=queries.kind) if workload.same_normals else queries


def draw_rows(workload: Workload, count: int, part: int = 0) -> NDArray[np.float64]:
    """Coordinates of so many rows; another `part` is fresh data out of the same hot spots."""
    random = np.random.default_rng([workload.seed, _DATA, part])
    return draw_points(spreads(workload)[0], count, random)


def draw_queries(workload: Workload) -> QuerySet:
    """The queries of this workload, number k being box k; all count the same."""
    random = np.random.default_rng([workload.seed, _QUERIES])
    centre = draw_points(spreads(workload)[1], workload.query_count, random)
    half = random.uniform(*workload.query_sides, centre.shape) / 2
    return queries_of_boxes(
        [Axis(f"x{k + 1}") for k in range(workload.axes)],
        np.maximum(centre - half, 0.0),
        np.minimum(centre + half, 1.0),
        alphas=random.uniform(*workload.alphas, workload.query_count),
    )


def hits(rows: NDArray[np.float64], boxes: Boxes) -> NDArray[np.int64]:
    """How many queries each row satisfies, by looking at all of them; meant for samples."""
    found = np.zeros(len(rows), np.int64)
    at_once = max(1, _COMPARED_AT_ONCE // max(1, len(boxes)))
    for begin in range(0, len(rows), at_once):
        here = places(rows[begin : begin + at_once])
        inside = np.ones((len(here), len(boxes)), np.bool_)
        for k in range(len(boxes.axes)):
            inside &= (boxes.low[:, k] <= here[:, k, None]) & (here[:, k, None] < boxes.high[:, k])
        # Boxes of one query do not overlap, so that no query is counted twice.
        found[begin : begin + at_once] = inside.sum(axis=1)
    return found
