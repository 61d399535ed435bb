"""What a join of finished data must give: once in plain Python, once in DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import duckdb
import pyarrow as pa
from tests.oracle.plain_join import Cell, Condition

from tidegate.join.within import Tumbling, Within

#: (k, columns …, time), the shape of rows that enter and leave a join.
Flat = tuple[Cell, ...]
Judge = Callable[[Flat, Flat], bool]

_DUCKDB_HOW = {"left_semi": "SEMI", "left_anti": "ANTI"}


def is_close(within: Condition, left_us: int, right_us: int) -> bool:
    """The time condition, by its definition."""
    match within:
        case Within():
            return within.lower_us <= right_us - left_us <= within.upper_us
        case Tumbling():
            return left_us // within.size_us == right_us // within.size_us
        case _:
            return True


def naive(
    left: Sequence[Flat],
    right: Sequence[Flat],
    within: Condition,
    how: str,
    widths: tuple[int, int],
    where: Judge | None = None,
) -> Counter[Flat]:
    """Every left row against every right row. `widths`: columns of each side between key and time."""
    joined: Counter[Flat] = Counter()
    matched_right: set[int] = set()
    shows_pairs = how not in ("left_semi", "left_anti")
    for a in left:
        partners = [
            i
            for i, b in enumerate(right)
            if a[0] is not None
            and a[0] == b[0]
            and is_close(within, _time(a), _time(b))
            and (where is None or where(a, b))
        ]
        matched_right.update(partners)
        if shows_pairs:
            joined.update(a[:-1] + right[i][1:-1] + (max(_time(a), _time(right[i])),) for i in partners)
        if (how == "left_semi" and partners) or (how == "left_anti" and not partners):
            joined[a] += 1
        if how in ("left", "full") and not partners:
            joined[a[:-1] + (None,) * widths[1] + a[-1:]] += 1
    if how in ("right", "full"):
        lonely = (b for i, b in enumerate(right) if i not in matched_right)
        joined.update(b[:1] + (None,) * widths[0] + b[1:] for b in lonely)
    return joined


def duckdb_join(
    left: Sequence[Flat], right: Sequence[Flat], within: Condition, how: str, where: str | None = None
) -> Counter[Flat]:
    """The same by DuckDB, for rows (k, n, v, time); `where` is SQL over `a` and `b`."""
    match within:
        case Within():
            near = f"b.t - a.t BETWEEN {within.lower_us}::HUGEINT AND {within.upper_us}::HUGEINT"
        case Tumbling():
            # DuckDB divides towards zero; windows are aligned downwards, also before the epoch.
            near = " = ".join(f"floor({side}.t / {within.size_us})" for side in "ab")
        case _:
            near = "TRUE"
    columns = (
        "a.k, a.n, a.v, a.t"
        if how in _DUCKDB_HOW
        else ("coalesce(a.k, b.k), a.n, a.v, b.n, b.v, greatest(a.t, b.t)")
    )
    query = (
        f"SELECT {columns} FROM a {_DUCKDB_HOW.get(how, how)} JOIN b "
        f"ON a.k = b.k AND {near} AND coalesce({where or 'TRUE'}, FALSE)"
    )
    is_text = any(isinstance(row[0], str) for row in (*left, *right))
    connection = _connection()
    connection.register("a", _table(left, is_text))
    connection.register("b", _table(right, is_text))
    return Counter(connection.execute(query).fetchall())


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all examples: opening a database takes longer than a small join."""
    return duckdb.connect(config={"threads": 1})


def _time(row: Flat) -> int:
    time = row[-1]
    if not isinstance(time, int):
        raise TypeError(f"a row without a time cannot be joined: {row}")
    return time


def _table(rows: Sequence[Flat], is_text: bool) -> pa.Table:
    kinds = [
        ("k", pa.string() if is_text else pa.int64()),
        ("n", pa.int64()),
        ("v", pa.int64()),
        ("t", pa.int64()),
    ]
    return pa.table({n: pa.array([row[i] for row in rows], kind) for i, (n, kind) in enumerate(kinds)})
