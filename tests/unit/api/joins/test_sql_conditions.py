from __future__ import annotations

from typing import Any

import pytest

from tidegate.api.joins.conditions import JoinKey
from tidegate.api.joins.sql_conditions import SqlParts, SqlSide, is_sql, split_condition
from tidegate.api.joins.time_bounds import between
from tidegate.api.nodes import Join
from tidegate.api.sources import stream
from tidegate.api.streams import Stream
from tidegate.errors import FlowError

US = 10**6
MINUTE = 60 * US
ORDERS = SqlSide("orders", "ts", ("ts", "cell", "city", "fare", "loc", "odd name"))
TRACKS = SqlSide("tracks", "at", ("at", "cell", "town", "speed", "loc", "items"))
KEY = "orders.cell = tracks.cell AND "
BOUNDS = "tracks.at BETWEEN orders.ts AND orders.ts + INTERVAL 1 MINUTE"


class Frame:
    """As much of a data frame as names need."""

    def __init__(self, *columns: str):
        self.columns = list(columns)


def a_stream(name: str, time: str, *columns: str) -> Stream:
    frame: Any = Frame(time, *columns)
    return stream(frame, time=time, name=name)


def split(
    text: str, left: SqlSide = ORDERS, right: SqlSide = TRACKS, case_sensitive: bool = False
) -> SqlParts:
    return split_condition(text, left, right, case_sensitive)


def bounds(text: str) -> tuple[int | None, int | None]:
    parts = split(KEY + text)
    assert parts.rest is None
    return parts.bounds.lower_us, parts.bounds.upper_us


def rest(text: str) -> str:
    """The rest, with columns written as side and name."""
    parts = split(f"{KEY}{BOUNDS} AND {text}")
    assert parts.rest is not None
    return parts.rest.over(lambda side, column: f"{'LR'[side]}:{column}")


def code_of(text: str, left: SqlSide = ORDERS, right: SqlSide = TRACKS, case_sensitive: bool = False) -> str:
    with pytest.raises(FlowError) as caught:
        split(text, left, right, case_sensitive)
    assert len(str(caught.value).splitlines()) <= 6
    assert caught.value.details.get("remedy")
    return caught.value.code


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("tracks.at BETWEEN orders.ts - INTERVAL 5 MINUTES AND orders.ts + INTERVAL 1 MINUTE", -5, 1),
        ("at BETWEEN ts - INTERVAL 5 MINUTES AND ts + INTERVAL 1 MINUTE", -5, 1),
        ("orders.ts between tracks.at - interval '1' minute and tracks.at + interval '5' minute", -5, 1),
        ("tracks.at >= orders.ts - interval 5 minutes and tracks.at <= orders.ts + interval 1 minute", -5, 1),
        ("orders.ts - interval 5 minutes <= tracks.at and orders.ts + interval 1 minute >= tracks.at", -5, 1),
        (
            "(orders.ts <= tracks.at + interval 5 minutes) and (orders.ts >= tracks.at - interval 1 minute)",
            -5,
            1,
        ),
        (
            "tracks.at - orders.ts >= -INTERVAL 5 MINUTES AND tracks.at - orders.ts <= INTERVAL 1 MINUTE",
            -5,
            1,
        ),
        ("tracks.at - orders.ts BETWEEN INTERVAL '-5' MINUTE AND INTERVAL 1 MINUTE", -5, 1),
        ("INTERVAL 1 MINUTE >= tracks.at - orders.ts AND orders.ts - tracks.at <= INTERVAL 5 MINUTES", -5, 1),
        ("tracks.at BETWEEN orders.ts + INTERVAL 1 HOUR AND orders.ts + INTERVAL 2 HOURS", 60, 120),
        ("tracks.at BETWEEN orders.ts AND orders.ts + INTERVAL '1 minute 30 seconds'", 0, 1.5),
        ("tracks.at BETWEEN orders.ts - INTERVAL 1 MINUTE 30 SECONDS AND orders.ts", -1.5, 0),
        ("tracks.at BETWEEN orders.ts AND orders.ts + INTERVAL '00:01:30' HOUR TO SECOND", 0, 1.5),
        (
            "tracks.at BETWEEN orders.ts AND orders.ts + INTERVAL '1 00:00:30.5' DAY TO SECOND",
            0,
            1440 + 30.5 / 60,
        ),
        ("tracks.at BETWEEN orders.ts - INTERVAL '1 2' DAY TO HOUR AND orders.ts", -26 * 60, 0),
        ("tracks.at BETWEEN orders.ts AND timestampadd(MINUTE, 5, orders.ts)", 0, 5),
        ("tracks.at BETWEEN dateadd(MINUTE, -5, orders.ts) AND orders.ts", -5, 0),
        ("abs(tracks.at - orders.ts) <= INTERVAL 5 MINUTES", -5, 5),
        ("INTERVAL 5 MINUTES >= abs(orders.ts - tracks.at)", -5, 5),
        ("tracks.at = orders.ts", 0, 0),
        ("orders.ts <=> tracks.at", 0, 0),
        ("tracks.at = orders.ts + INTERVAL 1 MINUTE", 1, 1),
        ("TRACKS.AT >= Orders.TS AND `tracks`.`at` <= orders.ts + INTERVAL 1 WEEK", 0, 7 * 1440),
        # Of several bounds the narrower counts.
        (
            "at BETWEEN ts - INTERVAL 5 MINUTES AND ts + INTERVAL 9 MINUTES AND at <= ts + INTERVAL 1 MINUTE",
            -5,
            1,
        ),
    ],
)
def test_a_time_bound_is_read_however_it_is_written(text: str, lower: float, upper: float) -> None:
    assert bounds(text) == (round(lower * MINUTE), round(upper * MINUTE))


