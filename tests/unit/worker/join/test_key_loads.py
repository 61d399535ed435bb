"""Which keys a task tells of: all that make much of its work, few of the others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.reports import KeyLoad
from tidegate.model.routing import Place, Placement, Routing
from tidegate.route.targets import PROBE, STORE
from tidegate.worker.join import key_loads as module
from tidegate.worker.join.key_loads import KEYS_MAX, SHARE, combined, key_loads
from tidegate.worker.runtime.runs import NewRun

EVEN = Routing(0, 2, Placement((0, 1)))


def run(codes: list[int], pairs: list[int], side: int = 0, role: int = STORE | PROBE) -> NewRun:
    order = np.argsort(codes, kind="stable")
    made = NewRun(side, False, 0, 0, 0, (), role)
    made.codes = np.array(codes, np.uint64)[order]
    made.pairs = np.array(pairs, np.int64)[order]
    return made


def batch(routing: Routing = EVEN, watch: bool = True) -> SimpleNamespace:
    return SimpleNamespace(watch_keys=watch, state=SimpleNamespace(routing=routing))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 50)), min_size=1, max_size=60))
@settings(max_examples=50)
def test_a_key_that_makes_much_of_the_work_is_told_exactly(rows: list[tuple[int, int]]) -> None:
    codes, pairs = [code for code, _ in rows], [count for _, count in rows]
    told = {key.code: key for key in key_loads(batch(), 0, [], [run(codes, pairs)])}  # type: ignore[arg-type]
    for code in set(codes):
        came = codes.count(code)
        compared = sum(count for key, count in rows if key == code)
        if came + compared > SHARE * (len(rows) + sum(pairs)):
            key = told[code]
            assert (key.arrived, key.stored, key.comparisons) == ((came, 0), (came, 0), compared)


def test_a_key_that_is_light_in_every_run_is_told_where_it_is_heavy_in_all() -> None:
    """Twelve runs of a thousand keys: a key with 0.1 % of some and 0.4 % of others has enough of all."""
    runs = []
    for number in range(12):
        codes = [77] * (4 if number % 2 else 1) + list(range(1000, 2000))
        runs.append(run(codes, [0] * len(codes), side=number % 2))
    told = {key.code: key for key in key_loads(batch(), 0, [], runs)}  # type: ignore[arg-type]
    assert told[77].arrived == (6, 24)
    assert len(told) == 1


def test_rows_that_are_only_borrowed_do_not_count_as_arrived() -> None:
    (key,) = key_loads(batch(), 0, [], [run([5, 5], [3, 4], side=1, role=PROBE)])  # type: ignore[arg-type]
    assert (key.arrived, key.comparisons) == ((0, 0), 7)


def test_keys_with_a_place_here_are_told_even_when_they_are_cold() -> None:
    routing = Routing(1, 2, Placement((0, 1, 1), keys={77: Place((2,), (2,))}))
    assert [key.code for key in key_loads(batch(routing), 1, [], [])] == [77]  # type: ignore[arg-type]
    assert key_loads(batch(routing), 0, [], []) == ()  # type: ignore[arg-type]


def test_no_more_keys_are_told_than_a_report_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    many = list(range(3 * KEYS_MAX))
    monkeypatch.setattr(module, "SHARE", 0.0)
    assert len(key_loads(batch(), 0, [], [run(many, many)])) == KEYS_MAX  # type: ignore[arg-type]


def test_the_loads_of_portions_are_told_as_one() -> None:
    routing = Routing(1, 2, Placement((0, 1, 1), keys={77: Place((2,), (2,))}))
    work = batch(routing)
    parts = [[run([5] * 9 + [6], [2] * 10)], [run([5] * 4 + [7], [1] * 5, side=1)], []]
    loads = [key_loads(work, 1, [], part) for part in parts]  # type: ignore[arg-type]
    told = {key.code: key for key in combined(work, 1, loads, [])}  # type: ignore[arg-type]
    assert sorted(told) == [5, 6, 7, 77]
    assert (told[5].arrived, told[5].stored, told[5].comparisons) == ((9, 4), (9, 4), 22)
    assert (told[77].arrived, told[77].comparisons) == ((0, 0), 0)


def test_the_loads_of_portions_are_no_more_than_a_report_can_hold() -> None:
    portions = [
        [KeyLoad(2 * KEYS_MAX * part + n, (0, 0), (n, 0), n) for n in range(2 * KEYS_MAX)] for part in (0, 1)
    ]
    told = combined(batch(), 0, portions, [])  # type: ignore[arg-type]
    assert len(told) == KEYS_MAX
    assert min(key.comparisons for key in told) == 3 * KEYS_MAX // 2


def test_nothing_is_counted_where_nobody_asks() -> None:
    assert key_loads(batch(watch=False), 0, [], [run([1], [1])]) == ()  # type: ignore[arg-type]
