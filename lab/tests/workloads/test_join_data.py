from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from tidegate.errors import FlowError
from tidegate_lab.workloads.join_data import (
    MODULUS,
    START_MS,
    JoinData,
    checksum_sql,
    file_name,
    payload,
    rows_of,
    tick,
    write,
)

SMALL = JoinData(rows_per_batch=41, batches=3, keys=5, seed=3)


def rows_of_sql(sql: str) -> list[tuple[int, ...]]:
    return duckdb.connect().execute(sql).fetchall()


def times_ms(data: JoinData, side: str, batch: int) -> list[int]:
    return [int(t.timestamp() * 1000 + 0.5) for t in tick(data, side, batch)["ts"].to_pylist()]


def test_the_same_seed_gives_the_same_rows_and_another_seed_gives_others() -> None:
    again = JoinData(rows_per_batch=41, batches=3, keys=5, seed=3)
    other = JoinData(rows_per_batch=41, batches=3, keys=5, seed=4)
    assert tick(SMALL, "left", 1).equals(tick(again, "left", 1))
    assert not tick(SMALL, "left", 1).equals(tick(other, "left", 1))


def test_a_batch_holds_the_rows_of_both_streams_together() -> None:
    assert rows_of(SMALL, "left") + rows_of(SMALL, "right") == 41
    assert tick(SMALL, "left", 0).num_rows == 20
    assert tick(SMALL, "right", 0).num_rows == 21


def test_every_row_of_a_batch_is_later_than_the_batch_before_it() -> None:
    data = JoinData(rows_per_batch=2000, batches=3, keys=5)
    for side in ("left", "right"):
        first, second = times_ms(data, side, 0), times_ms(data, side, 1)
        assert min(first) >= START_MS
        assert max(first) < START_MS + 1000 <= min(second)
        assert first == sorted(first)


def test_row_numbers_are_unique_over_the_whole_stream() -> None:
    numbers = [n for batch in range(3) for n in tick(SMALL, "right", batch)["b"].to_pylist()]
    assert numbers == list(range(63))


def test_uniform_keys_are_all_drawn_about_equally_often() -> None:
    data = JoinData(rows_per_batch=40_000, batches=1, keys=10)
    counts = np.bincount(tick(data, "left", 0)["k"].to_numpy(), minlength=10)
    assert counts.sum() == 20_000
    assert counts.min() > 1800
    assert counts.max() < 2200


def test_zipf_keys_follow_their_rank() -> None:
    data = JoinData(rows_per_batch=40_000, batches=1, keys=10, zipf=1.0)
    counts = np.bincount(tick(data, "left", 0)["k"].to_numpy(), minlength=10)
    expected = 20_000 / np.arange(1, 11) / np.sum(1 / np.arange(1, 11))
    assert np.allclose(counts, expected, rtol=0.1)


def test_payloads_fill_the_row_and_begin_with_digits_of_its_own_number() -> None:
    data = JoinData(rows_per_batch=40, batches=1, keys=5, row_bytes=200)
    table = tick(data, "left", 0)
    texts = table["pa"].to_pylist()
    assert {len(t) for t in texts} == {176}
    assert [int(t[:9]) for t in texts] == [(n * 48_271 + 11) % 10**9 for n in table["a"].to_pylist()]
    assert len({t[9:] for t in texts}) > 10


def test_payload_digits_keep_their_leading_zeros() -> None:
    text = payload(np.array([0], dtype=np.int64), 12, np.random.default_rng(1)).to_pylist()[0]
    assert text.startswith("000000011")


def test_files_are_written_in_order_of_name_and_of_last_change(tmp_path: Path) -> None:
    assert list(write(SMALL, tmp_path)) == [0, 1, 2]
    for side in ("left", "right"):
        files = sorted((tmp_path / side).iterdir(), key=lambda p: p.stat().st_mtime)
        assert [p.name for p in files] == [file_name(b) for b in range(3)]
        assert pq.read_table(files[2]).equals(tick(SMALL, side, 2))


def test_the_checksum_equals_the_same_formula_in_plain_integers() -> None:
    sql = checksum_sql("l", "r", payload_bytes=20)
    row = "select 12345678::bigint a, 87654321::bigint b, 99 k, 1700000000123 l, 1700000000999 r"
    texts = "'000000042xxxxx' pa, '123456789yyy' pb"
    value = rows_of_sql(f"select {sql} from ({row}, {texts})")
    m = MODULUS
    plain = (12345678 % m) * (87654321 % m) + 99 + 3 * (1700000000123 % m) + 5 * (1700000000999 % m)
    plain += 7 * ((42 + 14) % m) + 11 * ((123456789 + 12) % m)
    assert value == [(plain % m,)]


def test_the_checksum_notices_swapped_partners() -> None:
    sql = checksum_sql("0", "0", payload_bytes=0)
    right = rows_of_sql(f"select sum({sql}) from (values (1, 10, 5), (2, 20, 5)) t(a, b, k)")
    wrong = rows_of_sql(f"select sum({sql}) from (values (1, 20, 5), (2, 10, 5)) t(a, b, k)")
    assert right != wrong


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows_per_batch", 1), ("batches", 0), ("keys", 0), ("zipf", -0.1), ("batch_ms", 0), ("row_bytes", 25)],
)
def test_settings_that_make_no_stream_are_refused(name: str, value: float) -> None:
    settings: dict[str, float] = {"rows_per_batch": 10, "batches": 1, "keys": 3}
    with pytest.raises(FlowError, match=f"{name} is too small.*Got: {value}.*Give"):
        JoinData(**{**settings, name: value})  # type: ignore[arg-type]
