"""The queries in Flink SQL, and the files that Flink reads.

They are those of the reference where it has them. Where ours are windowed (`catalogue.py`), joins are
interval joins, so that Flink drops its state as the others do.

The pip package of Flink reads CSV, and Parquet where the format's jar lies in its `lib` folder. It cannot
read part of a struct. So each query gets flat files with the columns that it needs and no others, which is
what projection does for the other engines. Rows are dealt out over as many files as there are readers, as to
the partitions of a topic: every file is in order, and no watermark overtakes another reader's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from tidegate_lab.bench.nexmark.queries.catalogue import CATEGORY, EUROS, QUERIES, SOME, STATES

_BID = ("auction", "bidder", "price", "extra")
_OPEN = ("auction_id", "expires")
_AUCTION = ("item_name", "description", "initial_bid", "reserve", "seller", "category")
#: By query and struct: the fields that it reads.
_READ: dict[str, dict[str, Sequence[str]]] = {
    "q0": {"bid": _BID},
    "q1": {"bid": _BID},
    "q2": {"bid": ("auction", "price")},
    "q3": {"person": ("person_id", "name", "city", "state"), "auction": ("auction_id", "seller", "category")},
    "q4": {"auction": (*_OPEN, "category"), "bid": ("auction", "price")},
    "q5": {"bid": ("auction",)},
    "q7": {"bid": _BID},
    "q8": {"person": ("person_id", "name"), "auction": ("seller",)},
    "q9": {"auction": (*_OPEN, *_AUCTION), "bid": _BID},
    "q20": {"auction": (*_OPEN, *_AUCTION), "bid": (*_BID, "channel", "url")},
}
_VIEWS = {"person": ("people", 0), "auction": ("auctions", 1), "bid": ("bids", 2)}
_TYPES = {"bigint": "BIGINT", "varchar": "STRING", "timestamp": "TIMESTAMP_LTZ(3)", "double": "DOUBLE"}
_OPEN_AUCTIONS = """
    CREATE TEMPORARY VIEW open_auctions AS
    SELECT b.*, {columns} FROM bids b JOIN auctions a ON b.auction = a.auction_id
    AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '10' SECOND AND b.date_time <= a.expires"""


def write_flat(name: str, files: Sequence[Path], folder: Path, readers: int, parquet: bool) -> None:
    """The columns of a query out of the files of events, dealt out over `readers` files."""
    folder.mkdir(parents=True)
    fields = [(struct, field) for struct, read in _READ[name].items() for field in read]
    ending = "parquet" if parquet else "csv"
    targets = [folder / f"{reader}.{ending}" for reader in range(readers)]
    writers: list[Any] = []
    for file in files:
        rows = _flat(pq.ParquetFile(file).read(["event_type", "date_time", *_leaves(fields)]), fields)
        writers = writers or [_writer(target, rows.schema, parquet) for target in targets]
        for reader, writer in enumerate(writers):
            writer.write_table(rows.take(np.arange(reader, len(rows), readers)))
    for writer in writers:
        writer.close()


def _leaves(fields: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{struct}.{field}" for struct, field in fields]


def _writer(target: Path, schema: pa.Schema, parquet: bool) -> Any:
    if parquet:
        return pq.ParquetWriter(target, schema, compression="snappy")
    return pyarrow.csv.CSVWriter(target, schema, write_options=pa.csv.WriteOptions(include_header=False))


def _flat(rows: pa.Table, fields: Sequence[tuple[str, str]]) -> pa.Table:
    """Times as milliseconds; no nulls, which CSV cannot tell from empty texts."""
    columns = {"event_type": rows["event_type"], "ms": _millis(rows["date_time"])}
    for struct, field in fields:
        column = pc.struct_field(rows[struct], field)
        if pa.types.is_timestamp(column.type):
            column = _millis(column)
        empty: str | int = "" if pa.types.is_string(column.type) else 0
        columns[f"{struct}_{field}"] = pc.fill_null(column, empty)
    return pa.table(columns)


def _millis(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())


def statements(name: str, source: Path, parquet: bool, out: Path | None) -> list[str]:
    """What declares the source, the three streams and the sink; `out`: a folder for CSV, None for nothing."""
    read = _READ[name]
    declared = [f"{struct}_{field} {_kind(field)}" for struct, fields in read.items() for field in fields]
    kind = "parquet" if parquet else "csv"
    found = [
        f"CREATE TEMPORARY TABLE events (event_type INT, ms BIGINT, {', '.join(declared)}, "
        "date_time AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{source}', 'format' = '{kind}')"
    ]
    for struct, fields in read.items():
        view, kind_of_event = _VIEWS[struct]
        chosen = ", ".join(_chosen(struct, field) for field in fields)
        found.append(
            f"CREATE TEMPORARY VIEW {view} AS SELECT date_time, {chosen} "
            f"FROM events WHERE event_type = {kind_of_event}"
        )
    if name in ("q4", "q9"):
        carried = ", ".join(f"a.{field}" for field in read["auction"] if field != "auction_id")
        found.append(_OPEN_AUCTIONS.format(columns=carried))
    sink = "'blackhole'" if out is None else f"'filesystem', 'path' = 'file://{out}', 'format' = 'csv'"
    columns = ", ".join(
        f"{column} {_TYPES.get(type_, type_)}" for column, type_ in QUERIES[name].columns.items()
    )
    found.append(f"CREATE TEMPORARY TABLE results ({columns}) WITH ('connector' = {sink})")
    return found


def _kind(field: str) -> str:
    texts = ("name", "city", "state", "item_name", "description", "extra", "channel", "url")
    return "STRING" if field in texts else "BIGINT"


def _chosen(struct: str, field: str) -> str:
    column = f"{struct}_{field}"
    return f"TO_TIMESTAMP_LTZ({column}, 3) AS {field}" if field == "expires" else f"{column} AS {field}"


def insert(name: str) -> str:
    """The query itself."""
    return f"INSERT INTO results SELECT {', '.join(QUERIES[name].columns)} FROM ({_SQL[name]})"


def _tumble(table: str) -> str:
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(date_time), INTERVAL '10' SECOND))"


_HOP = """
    SELECT auction, COUNT(*) AS bids, window_start, window_end
    FROM TABLE(HOP(TABLE bids, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end"""

_SQL = {
    "q0": "SELECT * FROM bids",
    "q1": f"""
        SELECT auction, bidder, CAST({EUROS} * price AS DECIMAL(23, 3)) AS price, date_time, extra
        FROM bids""",
    "q2": f"SELECT * FROM bids WHERE MOD(auction, {SOME}) = 0",
    "q3": f"""
        SELECT p.name, p.city, p.state, a.auction_id FROM auctions a JOIN people p ON a.seller = p.person_id
        WHERE a.category = {CATEGORY} AND p.state IN {STATES}""",
    "q4": f"""
        SELECT window_start, category, AVG(CAST(final AS DOUBLE)) AS average FROM (
            SELECT window_start, window_end, auction, category, MAX(price) AS final
            FROM {_tumble("open_auctions")} GROUP BY window_start, window_end, auction, category)
        GROUP BY window_start, window_end, category""",
    "q5": f"""
        SELECT c.window_start, c.auction, c.bids FROM ({_HOP}) c JOIN (
            SELECT MAX(bids) AS most, window_start, window_end FROM ({_HOP}) GROUP BY window_start, window_end
        ) m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.bids >= m.most""",
    "q7": f"""
        SELECT b.* FROM bids b JOIN (
            SELECT MAX(price) AS highest, window_time AS last_time FROM {_tumble("bids")}
            GROUP BY window_start, window_end, window_time
        ) w ON b.price = w.highest
        AND b.date_time BETWEEN w.last_time - INTERVAL '9.999' SECOND AND w.last_time""",
    "q8": f"""
        SELECT p.person_id, p.name, p.window_start FROM (
            SELECT person_id, name, window_start, window_end FROM {_tumble("people")}
            GROUP BY person_id, name, window_start, window_end
        ) p JOIN (
            SELECT seller, window_start, window_end FROM {_tumble("auctions")}
            GROUP BY seller, window_start, window_end
        ) a ON p.person_id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
    "q9": f"""
        SELECT * FROM (SELECT *, ROW_NUMBER() OVER (
            PARTITION BY window_start, window_end, auction ORDER BY price DESC, date_time ASC) AS place
            FROM {_tumble("open_auctions")})
        WHERE place = 1""",
    "q20": f"""
        SELECT b.*, {", ".join(f"a.{field}" for field in (*_AUCTION, "expires"))}
        FROM bids b JOIN auctions a ON b.auction = a.auction_id WHERE a.category = {CATEGORY}""",
}
