"""A join condition written as SQL means what its parts mean one by one, whatever their spelling and order.

The oracle asks every drawn comparison of every pair of rows. The condition under test is the split text:
keys, bounds on time, and the rest.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.joins.sql_conditions import SqlParts, SqlSide, split_condition

Record = dict[str, Any]
LEFT = SqlSide("orders", "ts", ("ts", "k", "j", "x"))
RIGHT = SqlSide("tracks", "at", ("at", "k", "q", "y"))
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Term:
    text: str
    holds: Callable[[Record, Record], bool]


def equal(one: Any, other: Any, null_safe: bool) -> bool:
    return one == other and (null_safe or one is not None)


@st.composite
def key_terms(draw: st.DrawFn) -> Term:
    left, right = draw(st.sampled_from(["k", "j"])), draw(st.sampled_from(["k", "q"]))
    null_safe = draw(st.booleans())
    sign = draw(st.sampled_from(["<=>", "IS NOT DISTINCT FROM"] if null_safe else ["=", "=="]))
    # `k` is in both streams; the others may stand alone.
    one = f"orders.{left}" if left == "k" or draw(st.booleans()) else left
    other = f"tracks.{right}" if right == "k" or draw(st.booleans()) else right
    sides = [one, other]
    if draw(st.booleans()):
        sides.reverse()
    return Term(f" {sign} ".join(sides), lambda a, b: equal(a[left], b[right], null_safe))


@st.composite
def intervals(draw: st.DrawFn) -> tuple[str, int]:
    us = draw(st.integers(-4, 4))
    texts = [
        f"INTERVAL {us} MICROSECONDS",
        f"INTERVAL '{us}' MICROSECOND",
        f"interval '{us} microseconds'",
        f"(- INTERVAL {-us} MICROSECONDS)",
        f"INTERVAL '{us / 10**6:.6f}' SECOND",
        f"INTERVAL '1 second {us - 10**6} microseconds'",
    ]
    return draw(st.sampled_from(texts)), us


@st.composite
def time_terms(draw: st.DrawFn) -> Term:
    (text, us), (more, us2) = draw(intervals()), draw(intervals())
    ts = draw(st.sampled_from(["orders.ts", "ts", "`Orders`.TS"]))
    at = draw(st.sampled_from(["tracks.at", "at"]))
    sign = draw(st.sampled_from(list(COMPARED)))
    shape = draw(st.sampled_from(["right", "left", "difference", "between", "distance"]))
    if shape == "between":
        return Term(
            f"{at} BETWEEN {ts} + {text} AND {more} + {ts}",
            lambda a, b: us <= b["at"] - a["ts"] <= us2,
        )
    if shape == "distance":
        return Term(f"abs({ts} - {at} + {text}) < {more}", lambda a, b: abs(a["ts"] - b["at"] + us) < us2)
    one, other = {
        "right": (at, f"{ts} + {text}"),
        "left": (f"{at} - {text}", ts),
        "difference": (f"({at} - {ts})", text),
    }[shape]
    texts = [f"{one} {sign} {other}", f"{other} {MIRRORED[sign]} {one}"]
    return Term(draw(st.sampled_from(texts)), lambda a, b: COMPARED[sign](b["at"] - a["ts"], us))


REST = [
    Term("x < y", lambda a, b: a["x"] < b["y"]),
    Term("(orders.x = 1 OR tracks.y > 1)", lambda a, b: a["x"] == 1 or b["y"] > 1),
    Term("not orders.x = tracks.y", lambda a, b: a["x"] != b["y"]),
    Term("x * 2 < 3", lambda a, b: a["x"] * 2 < 3),
]


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, list[Term]]:
    terms = draw(st.lists(key_terms(), min_size=1, max_size=2)) + draw(st.lists(time_terms(), max_size=3))
    terms += draw(st.lists(st.sampled_from(REST), max_size=2))
    terms = draw(st.permutations(terms))
    texts = [f"({term.text})" if draw(st.booleans()) else term.text for term in terms]
    while len(texts) > 1:
        # Join two neighbours, with parentheses around them or without.
        at = draw(st.integers(0, len(texts) - 2))
        both = draw(st.sampled_from([" AND ", " and ", "\nAND ", " AND -- next\n "])).join(texts[at : at + 2])
        texts[at : at + 2] = [f"({both})" if draw(st.booleans()) else both]
    return texts[0], list(terms)


#: Every pair of rows that the drawn comparisons can tell apart.
PAIRS = [
    ({"ts": 0, "k": k, "j": j, "x": x}, {"at": at, "k": other, "q": q, "y": y})
    for k, j, other, q in itertools.product([0, None], repeat=4)
    for x, y in itertools.product([0, 1, 2], repeat=2)
    for at in range(-9, 10)
]


def matcher(parts: SqlParts) -> Callable[[Record, Record], bool]:
    """The split condition as a function of two rows."""
    lower = -100 if parts.bounds.lower_us is None else parts.bounds.lower_us
    upper = 100 if parts.bounds.upper_us is None else parts.bounds.upper_us
    text = "True" if parts.rest is None else parts.rest.over(lambda side, column: "ab"[side] + column)
    for sql, python in (("`", ""), (" = ", " == "), ("OR", "or"), ("AND", "and")):
        text = text.replace(sql, python)
    rest = compile(text, "rest", "eval")

    def matches(a: Record, b: Record) -> bool:
        return (
            lower <= b["at"] - a["ts"] <= upper
            and all(equal(a[key.left], b[key.right], key.null_safe) for key in parts.keys)
            and bool(eval(rest, {"ax": a["x"], "by": b["y"]}))
        )

    return matches


@given(conditions())
def test_split_sql_matches_the_pairs_that_its_comparisons_match(condition: tuple[str, list[Term]]) -> None:
    text, terms = condition
    matches = matcher(split_condition(text, LEFT, RIGHT))
    for a, b in PAIRS:
        assert matches(a, b) == all(term.holds(a, b) for term in terms)
