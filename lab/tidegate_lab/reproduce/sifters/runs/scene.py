"""What sifters are built from, and what they are judged by: a sample, the queries, and fresh rows.

A sifter never sees the rows that it is judged by. Which of them each query asks for is found once per scene,
for all sifters. Fresh rows stand for the frequencies of equation 1: the more, the fewer queries are without
data only by chance, and count as complete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate.sift.construction import Sample
from tidegate.sift.queries.query_set import QuerySet
from tidegate.sift.regions import Domain
from tidegate_lab.reproduce.sifters.runs.pickups import Pickups, draw_pickups
from tidegate_lab.reproduce.sifters.runs.quality import Answers, answers
from tidegate_lab.workloads.sifters import Workload, draw_queries, draw_rows, hits

#: What can be drawn: the paper's workload, or pick-ups of a real city.
Source = Workload | Pickups
#: Scenes that are kept: those of all seeds of the four combinations.
_KEPT = 80


@dataclass(frozen=True, eq=False)
class Scene:
    """One seed of a source."""

    domain: Domain
    queries: QuerySet
    sample: Sample
    fresh: NDArray[np.float64]
    #: The fresh rows that queries ask for.
    answers: Answers

    @property
    def has_data(self) -> NDArray[np.bool_]:
        """Queries that some fresh row satisfies."""
        return self.answers.rows > 0


@lru_cache(maxsize=_KEPT)
def scene(source: Source, sample_rows: int, fresh_rows: int) -> Scene:
    """Drawn by the seed of the source."""
    if isinstance(source, Pickups):
        return _scene(*draw_pickups(source, sample_rows))
    # Alphas move nothing in space: scenes that differ in them share all the rest.
    steady = _workload(replace(source, alphas=(1.0, 1.0)), sample_rows, fresh_rows)
    return replace(steady, queries=draw_queries(source))


@lru_cache(maxsize=_KEPT)
def _workload(workload: Workload, sample_rows: int, fresh_rows: int) -> Scene:
    queries = draw_queries(workload)
    rows, fresh = draw_rows(workload, sample_rows), draw_rows(workload, fresh_rows, part=1)
    return _scene(workload.domain, queries, rows, fresh)


def _scene(domain: Domain, queries: QuerySet, rows: NDArray[np.float64], fresh: NDArray[np.float64]) -> Scene:
    sample = Sample(rows, hits(rows, queries.boxes))
    return Scene(domain, queries, sample, fresh, answers(fresh, queries.boxes))