def test_a_strict_bound_is_one_microsecond_less() -> None:
    assert bounds("at > ts - INTERVAL 5 SECONDS AND at < ts + INTERVAL 3 SECONDS") == (
        -5 * US + 1,
        3 * US - 1,
    )
    assert bounds("ts < at + INTERVAL 5 SECONDS AND ts > at - INTERVAL 3 SECONDS") == (
        -5 * US + 1,
        3 * US - 1,
    )
    assert bounds("abs(ts - at) < INTERVAL 2 SECONDS") == (-2 * US + 1, 2 * US - 1)
    assert bounds("abs(ts - at - INTERVAL 1 SECOND) <= INTERVAL 2 SECONDS") == (-3 * US, US)


def test_a_one_sided_or_missing_bound_is_left_open() -> None:
    assert bounds("at >= ts") == (0, None)
    assert bounds("at < ts") == (None, -1)
    assert bounds("true") == (None, None)


def test_half_a_between_is_a_bound_and_stays_in_the_rest() -> None:
    parts = split(
        "cell_a = cell_b AND b BETWEEN a AND until",
        SqlSide("l", "a", ("a", "cell_a")),
        SqlSide("r", "b", ("b", "cell_b", "until")),
    )
    assert (parts.bounds.lower_us, parts.bounds.upper_us) == (0, None)
    assert parts.rest is not None
    assert parts.rest.over(lambda side, column: column) == "(`b` BETWEEN `a` AND `until`)"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("orders.cell = tracks.cell", [JoinKey("cell", "cell")]),
        ("tracks.cell == orders.cell", [JoinKey("cell", "cell")]),
        ("(orders.cell) = (tracks.cell)", [JoinKey("cell", "cell")]),
        ("city = town AND orders.cell = tracks.cell", [JoinKey("city", "town"), JoinKey("cell", "cell")]),
        ("city = town AND (town = city)", [JoinKey("city", "town")]),
        ("CITY = Town", [JoinKey("city", "town")]),
        ("`odd name` = town", [JoinKey("odd name", "town")]),
        ("city <=> town", [JoinKey("city", "town", null_safe=True)]),
        ("town IS NOT DISTINCT FROM city", [JoinKey("city", "town", null_safe=True)]),
        ("lower(orders.city) = lower(tracks.town)",
         [JoinKey("lower(`city`)", "lower(`town`)", expressions=True)]),
        ("tracks.loc.place = fare + 1", [JoinKey("`fare` + 1", "`loc`.place", expressions=True)]),
        ("case when city = 'x' then 1 else fare end <=> cast(speed as int)",
         [JoinKey("case when `city` = 'x' then 1 else `fare` end", "cast(`speed` as int)", True, True)]),
        ("items[0] IS NOT DISTINCT FROM (city)", [JoinKey("(`city`)", "`items`[0]", True, True)]),
    ],
)  # fmt: skip
def test_equalities_between_the_streams_are_keys(text: str, keys: list[JoinKey]) -> None:
    parts = split(f"{text} AND {BOUNDS}")
    assert list(parts.keys) == keys
    assert parts.rest is None
    assert (parts.bounds.lower_us, parts.bounds.upper_us) == (0, MINUTE)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("speed < 10", "(`R:speed` < 10)"),
        ("tracks.speed < orders.fare", "(`R:speed` < `L:fare`)"),
        ("(speed < 1 OR fare > 3 AND city = 'a AND b')",
         "(`R:speed` < 1 OR `L:fare` > 3 AND `L:city` = 'a AND b')"),
        ("orders.loc.x = 3", "(`L:loc`.x = 3)"),
        ("orders.cell = orders.city", "(`L:cell` = `L:city`)"),
        ("city = town || fare", "(`L:city` = `R:town` || `L:fare`)"),
        ("exists(items, q -> q.speed > orders.fare)", "(exists(`R:items`, q -> q.speed > `L:fare`))"),
        ("NOT speed BETWEEN 1 AND 2", "(NOT `R:speed` BETWEEN 1 AND 2)"),
        ("CAST(speed AS int) > 1 -- slow\n", "(CAST(`R:speed` AS int) > 1)"),
        ("speed /* of the track */ > 1", "(`R:speed` /* of the track */ > 1)"),
        ("speed > 1 AND (town LIKE 'x%' AND fare IN (1, 2))",
         "(`R:speed` > 1) AND (`R:town` LIKE 'x%') AND (`L:fare` IN (1, 2))"),
        ("city <> town", "(`L:city` <> `R:town`)"),
        ("at - ts <> INTERVAL 1 MONTH", "(`R:at` - `L:ts` <> INTERVAL 1 MONTH)"),
    ],
)  # fmt: skip
def test_the_rest_is_kept_as_it_was_written(text: str, written: str) -> None:
    assert rest(text) == written


