from __future__ import annotations

import pytest

from tidegate.errors import StateError
from tidegate.state.recovery import is_done


@pytest.mark.parametrize(("batch", "newest"), [(0, -1), (1, 0), (8, 7)])
def test_the_batch_after_the_newest_manifest_runs(batch: int, newest: int) -> None:
    assert not is_done(batch, newest)


@pytest.mark.parametrize("batch", [0, 7])
def test_the_batch_of_the_newest_manifest_is_done(batch: int) -> None:
    assert is_done(batch, newest=batch)


def test_a_gap_names_the_manifest_that_is_missing() -> None:
    with pytest.raises(
        StateError,
        match=r"CHECKPOINT_MANIFEST_MISSING.*batch 8 is missing: .*0000000008\.json.*0000000007\.json",
    ):
        is_done(9, newest=7)


def test_a_gap_without_any_manifest_is_refused_too() -> None:
    with pytest.raises(
        StateError, match=r"CHECKPOINT_MANIFEST_MISSING.*batch 2 is missing.*Got: no manifest at all"
    ):
        is_done(3, newest=-1)


def test_a_batch_from_long_ago_means_that_sparks_log_is_gone() -> None:
    with pytest.raises(StateError, match=r"CHECKPOINT_SPARK_LOG_OUTDATED.*batch 0,.*folder `spark`"):
        is_done(0, newest=7)
