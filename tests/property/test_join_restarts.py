"""A join that goes on under other settings: no pair comes twice or falsely, and what is missing is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.expected import Flat
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.stories import WITHIN, Story, stories
from tests.property.test_join_repair import (
    PLENTY,
    join_of,
    keeping_rows,
    repairs,
    restarted,
    without_batches,
)
from tests.property.test_join_routing import KEYS, assignments
from tests.property.test_join_skipping import exact, skippings

#: What a run does with pairs: probes all, skips for good, or skips and repairs, in some batches or at once.
NO_GOAL, LOSES, REPAIRS, PAYS = "no goal", "loses", "repairs", "pays"


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def batch_of(story: Story) -> dict[tuple[str, int], int]:
    """By stream and number of a row: its batch; numbers are unique within a stream."""
    return {
        (stream, row[2]): number
        for number, batch in enumerate(story.batches)
        for stream in "ab"
        for row in batch.get(stream, ())
    }


@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)
def test_pairs_that_are_missing_were_skipped_and_not_repaired_or_were_written_off(
    data: st.DataObject,
) -> None:
    within, story = data.draw(WITHIN), data.draw(stories(ordered=True))
    partitions = data.draw(st.integers(1, 5))
    engine = PlainEngine([join_of("inner", within)], story.lateness, partitions=partitions, instances=1)
    wanted, lost, given_up = assignments(partitions, (*KEYS,)), set(), set()
    for number, batch in enumerate(story.batches):
        run = data.draw(st.sampled_from([NO_GOAL, LOSES, REPAIRS, REPAIRS, PAYS]), label="settings")
        if data.draw(st.booleans(), label="other balance"):
            engine.assign("join1", data.draw(wanted))
        longer = {name: data.draw(st.integers(0, 9)) for name in "ab"}
        engine.settings = {
            name: replace(one, lateness_us=one.lateness_us + longer[name])
            for name, one in engine.settings.items()
        }
        engine.manifest = restarted(engine.manifest)
        skipping = keeping_rows(data.draw(skippings(within)))
        lost |= {number} if run == LOSES else set()
        engine.run(
            batch,
            attempts=data.draw(st.sampled_from([1, 1, 2])),
            skipping={} if run == NO_GOAL else {"join1": skipping},
            repair_bytes=PLENTY if run in (REPAIRS, PAYS) else None,
            repairs=data.draw(repairs(engine.manifest.debts, 5)) if run in (REPAIRS, PAYS) else {},
            repair_all=run == PAYS,
        )
        given_up |= {debt.batch for debt in engine.manifest.written_off}
    given_up |= {debt.batch for debt in engine.manifest.debts}
    emitted = without_batches(engine.emitted["join1"])
    engine.close()
    check(emitted, exact(story, within, "inner"), story, lost | given_up)


def check(emitted: Counter[Flat], true: Counter[Flat], story: Story, may_lack: set[int]) -> None:
    assert emitted <= true
    came = batch_of(story)
    for row in true - emitted:
        # (key, number and value of the left row, those of the right row, time)
        assert max(came["a", row[1]], came["b", row[3]]) in may_lack  # type: ignore[index]
