"""Laws of the sifters paper, sections IV-A and V: regions tile the space, equal depth, at most twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.sift.partition.partitioners import PARTITIONERS, Partitioner
from tidegate.sift.placing import frequencies, region_of
from tidegate.sift.queries.axes import Axis, places
from tidegate.sift.queries.boxes import Boxes
from tidegate.sift.regions import Domain, Regions


@dataclass(frozen=True)
class Case:
    domain: Domain
    sample: NDArray[np.float64]
    hits: NDArray[np.int64]
    boxes: Boxes
    regions: int

    def cut_by(self, partition: Partitioner) -> Regions:
        return partition(self.domain, self.sample, self.hits, self.boxes, self.regions)


@st.composite
def cases(draw: st.DrawFn, *, kinds: tuple[str, ...] = ("number", "integer", "category")) -> Case:
    """Samples that reach out of the domain, with ties where few distinct values are drawn."""
    axes = tuple(
        Axis(f"x{k}", kind, ("a", "b", "c") if kind == "category" else ())
        for k, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)))
    )
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    low = np.array([0.0 if axis.kind == "category" else draw(st.sampled_from([-7.0, 0.0])) for axis in axes])
    width = np.array(
        [4.0 if axis.kind == "category" else draw(st.sampled_from([1.0, 9.0, 1e4])) for axis in axes]
    )
    domain = Domain(low, low + width)
    whole = np.array([axis.kind != "number" for axis in axes])
    steps = draw(st.sampled_from([2, 10, 10_000]))

    def points(count: int, reach: float) -> NDArray[np.float64]:
        shares = random.integers(0, steps, (count, len(axes))) / steps * (1 + 2 * reach) - reach
        found = low + shares * width
        return np.asarray(np.where(whole, np.floor(found), found))

    sample = points(draw(st.integers(0, 60)), reach=0.1)
    centres = points(draw(st.integers(0, 20)), reach=0.1)
    boxes = Boxes(
        axes, places(centres), places(centres + 1), np.arange(len(centres), dtype=np.int32), len(centres)
    )
    hits = random.integers(0, draw(st.sampled_from([1, 5])), len(sample))
    return Case(domain, sample, hits, boxes, draw(st.integers(1, 40)))


@st.composite
def samples_without_ties(draw: st.DrawFn, powers: bool) -> Case:
    axes = draw(st.integers(1, 3))
    regions = draw(st.integers(1, 4)) ** axes if powers else draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    sample = random.random((draw(st.integers(regions, 200)), axes))
    boxes = Boxes(
        tuple(Axis(f"x{k}") for k in range(axes)),
        places(sample),
        places(sample + 1e-6),
        np.arange(len(sample), dtype=np.int32),
        len(sample),
    )
    return Case(
        Domain(np.zeros(axes), np.ones(axes)), sample, np.zeros(len(sample), np.int64), boxes, regions
    )


def _rows(regions: Regions, sample: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.rint(frequencies(regions, sample) * len(sample))


@given(case=cases())
def test_regions_of_all_partitioners_are_complete_and_do_not_overlap(case: Case) -> None:
    inside = ((case.domain.low <= case.sample) & (case.sample < case.domain.high)).all(axis=1)
    rows = case.sample[inside]
    for partition in PARTITIONERS.values():
        found = case.cut_by(partition)
        assert 1 <= found.count <= case.regions
        low, high = found.bounds
        assert (low < high).all()
        volumes = np.prod((high - low) / (case.domain.high - case.domain.low), axis=1)
        assert volumes.sum() == pytest.approx(1.0)
        # Each row lies between the walls of one region, and the walk finds it.
        between = np.all((low <= rows[:, None]) & (rows[:, None] < high), axis=2)
        assert (np.sum(between, axis=1) == 1).all()
        assert np.argmax(between, axis=1).tolist() == region_of(found, rows).tolist()


@given(case=cases())
def test_all_cuts_are_inside_the_domain_and_those_of_whole_axes_are_whole(case: Case) -> None:
    for partition in PARTITIONERS.values():
        found = case.cut_by(partition)
        whole = np.array([axis.kind != "number" for axis in case.boxes.axes])[found.axis]
        assert (found.at[whole] == np.rint(found.at[whole])).all()
        assert (case.domain.low[found.axis] < found.at).all()
        assert (found.at < case.domain.high[found.axis]).all()


@given(case=cases())
def test_inputs_stay_as_they_are_and_give_the_same_regions_again(case: Case) -> None:
    given_arrays = (case.sample, case.hits, case.domain.low, case.domain.high)
    before = [array.copy() for array in given_arrays]
    for partition in PARTITIONERS.values():
        assert case.cut_by(partition).to_json() == case.cut_by(partition).to_json()
    assert all((old == new).all() for old, new in zip(before, given_arrays, strict=True))


@given(case=samples_without_ties(powers=True))
def test_equally_deep_regions_differ_by_at_most_one_row(case: Case) -> None:
    rows = _rows(case.cut_by(PARTITIONERS["dedp"]), case.sample)
    assert len(rows) == case.regions
    assert rows.max() - rows.min() <= 1


@given(case=samples_without_ties(powers=True))
def test_equally_asked_for_regions_differ_by_at_most_one_query(case: Case) -> None:
    low, high = case.boxes.extents
    queries = _rows(case.cut_by(PARTITIONERS["qedp"]), low + (high - low) / 2)
    assert len(queries) == case.regions
    assert queries.max() - queries.min() <= 1


@given(case=cases(kinds=("number",)))
def test_the_largest_region_of_the_approximate_grid_has_at_most_twice_the_smallest_volume(case: Case) -> None:
    found = case.cut_by(PARTITIONERS["volume"])
    volumes = np.prod((found.bounds[1] - found.bounds[0]) / (case.domain.high - case.domain.low), axis=1)
    assert found.count == case.regions
    assert volumes.max() <= 2 * volumes.min() * (1 + 1e-9)


@given(case=samples_without_ties(powers=False))
def test_the_fullest_region_has_at_most_twice_the_rows_of_the_emptiest_and_one_more(case: Case) -> None:
    rows = _rows(case.cut_by(PARTITIONERS["count"]), case.sample)
    assert len(rows) == case.regions
    assert rows.max() <= 2 * rows.min() + 1
