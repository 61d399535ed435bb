from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidegate.errors import BatchFailed, FlowError
from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.udaf import State, Udaf, finish_rows, finish_states, pane_states

MEAN = Udaf(
    "mean fare",
    zero=lambda: (0, 0.0),
    update=lambda state, fares: (state[0] + len(fares), state[1] + float(fares.sum())),
    finish=lambda state: state[1] / state[0],
    fields=("n", "s"),
    merge=lambda one, other: (one[0] + other[0], one[1] + other[1]),
)
FARES = np.array([1.0, 2.0, 3.0, 10.0, 20.0])
PANES = Stretches(np.array([0, 1, 2]), np.array([0, 2, 3]), np.array([2, 3, 5]))
#: Windows of two panes, over the states of panes; and the same over rows.
WINDOWS = Stretches(np.array([40, 41]), np.array([0, 1]), np.array([2, 3]))
WINDOW_ROWS = Stretches(np.array([40, 41]), np.array([0, 2]), np.array([3, 5]))


def group(k: int) -> str:
    return f"the group cell={'abc'[k]} and window {40 + k}"


def fail(*_: Any) -> Any:
    raise ZeroDivisionError("nothing there")


def test_states_of_panes_make_the_same_results_as_all_rows() -> None:
    states = pane_states(MEAN, [FARES], PANES, group)
    assert states == [(2, 3.0), (1, 3.0), (2, 30.0)]
    assert finish_states(MEAN, states, WINDOWS, group) == [2.0, 11.0]
    assert finish_rows(MEAN, [FARES], WINDOW_ROWS, group) == [2.0, 11.0]


@pytest.mark.parametrize("role", ["zero", "update", "finish"])
def test_an_error_over_rows_names_the_function_the_group_and_the_window(role: str) -> None:
    broken = replace(MEAN, **{role: fail})  # type: ignore[arg-type]
    said = (
        rf"AGGREGATOR_FAILED.*'mean fare' failed in {role}, for the group cell=a and window 40\. "
        r"Got: ZeroDivisionError: nothing there \(test_udaf\.py, line \d+\)\."
    )
    with pytest.raises(BatchFailed, match=said):
        finish_rows(broken, [FARES], WINDOW_ROWS, group)


def test_an_error_of_a_merge_names_the_window_that_needed_it() -> None:
    def picky(one: State, other: State) -> State:
        return fail() if other[1] > 20 else (one[0] + other[0], one[1] + other[1])

    states = pane_states(MEAN, [FARES], PANES, group)
    with pytest.raises(
        BatchFailed,
        match=r"AGGREGATOR_FAILED.*failed in merge, for the group cell=b and .* 41\. Got: ZeroDivision",
    ):
        finish_states(replace(MEAN, merge=picky), states, WINDOWS, group)


@pytest.mark.parametrize("state", [(1,), 7, None])
def test_a_state_of_another_shape_is_refused(state: Any) -> None:
    broken = replace(MEAN, update=lambda *_: state)
    with pytest.raises(
        BatchFailed, match=r"AGGREGATOR_FAILED.*failed in update.*Got: the state .*a tuple of 2: n, s"
    ):
        pane_states(broken, [FARES], PANES, group)


def test_states_cannot_be_merged_without_a_merge() -> None:
    with pytest.raises(
        FlowError, match=r"AGGREGATOR_MERGE_MISSING.*'mean fare' has no merge.*give it a merge"
    ):
        finish_states(replace(MEAN, merge=None), [], WINDOWS, group)


def test_a_state_without_fields_is_refused_at_once() -> None:
    with pytest.raises(FlowError, match=r"AGGREGATOR_STATE_EMPTY.*'mean fare': the state has no fields"):
        replace(MEAN, fields=())
