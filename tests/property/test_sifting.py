"""Laws of a sifter at the edge: tables equal the tree, counters keep to the threshold, both forms are one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidegate.sift.filter.decision import DROP, SAMPLE, Gate
from tidegate.sift.filter.lookup import Lookup
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

# Few distinct values, so that cuts repeat and rows lie on them; and any number at all.
COORDINATES = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1.0, 1.0, allow_nan=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
#: Of cuts; infinity tells nulls from numbers.
CUTS = st.one_of(COORDINATES, st.just(np.inf))


@st.composite
def trees(draw: st.DrawFn) -> Regions:
    """Any tree of cuts, also with cuts that come twice, that no row can reach, or that lie off the domain."""
    axes, cuts = draw(st.integers(1, 3)), draw(st.integers(0, 20))
    axis = draw(st.lists(st.integers(0, axes - 1), min_size=cuts, max_size=cuts))
    at = draw(st.lists(CUTS, min_size=cuts, max_size=cuts))
    # Each new cut takes the place of a region, which is one of its two halves from then on.
    children, holders = np.zeros((cuts, 2), np.int32), [(-1, 0)]
    for node in range(cuts):
        region = draw(st.integers(0, node))
        parent, side = holders[region]
        if parent >= 0:
            children[parent, side] = node
        children[node] = (~region, ~(node + 1))
        holders[region] = (node, 0)
        holders.append((node, 1))
    return Regions(
        Domain(np.zeros(axes), np.ones(axes)), np.array(axis, np.int32), np.array(at, np.float64), children
    )


def walked(tree: Regions, row: list[float]) -> int:
    node = 0 if len(tree.axis) else ~0
    while node >= 0:
        node = int(tree.children[node][0 if row[tree.axis[node]] < tree.at[node] else 1])
    return ~node


@given(trees(), st.data())
def test_the_tables_find_the_region_that_the_tree_leads_to(tree: Regions, data: st.DataObject) -> None:
    axes = len(tree.domain.low)
    known = [0.0, -0.0, np.inf, -np.inf, np.nan, *tree.at.tolist()]
    with np.errstate(over="ignore", under="ignore"):
        near = [*known, *np.nextafter(tree.at, -np.inf), *np.nextafter(tree.at, np.inf)]
    value = st.one_of(COORDINATES, st.sampled_from(near))
    rows = data.draw(st.lists(st.lists(value, min_size=axes, max_size=axes), min_size=1, max_size=30))
    columns = [np.array(column, np.float64) for column in zip(*rows, strict=True)]
    assert Lookup.of(tree).regions(columns).tolist() == [walked(tree, row) for row in rows]


def one_region(threshold: float, sample_share: float, seed: int) -> Gate:
    sifter = Sifter.passing_everything((Axis("x"),), Domain(np.zeros(1), np.ones(1)), sample_share)
    return Gate(replace(sifter, thresholds=np.array([threshold])), seed=seed)


@given(
    st.floats(0, 1),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.integers(0, 2**63),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_at_any_time_a_region_has_lost_its_share_within_a_row(
    d: float, share: float, seed: int, batches: list[int]
) -> None:
    gate = one_region(d, share, seed)
    verdicts = np.concatenate([np.zeros(0, np.uint8), *(gate.decide([np.zeros(n)]) for n in batches)])
    dropped, others = np.cumsum(verdicts == DROP), np.cumsum(verdicts != SAMPLE)
    assert (np.abs(dropped - d * others) <= 1 + 1e-9).all()


@settings(max_examples=25)
@given(trees(), st.data())
def test_both_forms_of_a_sifter_say_the_same(tree: Regions, data: st.DataObject) -> None:
    share = st.floats(0, 1)
    thresholds: NDArray[np.float64] = np.array(
        data.draw(st.lists(share, min_size=tree.count, max_size=tree.count))
    )
    names = data.draw(
        st.lists(st.text(), min_size=len(tree.domain.low), max_size=len(tree.domain.low), unique=True)
    )
    sifter = Sifter(
        tuple(Axis(name) for name in names),
        tree,
        thresholds,
        data.draw(st.integers(0, 2**63 - 1)),
        data.draw(share),
        data.draw(share),
        data.draw(share),
        data.draw(st.text()),
    )
    as_text = json.dumps(sifter.to_json()).encode()
    assert Sifter.read(sifter.to_bytes()) == sifter == Sifter.read(as_text)
    assert (Sifter.read(as_text).thresholds == thresholds).all()


@settings(max_examples=20)
@given(trees(), st.integers(0, 2**32))
def test_a_gate_counts_every_row_once(tree: Regions, seed: int) -> None:
    random = np.random.default_rng(seed)
    axes = tuple(Axis(str(k)) for k in range(len(tree.domain.low)))
    gate = Gate(Sifter(axes, tree, random.random(tree.count), sample_share=0.1))
    columns = [np.where(random.random(300) < 0.1, np.nan, random.normal(0, 2, 300)) for _ in axes]
    verdicts = gate.decide(columns)
    expected = np.bincount(gate.lookup.regions(columns), minlength=tree.count)
    assert gate.counters.offered.tolist() == expected.tolist()
    assert gate.counters.dropped.sum() == (verdicts == DROP).sum()
    assert gate.counters.sampled.sum() == (verdicts == SAMPLE).sum()
