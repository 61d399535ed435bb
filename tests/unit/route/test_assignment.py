from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FlowError
from tidegate.model.codec import decode, encode_exactly, from_plain, to_plain
from tidegate.route.assignment import Assignment

CODES = st.lists(st.sampled_from([0, 1, 7, 2**63, 2**64 - 1]), max_size=5)


@given(st.lists(st.sampled_from([0, 1, 7, 2**63, 2**64 - 1]), max_size=4, unique=True), CODES)
@settings(max_examples=40)
def test_listed_keys_are_found_by_their_number_and_others_are_not(own: list[int], asked: list[int]) -> None:
    assignment = Assignment(2, (0, 1), keys=dict.fromkeys(own, (1,)))
    numbers = assignment.listed(np.array(asked, np.uint64)).tolist()
    assert numbers == [own.index(code) if code in own else -1 for code in asked]


@pytest.mark.parametrize(("code", "columns"), [(7, 2), (7, 0), (8, 1)])
def test_a_grid_that_instances_do_not_fill_is_refused(code: int, columns: int) -> None:
    with pytest.raises(FlowError, match=r"INTERNAL_ROUTING_INVALID.*fill the columns"):
        Assignment(3, (0, 1), keys={7: (0, 1, 2)}, columns={code: columns})


def test_an_assignment_survives_json() -> None:
    whole = Assignment(4, (0, 1), keys={7: (0, 1, 2), 2**63: (3, 0)}, columns={7: 3})
    assert decode(Assignment, encode_exactly(whole)) == whole
    assert from_plain(Assignment, to_plain(whole)) == whole
