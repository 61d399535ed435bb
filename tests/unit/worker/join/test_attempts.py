"""Two attempts of one task, both complete, as speculation makes them: only the reported one counts."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.oracle.expected import duckdb_join
from tests.oracle.plain_engine import PlainEngine, Row
from tests.oracle.plain_join import PlainJoin

from tidegate.join.within import Within
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import reports_in
from tidegate.state.recovery import referenced, sweep
from tidegate.worker.runtime.layout import REPORT

BATCHES, ROWS = 6, 40
WITHIN = Within(-5, 7)


class Speculating(PlainEngine):
    """Every task runs twice to its end; now the first, now the second is believed."""

    def __init__(self, join: PlainJoin) -> None:
        super().__init__([join], {"a": 0, "b": 0})
        self.chance = random.Random(3)
        #: Files of the attempts that were not believed, and all files that sweeping has deleted.
        self.ignored: set[str] = set()
        self.deleted: set[str] = set()

    def _task(
        self, join: PlainJoin, plan: Plan, before: Manifest, instance: int, rows: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        attempts = [list(super(Speculating, self)._task(join, plan, before, instance, rows)) for _ in "12"]
        believed = self.chance.randrange(2)
        self.ignored |= _files(attempts[1 - believed])
        assert not _files(attempts[0]) & _files(attempts[1]), "two attempts wrote to one file"
        yield from attempts[believed]

    def _sweep(self) -> None:
        self.deleted |= set(sweep(self.store, self.manifest))


def _files(batches: list[pa.RecordBatch]) -> set[str]:
    text = batches[-1].column(REPORT)[0].as_py()
    ((report,), _) = reports_in([text])
    return referenced(report.state.added) | {place.file for place in report.state.matched.values()}


def _rows(chance: random.Random, batch: int) -> list[Row]:
    return [
        (10 * batch + chance.randrange(10), chance.choice((*range(8), None)), 1000 * batch + n, 0)
        for n in range(ROWS)
    ]


@pytest.mark.parametrize("how", ["inner", "left"])
def test_of_two_complete_attempts_only_the_reported_one_is_referenced_and_the_other_swept(how: str) -> None:
    chance = random.Random(1)
    engine = Speculating(PlainJoin("near", "a", "b", how, WITHIN, ("a_n", "a_v"), ("b_n", "b_v")))
    all_rows: dict[str, list[Row]] = {"a": [], "b": []}
    for batch in range(BATCHES):
        rows = {stream: sorted(_rows(chance, batch), key=lambda row: row[0] or 0) for stream in all_rows}
        for stream, more in rows.items():
            all_rows[stream] += more
        engine.run(rows, flush=batch == BATCHES - 1)
        named = referenced(engine.manifest.pieces)
        assert not named & engine.ignored
        assert set(engine.store.list("segments")) == named
    assert len(engine.ignored) >= BATCHES
    assert engine.ignored <= engine.deleted
    left, right = ([(*row[1:], row[0]) for row in all_rows[stream]] for stream in ("a", "b"))
    assert engine.emitted["near"] == duckdb_join(left, right, WITHIN, how)
    engine.close()