def test_true_adds_nothing() -> None:
    assert split(f"true AND {KEY}{BOUNDS}").rest is None
    assert rest("false") == "(false)"


def test_a_qualified_field_of_a_plain_struct_is_found_too() -> None:
    left = SqlSide("a", None, ("k", "b"))
    right = SqlSide("b", None, ("k2", "x"))
    parts = split("k = k2 AND b.x = 1 AND b.y = 2", left, right)
    assert parts.rest is not None
    # As in Spark the name of a stream goes before the field of a column.
    assert parts.rest.over(lambda side, column: f"{side}{column}") == "(`1x` = 1) AND (`0b`.y = 2)"


def test_case_counts_in_a_case_sensitive_session() -> None:
    assert code_of("CITY = town", case_sensitive=True) == "JOIN_SQL_UNKNOWN_COLUMN"
    assert split("City = town", SqlSide("a", None, ("City", "city")), TRACKS, True).keys == (
        JoinKey("City", "town"),
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("orders.cell = tracks.cell OR fare > 3", "JOIN_SQL_OR"),
        ("orders.cell = tracks.cell AND", "JOIN_SQL_SYNTAX"),
        ("cell = tracks.cell", "JOIN_SQL_AMBIGUOUS_COLUMN"),
        ("orders.cell = cars.cell", "JOIN_SQL_UNKNOWN_STREAM"),
        ("orders.cell = tracks.gone", "JOIN_SQL_UNKNOWN_COLUMN"),
        ("orders.cell = gone", "JOIN_SQL_UNKNOWN_COLUMN"),
        ("fare < speed AND at = ts", "JOIN_SQL_NO_KEY"),
        ("array_contains(items, city)", "JOIN_SQL_NO_KEY"),
        (KEY + "speed IN (SELECT 1)", "JOIN_SQL_SUBQUERY"),
        (KEY + "at <= ts + INTERVAL 1 MONTH", "JOIN_SQL_INTERVAL"),
        (KEY + "at <= ts + INTERVAL '1-2' YEAR TO MONTH", "JOIN_SQL_INTERVAL"),
        (KEY + "at <= ts + INTERVAL '0.0000001' SECOND", "JOIN_SQL_INTERVAL"),
        (KEY + "at <= ts + INTERVAL 'soon'", "JOIN_SQL_INTERVAL"),
    ],
)  # fmt: skip
def test_a_condition_that_cannot_be_split_is_refused(text: str, code: str) -> None:
    assert code_of(text) == code


