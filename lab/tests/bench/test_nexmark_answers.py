"""How results of engines are compared, and what Flink is given to read."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate_lab.bench.nexmark.answers import Answer, Oracle, answer_in
from tidegate_lab.bench.nexmark.queries.catalogue import QUERIES
from tidegate_lab.bench.nexmark.queries.flink_sql import insert, statements, write_flat
from tidegate_lab.workloads.nexmark.events import Events
from tidegate_lab.workloads.nexmark.files import write


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nexmark") / "events"
    list(write(Events(per_file=5_000, per_second=1_000), folder, 2))
    return folder


def test_every_query_has_a_result(events: Path) -> None:
    oracle = Oracle(events)
    for name in QUERIES:
        assert oracle.answer(name).rows == len(oracle.rows(name)) > 0, name


def test_rows_in_another_order_and_format_are_the_same_answer(events: Path, tmp_path: Path) -> None:
    oracle = Oracle(events)
    rows = oracle.rows("q3")
    names = list(QUERIES["q3"].columns)
    for folder in ("parquet", "csv"):
        (tmp_path / folder).mkdir()
    columns = {name: [row[place] for row in reversed(rows)] for place, name in enumerate(names)}
    pq.write_table(pa.table(columns), tmp_path / "parquet" / "part-0.parquet")
    with (tmp_path / "csv" / "part-0").open("w", newline="") as out:
        csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    (tmp_path / "csv" / ".part-1.inprogress").write_text("half a row")
    assert answer_in(tmp_path / "parquet", "q3") == oracle.answer("q3")
    assert answer_in(tmp_path / "csv", "q3") == oracle.answer("q3")
    pq.write_table(pa.table(columns).slice(1), tmp_path / "parquet" / "part-0.parquet")
    assert answer_in(tmp_path / "parquet", "q3") != oracle.answer("q3")
    assert answer_in(tmp_path / "nothing", "q3") == Answer(0, 0)


def test_windows_of_the_closing_events_do_not_count(events: Path) -> None:
    oracle = Oracle(events)
    # Ten seconds of events, which begin on the edge of a window: one window.
    assert len(oracle.rows("q7")) == 1
    # Windows that hold some of these seconds; the last second starts one every two seconds.
    assert len({row[0] for row in oracle.rows("q5")}) == 9


@pytest.mark.parametrize("parquet", [False, True])
def test_flink_reads_flat_files_with_the_columns_of_the_query(
    events: Path, tmp_path: Path, parquet: bool
) -> None:
    write_flat("q3", sorted(events.iterdir()), tmp_path / "flat", 2, parquet)
    files = sorted((tmp_path / "flat").iterdir())
    if parquet:
        tables = [pq.read_table(file) for file in files]
        assert tables[0].column_names[:4] == ["event_type", "ms", "person_person_id", "person_name"]
        assert [len(rows) for rows in tables] == [5_002, 5_001]
        for rows in tables:
            assert rows["ms"].to_pylist() == sorted(rows["ms"].to_pylist())
            assert rows["person_name"].null_count == 0
    else:
        assert [len(file.read_text().splitlines()) for file in files] == [5_002, 5_001]


def test_sql_names_the_columns_of_the_catalogue_and_the_sink() -> None:
    made = statements("q9", Path("/in"), parquet=False, out=None)
    assert made[0].startswith("CREATE TEMPORARY TABLE events (event_type INT, ms BIGINT, auction_auction_id")
    assert "open_auctions" in made[-2]
    assert "'blackhole'" in made[-1]
    assert "'file:///out'" in statements("q9", Path("/in"), parquet=True, out=Path("/out"))[-1]
    assert insert("q2").startswith("INSERT INTO results SELECT auction, price FROM (")
