"""Stories: two streams of rows cut into batches, drawn by hypothesis, and which of the rows must count.

Times are small numbers around zero, keys few, so that equal times, hot keys, window edges and duplicates come
by themselves; batches may be empty, and a side may have no rows at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from tests.oracle.expected import Flat
from tests.oracle.plain_engine import Row
from tests.oracle.plain_join import Cell, Condition

from tidegate.join.within import Tumbling, Unbounded, Within

HOWS = ("inner", "left", "right", "full", "left_semi", "left_anti")
Batch = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Story:
    """Rows in the order in which they come, and where the batches are cut."""

    batches: tuple[Batch, ...]
    lateness: Mapping[str, int]

    def all_rows(self, stream: str) -> list[Row]:
        return [row for batch in self.batches for row in batch.get(stream, ())]

    def recut(self, sizes: Sequence[int]) -> Story:
        """The same rows of each stream in other batches: so many of each stream at a time."""
        rest = {stream: self.all_rows(stream) for stream in self.lateness}
        batches: list[Batch] = []
        for size in sizes:
            batches.append({stream: rows[:size] for stream, rows in rest.items()})
            rest = {stream: rows[size:] for stream, rows in rest.items()}
        return Story((*batches, rest), self.lateness)


def accepted(story: Story, stream: str) -> list[Flat]:
    """Rows that are not late, by definition: not below the newest of earlier batches less lateness."""
    kept: list[Flat] = []
    seen: list[int] = []
    for batch in story.batches:
        timed = [(row[0], row[1:]) for row in batch.get(stream, ()) if row[0] is not None]
        oldest = max(seen) - story.lateness[stream] if seen else None
        kept += [(*cells, time) for time, cells in timed if oldest is None or time >= oldest]
        seen += [time for time, _ in timed]
    return kept


#: Bounds of all signs: before and after a row, some time after it, some time before it, one exact distance.
BOUNDS = st.lists(st.integers(-12, 12), min_size=2, max_size=2).map(lambda both: Within(*sorted(both)))
WINDOWED = st.one_of(BOUNDS, BOUNDS, st.builds(Tumbling, st.integers(1, 15)))
WITHIN = st.one_of(WINDOWED, st.just(Unbounded()))


def hows(within: Condition) -> st.SearchStrategy[str]:
    return st.sampled_from(["inner", "left_semi"] if isinstance(within, Unbounded) else HOWS)


@st.composite
def stories(
    draw: st.DrawFn, streams: tuple[str, ...] = ("a", "b"), *, ordered: bool, text_keys: bool = False
) -> Story:
    """`ordered`: disorder stays within lateness, so no row may count as late. Otherwise anything goes."""
    lateness = {stream: draw(st.integers(0, 6)) for stream in streams}
    speaking = draw(st.sampled_from([streams, streams, streams, streams[:1], streams[1:] or streams]))
    keys: st.SearchStrategy[Cell] = st.sampled_from([1, 1, 1, 1, 2, 3, 4, None])
    if text_keys:
        keys = st.sampled_from(["hot", "hot", "hot", "", "x", "x" * 200, "ß", None])
    events = draw(
        st.lists(
            st.tuples(
                st.sampled_from(speaking),
                st.integers(0, 5),
                st.integers(0, 6),
                keys,
                st.integers(0, 3),
                st.sampled_from([0, 0, 0, 1, 1, 2]),
            ),
            max_size=45,
        )
    )
    batches: list[dict[str, list[Row]]] = [{}]
    now = draw(st.integers(-30, 30))
    for number, (stream, step, behind, key, value, cuts) in enumerate(events):
        now += step
        time = now - min(behind, lateness[stream]) if ordered else now - 3 * behind
        row: Row = (None if not ordered and value == 3 and behind == 0 else time, key, number, value)
        batches[-1].setdefault(stream, []).append(row)
        batches.extend({} for _ in range(cuts))
    return Story(tuple(batches), lateness)
