from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.model.reports import MatchReport, reports_in
from tidegate.model.times import BEGINNING_US
from tidegate.sift.filter.decision import keep_by_hash
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.query_set import QuerySet
from tidegate.sift.regions import Domain, Regions
from tidegate.worker.match import task
from tidegate.worker.match.task import MatchTask, MatchWork, Queries
from tidegate.worker.runtime.layout import HASH, QUERY_NAME, REPORT, SAMPLE, TIME, MatchLayout
from tidegate.worker.runtime.stage_file import Kept

QUERIES = QuerySet.of([RangeQuery("low", "x < 5"), RangeQuery("all", "x is not null")], {"x": "number"})


@dataclass(frozen=True)
class Here:
    value: Queries


def work(**more: Any) -> MatchWork:
    schema = pa.schema([("x", pa.float64()), (QUERY_NAME, pa.string()), (REPORT, pa.string())])
    layout = MatchLayout("match1", "s", QUERIES.boxes.axes, schema.serialize().to_pybytes())
    queries = Queries(QueryIndex.of(QUERIES.boxes), pa.array(QUERIES.names))
    return MatchWork(layout, Here(queries), 0, **more)


def random_rows(seed: int, count: int = 1000) -> tuple[MatchWork, pa.RecordBatch]:
    """Rows with a time, a few of them null or NaN, against intervals of which many, few or none hold them."""
    random = np.random.default_rng(seed)
    low = random.uniform(0, 8, 300)
    asked = [RangeQuery(f"q{i}", f"x >= {a!r} and x < {a + 0.5!r}") for i, a in enumerate(low.tolist())]
    queries = QuerySet.of(asked, {"x": "number"})
    x = random.uniform(0, 10, count)
    x[random.random(count) < 0.05] = np.nan
    null = random.random(count) < 0.05
    columns = {"x": pa.array(x, mask=null), "n": np.arange(count), TIME: np.arange(count) * 1000}
    fields = [("ts", pa.timestamp("us", "UTC")), ("x", pa.float64()), ("n", pa.int64())]
    schema = pa.schema([*fields, (QUERY_NAME, pa.string()), (REPORT, pa.string())])
    layout = MatchLayout("match1", "s", queries.boxes.axes, schema.serialize().to_pybytes(), time="ts")
    sent = Here(Queries(QueryIndex.of(queries.boxes), pa.array(queries.names)))
    return MatchWork(layout, sent, 0), pa.RecordBatch.from_pydict(columns)


