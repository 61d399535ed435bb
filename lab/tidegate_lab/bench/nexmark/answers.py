"""Whether results are right: a fingerprint of all rows of a result, whatever their order.

DuckDB reads what an engine wrote, brings each column to the type of the catalogue, and adds up a hash of
each row. The same is done with DuckDB's own result over the finished events. Equal counts and sums mean equal
multisets of rows. Rows as late as the closing events do not count: some engines know that the input ended,
and close the windows of these events too.

Fractions are compared without what follows the point: sums are exact in every engine, but their text is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate_lab.bench.nexmark.queries.catalogue import QUERIES, Query
from tidegate_lab.bench.nexmark.queries.duckdb_sql import VIEWS, result_sql
from tidegate_lab.workloads.nexmark.events import CLOSING_MS, MARGIN_MS


@dataclass(frozen=True)
class Answer:
    """The rows of a result: how many, and the sum of their hashes."""

    rows: int
    hashes: int


class Oracle:
    """DuckDB over the events in a folder; each query is answered once."""

    def __init__(self, events: Path) -> None:
        self._connection = _connected()
        self._connection.execute(VIEWS.format(files=events / "*.parquet"))
        self._known: dict[str, Answer] = {}

    def answer(self, name: str) -> Answer:
        if name not in self._known:
            self._known[name] = _fingerprint(self._connection, QUERIES[name], result_sql(name))
        return self._known[name]

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The result itself, sorted: to see what differs."""
        found = self._connection.execute(_typed(QUERIES[name], result_sql(name)) + " order by all")
        return list(found.fetchall())


def answer_in(folder: Path, name: str) -> Answer:
    """What an engine wrote as Parquet files below a folder, or as CSV files without heads."""
    query = QUERIES[name]
    parquet = [str(path) for path in visible(folder) if path.suffix == ".parquet"]
    if parquet:
        source = f"select * from read_parquet({parquet}, hive_partitioning = false)"
    else:
        texts = [str(path) for path in visible(folder) if path.stat().st_size]
        if not texts:
            return Answer(0, 0)
        # Times have a zone in the text, and are read as such.
        types = {
            column: "timestamptz" if kind == "timestamp" else kind for column, kind in query.columns.items()
        }
        source = f"select * from read_csv({texts}, header = false, columns = {types}, nullstr = '\\N')"
    return _fingerprint(_connected(), query, source)


def visible(folder: Path) -> list[Path]:
    """Files below a folder, without what engines keep beside their results."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [
        path for path in found if not any(p.startswith(("_", ".")) for p in path.relative_to(folder).parts)
    ]


def _connected() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'; set threads = 2; set enable_progress_bar = false")
    return connection


def _fingerprint(connection: Any, query: Query, source: str) -> Answer:
    names = ", ".join(query.columns)
    rows, hashes = connection.execute(
        f"select count(*), coalesce(sum(hash({names})::hugeint), 0) from ({_typed(query, source)})"
    ).fetchone()
    return Answer(int(rows), int(hashes))


def _cast(name: str, kind: str) -> str:
    return f"cast(floor({name}) as bigint)" if kind == "double" else f"cast({name} as {kind})"


def _typed(query: Query, source: str) -> str:
    columns = ", ".join(f"{_cast(name, kind)} as {name}" for name, kind in query.columns.items())
    typed = f"select {columns} from ({source})"
    if query.time is None:
        return typed
    return f"select * from ({typed}) where {query.time} < make_timestamp({(CLOSING_MS - MARGIN_MS) * 1000})"
