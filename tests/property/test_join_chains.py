"""A join that feeds a join gives what two joins of the finished data give, one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.expected import Flat, naive
from tests.oracle.plain_engine import PlainEngine
from tests.oracle.plain_join import PlainJoin
from tests.oracle.stories import WITHIN, Story, accepted, hows, stories

from tidegate.join.within import Unbounded

STREAMS = ("a", "b", "c")
FAR = 10_000


def chain(data: st.DataObject, upstream_left: bool) -> list[PlainJoin]:
    """a ⋈ b, and its rows joined with c, on either side."""
    first_within, second_within = data.draw(WITHIN), data.draw(WITHIN)
    first_how, second_how = data.draw(hows(first_within)), data.draw(hows(second_within))
    first = PlainJoin("join1", "a", "b", first_how, first_within, ("a_n", "a_v"), ("b_n", "b_v"))
    sides = (("join1", first.shown_columns), ("c", ("c_n", "c_v")))
    (left, left_columns), (right, right_columns) = sides if upstream_left else sides[::-1]
    return [first, PlainJoin("join2", left, right, second_how, second_within, left_columns, right_columns)]


def finish(engine: PlainEngine, flush: bool) -> None:
    """Time moves on for all streams, then each join of the chain needs a batch to see that."""
    if flush:
        engine.run({}, flush=True)
        return
    engine.run({stream: [(FAR, None, 0, 0)] for stream in STREAMS})
    for _ in range(3):
        engine.run({})


def expected_of(joins: list[PlainJoin], story: Story) -> tuple[list[Flat], list[Flat]]:
    first, second = joins
    rows = {stream: accepted(story, stream) for stream in STREAMS}
    middle = list(naive(rows["a"], rows["b"], first.within, first.how, (2, 2)).elements())
    inputs = {"join1": middle, "c": rows["c"]}
    widths = (len(second.left_columns), len(second.right_columns))
    final = naive(inputs[second.left], inputs[second.right], second.within, second.how, widths)
    return middle, list(final.elements())


def by_text(rows: list[Flat]) -> list[Flat]:
    return sorted(rows, key=repr)


@given(st.data(), st.booleans(), st.booleans(), st.booleans())
def test_a_chain_of_joins_equals_joins_of_finished_data(
    data: st.DataObject, upstream_left: bool, ordered: bool, settle_after: bool
) -> None:
    joins = chain(data, upstream_left)
    story = data.draw(stories(STREAMS, ordered=ordered))
    engine = PlainEngine(joins, story.lateness, partitions=5, instances=data.draw(st.integers(1, 3)))
    for batch in story.batches:
        engine.run(batch, settle_after=settle_after)
    # Left rows of any age may leave a semi join over the full history: behind it only the end settles rows.
    timeless = isinstance(joins[0].within, Unbounded) and joins[0].how == "left_semi"
    finish(engine, flush=timeless or data.draw(st.booleans()))
    joined = {name: list(rows.elements()) for name, rows in engine.emitted.items()}
    engine.close()
    middle, final = expected_of(joins, story)
    assert by_text(joined["join1"]) == by_text(middle)
    assert by_text(joined["join2"]) == by_text(final)
