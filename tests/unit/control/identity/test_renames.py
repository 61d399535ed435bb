"""Which renames a checkpoint needs: those that are not done, each to a name that is free."""

from __future__ import annotations

import pytest

from tidegate.control.identity.renames import Found, Renames, found_in
from tidegate.errors import FlowError
from tidegate.model.graph import FlowNames


def names(streams: str = "", operators: str = "", outputs: str = "") -> FlowNames:
    return FlowNames(tuple(streams.split()), tuple(operators.split()), tuple(outputs.split()))


STORED = names("orders tracks", "near busy", "near late")


def found(current: FlowNames, stored: FlowNames = STORED, **asked: str) -> Found:
    return found_in(stored, current, Renames(asked))


def refused(current: FlowNames, stored: FlowNames = STORED, **asked: str) -> str:
    with pytest.raises(FlowError) as caught:
        found(current, stored, **asked)
    return str(caught.value)


def test_a_name_is_renamed_wherever_the_flow_has_the_new_one() -> None:
    both = found(names("orders tracks", "close busy", "close late"), near="close")
    assert both == Found({"near": "close"}, {"near": "close"})
    operator = found(names("orders tracks", "close busy", "near late"), near="close")
    assert operator == Found({"near": "close"}, {})
    assert found(names("sales tracks", "near busy", "near"), orders="sales").nodes == {"orders": "sales"}


def test_a_rename_that_is_done_is_done_no_more() -> None:
    after = names("sales tracks", "near busy", "near late")
    assert found(after, after, orders="sales") == Found({}, {})
    # Another stream has taken the old name since.
    assert found(names("orders sales tracks"), after, orders="sales") == Found({}, {})


def test_an_old_name_may_be_given_to_something_new_at_once() -> None:
    again = names("orders tracks", "near close busy", "near late")
    assert found(again, near="close") == Found({"near": "close"}, {})


def test_a_name_that_neither_side_has_is_refused() -> None:
    missing = refused(names("orders tracks", "close", "late"), nera="close")
    assert "[RENAME_UNKNOWN] The checkpoint has no 'nera'" in missing
    assert "busy, late, near, orders, tracks" in missing
    assert "'close', which is not in the flow" in refused(STORED, near="close")


def test_a_name_that_the_checkpoint_has_is_refused() -> None:
    current = names("tracks", "busy", "late")
    assert "RENAME_NAME_TAKEN" in refused(current, near="busy")
    assert "RENAME_NAME_TAKEN" in refused(current, near="late")
    assert "RENAME_NAME_TAKEN" in refused(current, orders="tracks")
    # Streams and operators share their names.
    assert "RENAME_NAME_TAKEN" in refused(names("busy tracks", "", ""), orders="busy")


def test_default_names_follow_unless_the_flow_still_has_them() -> None:
    stored = names("orders tracks", "orders_k orders_tracks_k", "orders_k")
    renames = Renames({"orders": "sales"}, {"orders_k": "sales_k"}, {"orders_k": "sales_k"})
    current = names("sales tracks", "sales_k", "sales_k")
    assert found_in(stored, current, renames) == Found(
        {"orders": "sales", "orders_k": "sales_k"}, {"orders_k": "sales_k"}
    )
    kept = names("sales tracks", "sales_k orders_k", "orders_k")
    assert found_in(stored, kept, renames) == Found({"orders": "sales"}, {})
    once_more = names("sales tracks", "sales_k", "sales_k")
    assert found_in(once_more, once_more, renames) == Found({}, {})
