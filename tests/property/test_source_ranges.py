"""Which source times an output window is made of: table 2's bound and the exact range, on random plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.window.test_spec import specs

from tidegate.window.drop.drop_window import DropWindow, before, result, shared
from tidegate.window.drop.source_range import JoinReach, source_range
from tidegate.window.spec import WindowSpec

HALF = settings(max_examples=settings().max_examples // 2)


@dataclass(frozen=True)
class Plan:
    """A window, and the windows over its results; without any it is an output."""

    spec: WindowSpec
    children: tuple[Plan, ...]

    def drop(self) -> DropWindow:
        behind = [child.drop() for child in self.children] or [result(self.spec, 100)]
        return before(self.spec, shared(behind))

    def drop_of_paths(self) -> list[DropWindow]:
        """Table 2 in the other order: all pipelines first."""
        behind = [drop for child in self.children for drop in child.drop_of_paths()]
        return [before(self.spec, drop) for drop in behind or [result(self.spec, 100)]]

    def paths(self) -> list[tuple[WindowSpec, ...]]:
        """The windows of each output, from the output upwards."""
        paths = [path for child in self.children for path in child.paths()] or [()]
        return [(*path, self.spec) for path in paths]


def influence(path: tuple[WindowSpec, ...], starts: set[int]) -> set[int]:
    """Source times that these output windows are made of, followed upwards one time after the other."""
    wanted = starts
    for spec in path:
        begins = [time for time in wanted if (time - spec.offset_us) % spec.slide_us == 0]
        wanted = {time for begin in begins for time in range(begin, begin + spec.size_us)}
    return wanted


def plans(depth: int = 4, offset_max: int = 9) -> st.SearchStrategy[Plan]:
    children = st.just(()) if depth == 1 else st.lists(plans(depth - 1, offset_max), max_size=2).map(tuple)
    return st.builds(Plan, specs(size_max=6, offset_max=offset_max), children)


@given(plans(), st.integers(-9, 9), st.integers(1, 9))
@HALF
def test_the_exact_range_is_what_output_windows_are_made_of_and_nothing_else(
    plan: Plan, number: int, windows: int
) -> None:
    for path in plan.paths():
        starts = path[0].start(np.arange(number, number + windows + 1))
        low, high = source_range(path, starts[:1], starts[-1:])
        assert influence(path, set(starts[:-1].tolist())) == set(range(low[0], high[0]))


@given(plans(), st.integers(-2, 2))
@HALF
def test_the_bound_of_table_2_holds_the_exact_range_of_every_output(plan: Plan, number: int) -> None:
    drop = plan.drop()
    begin = number * drop.slide_us + drop.offset_us
    for path in plan.paths():
        low, high = source_range(path, np.array([begin]), np.array([begin + drop.slide_us]))
        assert low[0] == high[0] or begin <= low[0] <= high[0] <= begin + drop.size_us


@given(plans(offset_max=0))
@HALF
def test_the_rules_of_table_2_give_the_same_in_either_order(plan: Plan) -> None:
    assert plan.drop() == shared(plan.drop_of_paths())


@given(plans(), st.integers(-2, 2))
@HALF
def test_a_common_window_holds_the_same_number_of_windows_of_every_output(plan: Plan, number: int) -> None:
    drop = plan.drop()
    begin = number * drop.slide_us + drop.offset_us
    for path in plan.paths():
        first, end = path[0].starting(np.array([begin]), np.array([begin + drop.slide_us]))
        assert (end[0] - first[0]) * path[0].slide_us == drop.slide_us
        assert drop.max_gap * (end[0] - first[0]) <= 100, "an output's own gap"


@given(specs(), st.integers(-50, 50), st.integers(1, 30), st.integers(0, 9), st.integers(-9, 9))
def test_a_join_asks_for_rows_that_may_meet_a_partner_inside_of_the_range(
    spec: WindowSpec, low: int, length: int, back: int, ahead: int
) -> None:
    back = max(back, -ahead)
    wanted = np.array([low]), np.array([low + length])
    first, end = source_range([spec], *wanted)
    widened = source_range([spec, JoinReach(back, ahead)], *wanted)
    if end[0] > first[0]:
        assert (widened[0][0], widened[1][0]) == (first[0] - back, end[0] + ahead)
    else:
        assert widened[0][0] == widened[1][0]
