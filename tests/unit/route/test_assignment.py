from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.route.assignment import Assignment

CODES = st.lists(st.sampled_from([0, 1, 7, 2**63, 2**64 - 1]), max_size=5)


@given(st.lists(st.sampled_from([0, 1, 7, 2**63, 2**64 - 1]), max_size=4, unique=True), CODES)
@settings(max_examples=40)
def test_listed_keys_are_found_by_their_number_and_others_are_not(own: list[int], asked: list[int]) -> None:
    assignment = Assignment(2, (0, 1), keys=dict.fromkeys(own, (1,)))
    numbers = assignment.listed(np.array(asked, np.uint64)).tolist()
    assert numbers == [own.index(code) if code in own else -1 for code in asked]
