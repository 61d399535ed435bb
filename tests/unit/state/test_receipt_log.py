from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.samples import a_manifest, alter, flipped

from tidegate.control.receipts.roll_up import combined
from tidegate.model.json_values import Json
from tidegate.model.receipts import ReceiptRange, batches_of
from tidegate.model.times import utc_text
from tidegate.observe.receipts.receipt_tables import range_of, receipts_of
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.receipt_log import DEFAULT, ReceiptLog, Retention, missing
from tidegate.state.sealed_lines import PER_FILE
from tidegate.state.store.memory import MemoryStore
from tidegate.state.store.store import Store

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
#: 2023-11-14, 22:00 UTC.
BEGIN_US = 1_700_000_400 * SECOND - 1_200 * SECOND


def receipt(batch: int, offered: int = 5, at_us: int | None = None) -> Json:
    ledger = {f"rows_{of}": 0 for of in ("shed", "late", "rejected", "filtered", "unexplained")}
    row = {"kind": "stream", "name": "a", "mode": "EXACT", "complete": True, "shed_reasons": {}, **ledger}
    row |= {"rows_offered": offered, "rows_processed": offered}
    at_us = BEGIN_US + batch * SECOND if at_us is None else at_us
    return {"batch_id": batch, "started_at": utc_text(at_us), "latency": None, "rows": [row]}


def a_log(store: Store | None = None) -> ReceiptLog:
    """A log whose lines by batch are in this store."""
    name = f"receipts-{next(NAMES)}"
    return ReceiptLog(store or MemoryStore(name), MemoryStore(f"{name}-m"), MemoryStore(f"{name}-h"))


NAMES = iter(range(10**9))


def add(log: ReceiptLog, receipts: Sequence[Json], retention: Retention = DEFAULT) -> tuple[int, int, int]:
    """Commits with these receipts, as the engine writes them; from where on they are kept."""
    kept = (0, 0, 0)
    for one in receipts:
        log.write(one)
        if log.begins_period(one):
            kept = log.kept_from(BEGIN_US + int(one["batch_id"]) * SECOND, retention, kept)
            log.roll_up(one, combined)
            log.purge(kept)
    return kept


def offered(log: ReceiptLog, by: str = "total", **given: object) -> list[int]:
    """The rows offered, by period."""
    lines = log.read(range_of(by, **given))  # type: ignore[arg-type]
    return [one.rows_offered for one in receipts_of(lines, by)]


def spans(lines: Sequence[Json]) -> list[tuple[int, int]]:
    return [batches_of(one) for one in lines]


# -- lines of batches ----------------------------------------------------------------------------------------


def test_every_batch_has_one_line_also_when_it_runs_again_after_a_restart(store: Store) -> None:
    log = a_log(store)
    for batch in (0, 1, 2, 2):
        log.write(receipt(batch))
    again = a_log(store)
    again.write(receipt(2, offered=6))
    again.write(receipt(3))
    assert again.read() == [receipt(0), receipt(1), receipt(2, offered=6), receipt(3)]
    lines = store.read("0000000000.json").decode().splitlines()
    assert [json.loads(line)["batch_id"] for line in lines] == [0, 1, 2, 3]


def test_thousands_of_batches_are_few_files(store: Store) -> None:
    log, batches = a_log(store), 3 * PER_FILE + 7
    for batch in range(batches):
        log.write(receipt(batch))
    assert store.list() == [f"{first:010d}.json" for first in range(0, batches, PER_FILE)]
    assert [one["batch_id"] for one in log.read()] == list(range(batches))
    late = a_log(store).read(ReceiptRange(first_batch=2 * PER_FILE + 3))
    assert [one["batch_id"] for one in late][:2] == [203, 204]


def test_a_batch_that_runs_again_at_the_begin_of_a_file_stays_the_first_of_it(store: Store) -> None:
    for batch in range(PER_FILE + 1):
        a_log(store).write(receipt(batch))
    a_log(store).write(receipt(PER_FILE, offered=6))
    assert [one["batch_id"] for one in a_log(store).read()] == list(range(PER_FILE + 1))
    assert len(store.list()) == 2