def test_two_streams_of_one_name_cannot_be_told_apart() -> None:
    assert code_of("orders.cell = orders.cell", ORDERS, ORDERS) == "JOIN_SQL_SAME_STREAM"


@pytest.mark.parametrize(
    "name", ["order id", "a-b", "lat/lon", "a.b", "`a b`", "100%", "über", "select", "a:b", "x y z"]
)
def test_names_of_columns_are_no_sql(name: str) -> None:
    assert not is_sql(name)


@pytest.mark.parametrize(
    "text", ["a = b", "a.x <=> b.x", "a AND b", "NOT a", "f(a.x, b.x)", "a = b and", "(a < b)", "a in (b)"]
)
def test_comparisons_and_conjunctions_are_sql(text: str) -> None:
    assert is_sql(text)


# -- as argument of a join ----------------------------------------------------------------------------------


def orders(*columns: str) -> Stream:
    return a_stream("orders", "ts", "cell", *columns)


def tracks(*columns: str) -> Stream:
    return a_stream("tracks", "at", "cell", "speed", *columns)


def joined(on: Any, left: Stream | None = None, right: Stream | None = None, **settings: Any) -> Join:
    node = (left or orders()).join(right or tracks(), on, **settings)._node
    assert isinstance(node, Join)
    return node


def join_error(on: Any, **settings: Any) -> FlowError:
    with pytest.raises(FlowError) as caught:
        joined(on, **settings)
    return caught.value


def test_a_join_takes_keys_time_and_rest_from_sql() -> None:
    node = joined(f"{KEY}{BOUNDS} AND speed < 10")
    assert node.keys == (JoinKey("cell", "cell"),)
    assert node.within == joined("cell", within=between("0 s", "1 minute")).within
    assert node.is_conditional
    assert node.timed_by_sql
    assert not joined(KEY + BOUNDS).is_conditional


def test_sql_keys_go_with_a_window_that_is_given() -> None:
    node = joined("orders.cell = tracks.cell", within="1 minute")
    assert node.within == joined("cell", within="1 minute").within
    assert not node.timed_by_sql


def test_wrong_time_bounds_show_how_to_write_them() -> None:
    shown = "tracks.at BETWEEN orders.ts - INTERVAL 5 MINUTES AND orders.ts + INTERVAL 1 MINUTE"
    missing = join_error("orders.cell = tracks.cell")
    one_sided = join_error(KEY + "at >= ts")
    assert (missing.code, one_sided.code) == ("JOIN_SQL_TIME_MISSING", "JOIN_SQL_TIME_ONE_SIDED")
    assert shown in str(missing)
    assert shown in str(one_sided)
    assert "how long after" in str(one_sided)
    assert join_error(KEY + "at < ts AND at > ts").code == "JOIN_SQL_TIME_EMPTY"
    assert join_error(KEY + BOUNDS, within="1 minute").code == "JOIN_WITHIN_TWICE"


def test_a_column_that_is_called_like_a_comparison_is_a_name() -> None:
    node = joined("a = b", orders("a = b"), tracks("a = b"), within="1 s")
    assert node.keys == (JoinKey("a = b", "a = b"),)


def test_sql_stands_alone() -> None:
    assert join_error(["cell", "orders.cell = tracks.cell"], within="1 s").code == "JOIN_SQL_IN_LIST"


def test_columns_behind_joins_are_known() -> None:
    first = orders("n").join(tracks("m"), "cell", within="1 s", name="near")
    third = a_stream("cars", "seen", "m2", "cell")
    node = joined("near.m = cars.m2 AND at = cars.cell", first, third, within="1 s")
    assert node.keys == (JoinKey("m", "m2"), JoinKey("at", "cell"))
    with pytest.raises(FlowError, match=r"JOIN_SQL_TIME_MISSING.*shows its event time"):
        first.join(third, "m = m2")


def test_time_passes_through_semi_joins_and_filters() -> None:
    first = orders().join(tracks(), "cell", within="1 s", how="semi", name="some").filter("cell > 1")
    third = a_stream("cars", "seen", "place")
    assert joined("cell = place AND ts = seen", first, third).within == joined("cell", within="0 s").within
