"""The ledger law over the real tasks: whatever is late, dropped, moved or run twice, every row is told of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.plain_engine import PlainEngine, small_steps
from tests.oracle.plain_join import Condition, PlainJoin
from tests.oracle.stories import HOWS, WITHIN, Story, accepted, stories
from tests.property.test_join_skipping import skippings

from tidegate.control.receipts.ledger import RANDOM_DROP, Counted, LedgerLine, lines_of
from tidegate.join.within import Unbounded
from tidegate.model.graph import Reader


@pytest.fixture(autouse=True, scope="module")
def merges_early_and_small_chunks() -> Iterator[None]:
    with small_steps():
        yield


def readers_of(how: str) -> list[Reader]:
    keeps = (how in ("left", "full", "left_anti"), how in ("right", "full"))
    return [Reader("join1", side, "ab"[side], RANDOM_DROP, True, keeps[side]) for side in (0, 1)]


def played(
    data: st.DataObject, how: str, within: Condition, story: Story, skip: bool
) -> list[dict[Reader, LedgerLine]]:
    join = PlainJoin("join1", "a", "b", how, within, ("a_n", "a_v"), ("b_n", "b_v"))
    partitions = data.draw(st.integers(1, 9))
    engine = PlainEngine([join], story.lateness, partitions=partitions, instances=1)
    lines = []
    for batch in story.batches:
        instances = data.draw(st.integers(1, 3))
        owner = st.integers(0, instances - 1)
        engine.reroute(
            "join1", instances, data.draw(st.lists(owner, min_size=partitions, max_size=partitions))
        )
        counted = len(engine.reports)
        plan = {"join1": data.draw(skippings(within))} if skip else None
        engine.run(batch, attempts=data.draw(st.sampled_from([1, 1, 2])), skipping=plan)
        lines.append(lines_of(readers_of(how), engine.reports[counted:], (), Counted()))
    engine.close()
    return lines


@given(st.data())
@settings(max_examples=settings().max_examples // 2)
def test_every_row_of_every_batch_is_processed_shed_late_or_rejected(data: st.DataObject) -> None:
    within = data.draw(WITHIN)
    skip = data.draw(st.booleans())
    how = data.draw(
        st.sampled_from(["inner", "left_semi"] if skip or isinstance(within, Unbounded) else HOWS)
    )
    story = data.draw(stories(ordered=False))
    lines = played(data, how, within, story, skip)
    for batch, found in zip(story.batches, lines, strict=True):
        for reader, line in found.items():
            assert line.unexplained == 0
            rows = batch.get(reader.source, ())
            assert line.offered == len(rows)
            assert line.rejected == sum(row[0] is None for row in rows)
    for stream in "ab":
        mine = [line for found in lines for reader, line in found.items() if reader.source == stream]
        assert sum(line.processed + line.dropped for line in mine) == len(accepted(story, stream))