def test_what_is_on_the_disk_counts_and_not_what_was_written_before(store: Store) -> None:
    log = a_log(store)
    log.write(receipt(0))
    log.write(receipt(1))
    first, second = store.read("0000000000.json").splitlines(keepends=True)
    alter(store, "0000000000.json", second)
    log.write(receipt(2))
    assert [one["batch_id"] for one in log.read()] == [1, 2], "a line that was deleted stays deleted"
    assert first not in store.read("0000000000.json")


# -- damage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["digit", "bytes", "cut", "empty line", "other json"])
def test_damage_is_set_aside_with_a_warning_and_fails_nothing(
    store: Store, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = a_log(store)
    for batch in range(3):
        log.write(receipt(batch, offered=1234))
    whole = store.read("0000000000.json")
    first, second, third = whole.splitlines(keepends=True)
    damaged = {
        "digit": second.replace(b":1234,", b":1235,", 1),
        "bytes": flipped(second, 40).replace(b"stream", b"str\xff\xfem"),
        "cut": second[:50] + b"\n",
        "empty line": b"[]\n",
        "other json": b'{"batch_id":1,"rows":[]}\n',
    }[how]
    data = first + damaged + third
    alter(store, "0000000000.json", data)
    with caplog.at_level(logging.WARNING, "tidegate"):
        assert [one["batch_id"] for one in a_log(store).read()] == [0, 2]
    assert "1 damaged lines of" in caplog.text
    assert "0000000000.json are left out" in caplog.text
    assert store.read("0000000000.json") == data, "readers change nothing"
    caplog.clear()
    with caplog.at_level(logging.WARNING, "tidegate"):
        log.write(receipt(3))
    (aside,) = (path for path in store.list() if path.startswith("_damaged-0000000000.json-"))
    assert aside in caplog.text
    assert store.read(aside) == data
    caplog.clear()
    log.write(receipt(4))
    assert [one["batch_id"] for one in log.read()] == [0, 2, 3, 4]
    assert not caplog.text


def test_every_flipped_bit_of_a_line_is_noticed() -> None:
    log, store = a_log(), MemoryStore("flips")
    log.batches._store = store
    log.write(receipt(7))
    whole = store.read("0000000007.json")
    for at in range(len(whole) - 1):
        alter(store, "0000000007.json", flipped(whole, at))
        assert log.read() == []


def test_lost_lines_and_deleted_files_are_noticed(caplog: pytest.LogCaptureFixture) -> None:
    log, store = a_log(), MemoryStore("lost")
    log.batches._store = store
    for batch in range(3 * PER_FILE):
        log.write(receipt(batch))
    state = replace(a_manifest(3 * PER_FILE - 1), receipts_from=(0, 0, 0))
    assert missing(log.read(), ReceiptRange(), state) == []
    lines = store.read("0000000200.json").splitlines(keepends=True)
    alter(store, "0000000200.json", b"".join([*lines[:4], *lines[6:-2]]))
    store.delete("0000000100.json")
    lost = [(100, 199, 100), (204, 205, 2), (298, 299, 2)]
    assert missing(log.read(), ReceiptRange(), state) == lost
    with caplog.at_level(logging.WARNING, "tidegate"):
        log.read(ReceiptRange(), state)
        log.read(ReceiptRange(), state)
    assert caplog.text.count("100 of the batches 100 to 199 are missing") == 1, "once is enough"
    # Sums are made of the same lines.
    assert missing(log.read(ReceiptRange(by_batch=False)), ReceiptRange(by_batch=False), state) == lost
    # The oldest file, too, unless the manifest says that it was purged.
    store.delete("0000000000.json")
    assert missing(log.read(), ReceiptRange(), state)[0] == (0, 203 - 4 + 0, 200)
    purged = replace(state, receipts_from=(200, 200, 200))
    assert missing(log.read(), ReceiptRange(), purged) == lost[1:]
    assert missing(log.read(ReceiptRange(first_batch=205)), ReceiptRange(first_batch=205), state) == [
        (205, 205, 1),
        (298, 299, 2),
    ]


# -- minutes and hours ---------------------------------------------------------------------------------------


def test_minutes_and_hours_are_added_up_when_they_are_over() -> None:
    log = a_log()
    add(log, [receipt(batch, 1, BEGIN_US + batch * 20 * SECOND) for batch in range(400)])
    minutes, hours = log.minutes.read(ReceiptRange()), log.hours.read(ReceiptRange())
    assert spans(minutes) == [(first, first + 2) for first in range(0, 399, 3)]
    assert [one["started_at"] for one in minutes[:2]] == [utc_text(BEGIN_US), utc_text(BEGIN_US + MINUTE)]
    assert spans(hours) == [(0, 179), (180, 359)]
    assert [one["rows"][0]["rows_offered"] for one in hours] == [180, 180]
    # Each batch once: two hours, 13 minutes of the third, and a batch whose minute is not over.
    lines = log.read(range_of("total"))
    assert spans(lines) == [*spans(hours), *[(first, first + 2) for first in range(360, 399, 3)], (399, 399)]
    assert offered(log) == [400]
    assert offered(log, "hour") == [180, 180, 40]


def test_every_range_gives_what_the_batches_of_it_give() -> None:
    log = a_log()
    lines = [receipt(batch, 1 + batch, BEGIN_US + batch * 25 * SECOND) for batch in range(500)]
    add(log, lines)
    for asked in (
        {"since": 0},
        {"since": 1},
        {"since": 143},
        {"since": 499},
        {"last": 1},
        {"last": 300},
        {"last": "1 hour"},
        {"last": "61 minutes"},
        {"since": utc_text(BEGIN_US + HOUR)},
        {"since": utc_text(BEGIN_US + 61 * MINUTE + 10)},
        {"since": utc_text(BEGIN_US + 10**13)},
        {"since": 100, "last": "2 hours"},
    ):
        by_batch = offered(log, "batch", **asked)
        assert offered(log, **asked) == ([sum(by_batch)] if by_batch else []), asked
        assert sum(offered(log, "hour", **asked)) == sum(by_batch), asked


def test_a_crash_at_any_point_adds_nothing_up_twice_and_leaves_nothing_out() -> None:
    log, store = a_log(), MemoryStore("again")
    log.batches._store = store
    receipts = [receipt(batch, 1, BEGIN_US + batch * 17 * SECOND) for batch in range(300)]
    for batch, one in enumerate(receipts):
        if batch % 7 == 0:  # a new process; the line may be there already
            log.write({**one, "rows": []})
            log = ReceiptLog(store, log.minutes._store, log.hours._store)
        log.write(one)
        if batch % 11:  # else it dies behind the manifest
            log.roll_up(one, combined)
    assert offered(log) == [300]
    assert sum(one["batches"] for one in log.minutes.read(ReceiptRange())) >= 295
    assert missing(log.read(range_of("total")), range_of("total"), a_manifest(299)) == []


def test_sums_fill_what_batches_lack_and_the_other_way_round(caplog: pytest.LogCaptureFixture) -> None:
    log = a_log()
    add(log, [receipt(batch, 1, BEGIN_US + batch * 10 * SECOND) for batch in range(1000)])
    for file in log.batches.files()[:3]:
        log.batches._store.delete(file)
    assert offered(log) == [1000]
    hours = log.hours._store
    (file,) = log.hours.files()
    first, second = hours.read(file).splitlines(keepends=True)
    alter(hours, file, first.replace(b"360", b"361") + second)
    assert offered(log) == [1000]
    assert "damaged" in caplog.text
    # What was lost before it was added up is missing for ever, and said to be.
    late = a_log()
    add(late, [receipt(batch, 1) for batch in range(50)])
    lines = late.batches._store.read("0000000000.json").splitlines(keepends=True)
    alter(late.batches._store, "0000000000.json", b"".join(lines[:20] + lines[23:]))
    add(late, [receipt(batch, 1) for batch in range(50, 130)])
    wanted = range_of("total")
    assert missing(late.read(wanted), wanted, a_manifest(129)) == [(0, 59, 3)]


def test_by_default_batches_are_kept_for_a_day_minutes_for_a_week_and_hours_for_400_days() -> None:
    assert [age.total_seconds() / 86400 for age in DEFAULT] == [1, 7, 400]
    assert Retention.of(None) == DEFAULT
    assert [age.total_seconds() for age in Retention.of(2 * HOUR)] == [7200, 7200, 7200]
    assert [age.total_seconds() / 86400 for age in Retention.of(10 * 24 * HOUR)] == [1, 7, 10]


def test_old_lines_go_file_by_file_and_the_manifest_says_from_where_on_they_are_kept() -> None:
    log = a_log()
    # A batch a second; 250 seconds of batches, 500 of minutes, 1000 of hours.
    kept_us = Retention(*(DEFAULT.batches * n / (24 * 3600) for n in (250, 500, 1000)))
    kept = add(log, [receipt(batch, 1) for batch in range(1000)], kept_us)
    assert kept == (700, 0, 0), "the batches since 710 are kept, and the file with them"
    assert [one["batch_id"] for one in log.read()] == list(range(700, 1000))
    assert offered(log) == [1000]
    state = replace(a_manifest(999), receipts_from=kept)
    assert missing(log.read(), ReceiptRange(), state) == []
    assert missing(log.read(range_of("total")), range_of("total"), state) == []


def test_a_checkpoint_keeps_receipts_beside_its_state_and_clears_torn_writes(tmp_path: Path) -> None:
    kept = Checkpoint(str(tmp_path / "ck"))
    kept.open("a test")
    kept.receipts.write(receipt(0))
    kept.receipts.write(receipt(1, at_us=BEGIN_US + HOUR))
    kept.receipts.roll_up(receipt(1, at_us=BEGIN_US + HOUR), combined)
    torn = tmp_path / "ck/receipts/.tmp-00-0000000000.json"
    torn.write_text("{")
    kept.recover()
    for folder in ("receipts", "receipts_by_minute", "receipts_by_hour"):
        assert [path.name for path in (tmp_path / "ck" / folder).iterdir()] == ["0000000000.json"]


@given(st.lists(st.integers(-90, 5000), min_size=1, max_size=30), st.data())
def test_each_batch_is_counted_once_however_the_clock_goes(steps: list[int], data: st.DataObject) -> None:
    at_us, receipts = BEGIN_US, []
    for batch, step in enumerate(steps):
        at_us += step * SECOND
        receipts.append(receipt(batch, 1, at_us))
    log = a_log()
    add(log, receipts)
    assert offered(log) == [len(steps)]
    assert sum(offered(log, "hour")) == len(steps)
    since = data.draw(st.integers(0, len(steps)))
    assert sum(offered(log, since=since)) == len(steps) - since


def test_a_copy_of_a_file_under_another_name_counts_no_batch_twice(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore("copied receipts")
    log = a_log(store)
    add(log, [receipt(batch) for batch in range(PER_FILE + 20)])
    first, second = f"{0:010d}.json", f"{PER_FILE:010d}.json"
    store.write(f"{PER_FILE + 50:010d}.json", [store.read(first)])
    store.write(f"{PER_FILE - 1:010d}.json", [store.read(second)])
    for by in ("total", "batch"):
        assert sum(offered(log, by)) == 5 * (PER_FILE + 20)
    assert "0000000150.json are left out" in caplog.text


def test_lines_that_stand_twice_in_a_file_count_once() -> None:
    store = MemoryStore("doubled receipts")
    log = a_log(store)
    add(log, [receipt(batch) for batch in range(9)])
    alter(store, "0000000000.json", store.read("0000000000.json") * 2)
    assert sum(offered(log, "batch")) == 45


def test_a_deleted_file_stays_missing_when_more_batches_come() -> None:
    store = MemoryStore("deleted receipts")
    log = a_log(store)
    kept = add(log, [receipt(batch) for batch in range(PER_FILE + 20)])
    store.delete("0000000000.json")
    more = [receipt(batch, at_us=BEGIN_US + 2 * HOUR + batch * SECOND) for batch in range(120, 130)]
    for one in more:
        log.write(one)
    assert log.kept_from(BEGIN_US + 2 * HOUR, DEFAULT, kept) == kept == (0, 0, 0)
