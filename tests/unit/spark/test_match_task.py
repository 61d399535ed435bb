from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.queries import Query
from tidegate.sift.decision import keep_by_hash
from tidegate.sift.query_index import QueryIndex
from tidegate.sift.query_set import QuerySet
from tidegate.sift.regions import Domain, Regions
from tidegate.sift.sifter import Sifter
from tidegate.sifting import MatchReport, Sampled
from tidegate.spark.layout import HASH, QUERY_ID, REPORT, SAMPLE, TIME, MatchLayout
from tidegate.spark.match_task import MatchBatch, MatchTask, Queries
from tidegate.values import BEGINNING_US

QUERIES = QuerySet.of([Query("low", "x < 5"), Query("all", "x is not null")], {"x": "number"})


@dataclass(frozen=True)
class Here:
    value: Queries


def work(**more: Any) -> MatchBatch:
    schema = pa.schema([("x", pa.float64()), (QUERY_ID, pa.string()), (REPORT, pa.string())])
    layout = MatchLayout("match1", "s", QUERIES.boxes.axes, schema.serialize().to_pybytes())
    queries = Queries(QueryIndex.of(QUERIES.boxes), pa.array(QUERIES.names))
    return MatchBatch(layout, Here(queries), 0, **more)


def run(given: MatchBatch, **columns: Any) -> tuple[list[tuple[Any, ...]], MatchReport]:
    batch = pa.RecordBatch.from_pydict(columns)
    *results, last = MatchTask(given, "nowhere").run(iter([batch]))
    rows = [row for result in results for row in zip(*result.to_pydict().values(), strict=True)]
    return rows, MatchReport.from_json(json.loads(last.column(REPORT)[0].as_py()))


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
    assert report.kept == (1, 1, 1)
    assert report.sampled == 1
    told = Sampled.from_json(report.sample)
    assert (told.coordinates.tolist(), told.hits.tolist()) == ([[1.0]], [2])


def test_what_the_task_itself_drops_was_never_received() -> None:
    hashed = np.arange(-(2**63), 2**63 - 2**55, 2**55, dtype=np.int64)
    x = np.full(len(hashed), 7.0)
    given = replace(work(), sifter=half_open())
    columns = {TIME: np.arange(len(x)), HASH: hashed, SAMPLE: np.zeros(len(x), bool)}
    rows, report = run(given, x=x, **columns)
    passes = keep_by_hash(np.ones(len(x), np.int32), hashed, half_open().thresholds)
    assert 0 < len(rows) == report.received == np.count_nonzero(passes) < len(x)
