"""How many instances a key needs, against trying them all."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.route.auto.splitting import instances_needed
from tidegate.route.auto.work_costs import UnitCosts

COST = st.floats(0, 50)


def key(divided: float, repeated: float) -> UnitCosts:
    one = np.ones(1)
    return UnitCosts(divided * one, repeated * one, one, one, one)


@given(COST, st.floats(0, 5), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 32))
@settings(max_examples=80)
def test_the_fewest_instances_with_pieces_small_enough(
    divided: float, repeated: float, piece: float, instances: int
) -> None:
    (needed,) = instances_needed(key(divided, repeated), 1.0, piece, instances)
    assert 1 <= needed <= instances
    small = [k for k in range(1, instances + 1) if repeated + divided / k <= piece]
    if small and needed not in (small[0], small[0] + 1):
        # Then repeating probes would cost everybody more than smaller pieces win.
        assert needed == max(1, round((instances * divided / repeated) ** 0.5)) < small[0]


def test_light_keys_stay_whole_and_pure_pairs_are_divided_at_will() -> None:
    assert instances_needed(key(0.9, 0.05), 1.0, 1.0, 16).tolist() == [1]
    assert instances_needed(key(4.0, 0.0), 1.0, 0.5, 16).tolist() == [8]
    assert instances_needed(key(40.0, 0.0), 1.0, 0.5, 16).tolist() == [16]


def test_where_probes_alone_are_too_heavy_the_best_compromise_is_taken() -> None:
    """repeated + divided / k for its instances, and k · repeated / n on everybody's mean."""
    weight = [2.0 + 8.0 / k + 2.0 * k / 16 for k in range(1, 17)]
    assert instances_needed(key(8.0, 2.0), 1.0, 1.0, 16).tolist() == [1 + int(np.argmin(weight))]
