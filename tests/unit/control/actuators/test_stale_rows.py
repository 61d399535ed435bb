"""Which rows are stale: about as many as do not fit, the oldest ones, in streams in order and out of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.control.receipts.test_completeness import ALL, OPERATORS, state
from tests.unit.control.test_outcome import a_report

from tidegate.control.actuators.stale_rows import (
    CONTROL,
    TENTHS,
    ahead_us,
    applied,
    decide,
    delays,
    fresh_from,
    learn,
)
from tidegate.control.planning import next_plan
from tidegate.model.manifest import Manifest, StreamClock
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import SideRows, StateChange, TaskReport
from tidegate.model.times import BEGINNING_US

SECOND = 10**6
SHARES = st.floats(0.05, 0.95)


def spans_of(
    times: np.ndarray[tuple[int], np.dtype[np.int64]], slot_us: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Rows as tasks store them: a run for every slot."""
    slots = [times[times // slot_us == slot] for slot in np.unique(times // slot_us)]
    return np.array([(some.min(), some.max(), len(some)) for some in slots], np.float64)


@given(SHARES, st.integers(0, 2**31), st.sampled_from([0.0, 0.3, 1.0, 8.0]), st.sampled_from([0.5, 1.0, 2.0]))
def test_about_that_part_of_the_next_rows_is_fresh_however_late_rows_come(
    keep_share: float, seed: int, delayed: float, longer: float
) -> None:
    random = np.random.default_rng(seed)

    def batch(begin: float, seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        came = begin + seconds * random.random(4000)
        return ((100 + came - delayed * random.random(4000)) * SECOND).astype(np.int64)

    last, coming = batch(0, 1), batch(1, longer)
    seen_us = round(101 * SECOND)
    known = delays(spans_of(last, SECOND // 2), 0, seen_us, SECOND, ())
    fresh_us = fresh_from(keep_share, seen_us, longer * SECOND, known)
    assert np.mean(coming >= fresh_us) == pytest.approx(keep_share, abs=0.12)


@given(SHARES, SHARES, st.lists(st.floats(0, 1e9), min_size=11, max_size=11), st.floats(0, 1e9))
def test_a_smaller_part_never_lets_in_older_rows(
    one: float, other: float, delayed: list[float], ahead: float
) -> None:
    rising = np.maximum.accumulate(delayed).tolist()
    fewer, more = (fresh_from(share, 0, ahead, rising) for share in sorted((one, other)))
    assert fewer >= more
    assert fewer <= round(ahead)


def test_rows_in_order_have_no_delay_and_what_is_known_of_stale_ones_stays() -> None:
    even = np.array([(0.0, 999_999.0, 500.0)])
    assert max(delays(even, 0, SECOND, SECOND, ())) <= 1
    # The newer half was let in, and what the older half was like is known from before.
    newer = np.array([(500_000.0, 999_999.0, 250.0)])
    told = delays(newer, 250, SECOND, SECOND, [7.0 * SECOND] * TENTHS.size)
    assert max(told[:5]) <= 1
    assert told[6:] == [7.0 * SECOND] * 5


def test_a_stream_is_expected_to_move_as_it_did_but_not_ahead_of_the_clock() -> None:
    paces = [1.0, 1.0, 3600.0, 1.0, 1.1]
    moves_us = [SECOND * pace for pace in paces]
    assert ahead_us(paces, moves_us, 0, 10 * SECOND, 2 * SECOND) == 2 * SECOND
    assert ahead_us([5.0], moves_us, 9 * SECOND, 10 * SECOND, 2 * SECOND) == SECOND
    assert ahead_us([5.0], moves_us, 11 * SECOND, 10 * SECOND, 2 * SECOND) == 10 * SECOND
    # After a pause, a source that is read in portions has no larger one; one that gives all it has does.
    portions, growing = [1.5 * SECOND, 1.6 * SECOND], [1.0 * SECOND, 3.0 * SECOND]
    assert ahead_us([1.0, 0.5], portions, 0, 99 * SECOND, 10 * SECOND) == 1.55 * SECOND
    assert ahead_us([1.0, 1.0], growing, 0, 99 * SECOND, 10 * SECOND) == 10 * SECOND


def stored(side: int, batch: int, first_us: int, last_us: int, rows: int) -> Piece:
    data = ByteRange(f"{side}-{batch}", 0, 1, "")
    return Piece("near", side, 0, 0, rows, first_us, last_us, (batch, batch), False, (0,), (0, rows), data)


def came(batch: int, seconds: int, *, stale: int = 0) -> TaskReport:
    """A second of rows of both streams, up to this one."""
    pieces = tuple(
        stored(side, batch, (seconds - 1) * SECOND, seconds * SECOND - 1, 100 - stale) for side in (0, 1)
    )
    return replace(
        a_report("near"),
        rows=SideRows(offered=(100, 100), stale=(stale, stale)),
        state=StateChange(added=pieces),
    )


def at(seconds: int, control: dict[str, object] | None = None) -> Manifest:
    clock = StreamClock(seconds * SECOND, seconds * SECOND, heard_us=(89 + seconds) * SECOND)
    return replace(state(), clocks={"a": clock, "b": clock}, control={CONTROL: control} if control else {})


def played(keep_share: float, batches: int = 3, before: Manifest | None = None) -> Manifest:
    """Batches a second apart, each with a second of rows."""
    operators, before = {"near": replace(OPERATORS["near"], inputs=("a", "b"))}, before or at(10)
    for batch in range(batches):
        plan = next_plan(batch, before, operators, now_us=(100 + batch) * SECOND)
        after = at(11 + batch)
        learnt = learn(before, plan, [came(batch, 11 + batch)], after, operators, ("near",), keep_share)
        before = replace(after, control={CONTROL: learnt})
    return before


def test_the_plan_says_from_when_on_rows_are_fresh() -> None:
    manifest = played(0.25)
    fresh_us = decide(manifest, now_us=103 * SECOND)
    assert fresh_us == {name: pytest.approx(13.75 * SECOND, abs=2) for name in ("a", "b")}
    # Half a second went by, so half a second of rows is there.
    half = decide(manifest, now_us=102 * SECOND + SECOND // 2)["a"]
    assert half == pytest.approx(13.375 * SECOND, abs=2)
    found = applied({"near": ALL, "far": ALL}, fresh_us, OPERATORS, ("near", "far"))
    assert found["near"].fresh_us == (fresh_us["a"], fresh_us["b"])
    # What another join gives comes as it comes.
    assert found["far"].fresh_us == (BEGINNING_US, fresh_us["b"])


def test_all_rows_are_fresh_where_they_fit_and_before_anything_is_known() -> None:
    assert decide(played(1.0), now_us=103 * SECOND) == {}
    assert decide(at(10), now_us=103 * SECOND) == {}
    # The first batch has what gathered, nobody knows since when.
    assert decide(played(0.25, 1, state(seen_us=BEGINNING_US)), now_us=103 * SECOND) == {}
    assert applied({"near": ALL}, {}, OPERATORS, ("near",)) == {"near": ALL}


def test_a_stream_that_brought_nothing_says_nothing_new() -> None:
    manifest = played(0.25)
    operators = {"near": OPERATORS["near"]}
    plan = next_plan(3, manifest, operators, now_us=103 * SECOND)
    learnt = learn(manifest, plan, [a_report("near")], manifest, operators, ("near",), 0.25)
    assert learnt["streams"] == manifest.control[CONTROL]["streams"]
