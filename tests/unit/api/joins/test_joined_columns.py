from __future__ import annotations

import pytest

from tidegate.api.joins.conditions import JoinKey
from tidegate.api.joins.joined_columns import JoinedColumn, joined_columns
from tidegate.errors import FlowError


def names(left: str, right: str, *keys: JoinKey, suffix: str = "_right") -> list[str]:
    return [one.name for one in joined_columns(left.split(), right.split(), keys, suffix, str.lower)]


def test_a_key_of_one_name_comes_once_and_first() -> None:
    made = joined_columns(["ts", "k", "v"], ["ts", "k", "w"], [JoinKey("k", "k")], "_right", str.lower)
    assert made == [
        JoinedColumn("k", "k", "k"),
        JoinedColumn("ts", "ts"),
        JoinedColumn("v", "v"),
        JoinedColumn("ts_right", None, "ts"),
        JoinedColumn("w", None, "w"),
    ]


def test_keys_of_two_names_are_two_columns() -> None:
    assert names("ts k v", "ts p w", JoinKey("k", "p")) == ["k", "p", "ts", "v", "ts_right", "w"]
    assert names("a b", "c d", JoinKey("a", "c"), JoinKey("b", "d")) == ["a", "c", "b", "d"]


def test_a_column_that_is_in_two_keys_comes_once() -> None:
    assert names("a b", "c", JoinKey("a", "c"), JoinKey("b", "c")) == ["a", "c", "b"]
    assert names("a", "a c", JoinKey("a", "a"), JoinKey("a", "c")) == ["a", "c"]


def test_left_names_go_before_right_ones_even_where_these_are_keys() -> None:
    assert names("a b", "b a", JoinKey("a", "b")) == ["a", "b_right", "b", "a_right"]


def test_the_columns_of_key_expressions_stay_in_their_place() -> None:
    key = JoinKey("lower(`v`)", "`w`", expressions=True)
    assert names("ts v", "ts w", key, suffix="_b") == ["ts", "v", "ts_b", "w"]


def test_names_that_differ_in_case_are_the_same_unless_the_session_says_otherwise() -> None:
    assert names("K V", "k v", JoinKey("k", "K")) == ["K", "V", "v_right"]
    made = joined_columns(["K", "V"], ["k", "v"], [JoinKey("K", "k")], "_right", str)
    assert [one.name for one in made] == ["K", "k", "V", "v"]


def test_a_suffix_that_makes_another_taken_name_is_refused() -> None:
    with pytest.raises(FlowError, match="JOIN_COLUMNS_CLASH"):
        names("k v v_right", "k v", JoinKey("k", "k"))
    assert names("k v v_right", "k v", JoinKey("k", "k"), suffix="_b") == ["k", "v", "v_right", "v_b"]