def rows_of(table: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Without Python's NaN, which equals nothing."""
    return [tuple(map(repr, row.values())) for row in table.to_pylist()]


def run(given: MatchWork, **columns: Any) -> tuple[list[tuple[Any, ...]], MatchReport]:
    batch = pa.RecordBatch.from_pydict(columns)
    *results, last = MatchTask(given, "nowhere").run(iter([batch]))
    rows = [row for result in results for row in zip(*result.to_pydict().values(), strict=True)]
    return rows, report_in(last)


def report_in(last: pa.RecordBatch) -> MatchReport:
    _, (report,) = reports_in(last.column(REPORT).to_pylist())
    return report


def test_a_row_comes_out_once_for_every_query_that_it_satisfies() -> None:
    rows, report = run(work(), x=[1.0, 7.0, None], **{TIME: [10, 11, 12]})
    assert [row[:2] for row in rows] == [(1.0, "low"), (1.0, "all"), (7.0, "all")]
    assert (report.received, report.matched, report.emitted, report.seen_us) == (3, 2, 3, 12)


def test_rows_that_are_late_or_without_a_usable_time_are_counted_and_left_out() -> None:
    times = [5, 10, 99, BEGINNING_US]
    rows, report = run(work(late_before_us=6, newest_us=50), x=[1.0] * 4, **{TIME: times})
    assert len(rows) == 2
    assert (report.late, report.rejected, report.seen_us) == (1, 2, 10)


def half_open() -> Sifter:
    regions = Regions(
        Domain(np.zeros(1), np.ones(1) * 10),
        np.array([0], np.int32),
        np.array([5.0]),
        np.array([[~0, ~1]], np.int32),
    )
    return Sifter(QUERIES.boxes.axes, regions, np.array([0.0, 0.5]))


def test_samples_are_told_with_their_hits_and_others_by_region() -> None:
    columns = {TIME: [1, 2, 3, 4], SAMPLE: [True, False, False, False]}
    _, report = run(work(sifter=half_open()), x=[1.0, 2.0, 7.0, None], **columns)
    assert report.kept == (1, 2)
    assert report.sampled == 1
    told = report.sample
    assert told is not None
    assert (told.coordinates.tolist(), told.hits.tolist()) == ([[1.0]], [2])


def test_what_the_task_itself_drops_was_never_received() -> None:
    hashed = np.arange(-(2**63), 2**63 - 2**55, 2**55, dtype=np.int64)
    x = np.full(len(hashed), 7.0)
    given = replace(work(), sifter=half_open())
    columns = {TIME: np.arange(len(x)), HASH: hashed, SAMPLE: np.zeros(len(x), bool)}
    rows, report = run(given, x=x, **columns)
    passes = keep_by_hash(np.ones(len(x), np.int32), hashed, half_open().thresholds)
    assert 0 < len(rows) == report.received == np.count_nonzero(passes) < len(x)


def test_the_event_time_travels_once_and_comes_out_as_the_column_that_it_is() -> None:
    given, batch = random_rows(seed=1)
    result, _ = MatchTask(given, "nowhere").run(iter([batch]))
    assert result.column("ts").cast(pa.int64()).equals(pc.multiply(result.column("n"), 1000))


@pytest.mark.parametrize("count", [0, 7, 1000])
def test_what_is_staged_says_what_goes_through_spark(tmp_path: Path, count: int) -> None:
    given, batch = random_rows(seed=2, count=count)
    *plain, report = MatchTask(given, "nowhere").run(iter([batch]))
    expected = [row for result in plain for row in rows_of(result.drop_columns([REPORT]))]
    names = [name for name in plain[0].schema.names if name != REPORT] if plain else []
    for kept_as in (None, Kept("zstd", tuple(names))):
        work = replace(given, stage_root=str(tmp_path), kept_as=kept_as)
        (staged_report,) = MatchTask(work, f"file-{kept_as is None}").run(iter([batch]))
        told = report_in(staged_report)
        assert told.emitted == report_in(report).emitted == len(expected)
        assert (told.staged is None) == (not expected)
        if told.staged is None:
            continue
        table = pq.read_table(tmp_path / told.staged)
        if work.lists_queries:
            names = pc.list_flatten(table.column(QUERY_NAME))
            table = table.take(pc.list_parent_indices(table.column(QUERY_NAME)))
            table = table.set_column(table.schema.get_field_index(QUERY_NAME), QUERY_NAME, names)
        assert table.schema.field(QUERY_NAME).type == pa.string(), "readers need not know of dictionaries"
        assert rows_of(table) == expected


def test_names_are_written_once_in_every_piece_however_many_there_are(tmp_path: Path) -> None:
    given, batch = random_rows(seed=3)
    work = replace(given, stage_root=str(tmp_path))
    names = pa.array([f"{i:09d}" * 1000 for i in range(300)])  # 2.7 MB of names
    work = replace(work, queries=Here(Queries(given.queries.value.index, names)))
    list(MatchTask(work, "file").run(iter([batch])))
    assert (tmp_path / "file").stat().st_size < 4_000_000


def test_small_batches_are_looked_up_together_and_large_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task, "BLOCK_ROWS", 100)
    _, batch = random_rows(seed=4)
    pieces = [batch.slice(first, 30) for first in range(0, 1000, 30)]
    blocks = list(task.in_blocks(iter(pieces)))
    assert [block.num_rows for block in blocks] == [120] * 8 + [40]
    assert rows_of(pa.Table.from_batches(blocks)) == rows_of(batch)
    monkeypatch.setattr(task, "BLOCK_BYTES", pieces[0].nbytes)
    assert [block.num_rows for block in task.in_blocks(iter(pieces))] == [30] * 33 + [10]
    assert list(task.in_blocks(iter([]))) == []
