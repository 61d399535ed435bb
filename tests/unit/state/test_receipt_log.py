from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.state.samples import alter

from tidegate.errors import StateError
from tidegate.model.times import utc_text
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.receipt_log import PER_FILE, ReceiptLog
from tidegate.state.store.store import Store


def receipt(batch: int, offered: int = 5) -> dict[str, object]:
    rows = [{"kind": "stream", "name": "a", "rows_offered": offered}]
    return {"batch_id": batch, "started_at": utc_text(1), "rows": rows}


def test_every_batch_has_one_line_also_when_it_runs_again_after_a_restart(store: Store) -> None:
    log = ReceiptLog(store)
    for batch in (0, 1, 2, 2):
        log.write(receipt(batch))
    again = ReceiptLog(store)
    again.write(receipt(2, offered=6))
    again.write(receipt(3))
    assert again.read() == [receipt(0), receipt(1), receipt(2, offered=6), receipt(3)]
    lines = store.read("0000000000.json").decode().splitlines()
    assert [json.loads(line)["batch_id"] for line in lines] == [0, 1, 2, 3]


def test_thousands_of_batches_are_few_files(store: Store) -> None:
    log, batches = ReceiptLog(store), 3 * PER_FILE + 7
    for batch in range(batches):
        log.write(receipt(batch))
    assert store.list() == [f"{first:010d}.json" for first in range(0, batches, PER_FILE)]
    assert [one["batch_id"] for one in log.read()] == list(range(batches))
    assert [one["batch_id"] for one in ReceiptLog(store).read(first=2 * PER_FILE + 3)][:2] == [203, 204]


def test_a_damaged_file_is_an_error_that_names_it(store: Store) -> None:
    ReceiptLog(store).write(receipt(0))
    alter(store, "0000000000.json", b'{"batch_id": 0, "ro')
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*0000000000\.json"):
        ReceiptLog(store).read()


def test_a_checkpoint_keeps_receipts_beside_its_state_and_clears_torn_writes(tmp_path: Path) -> None:
    kept = Checkpoint(str(tmp_path / "ck"))
    kept.open("a test")
    kept.receipts.write(receipt(0))
    torn = tmp_path / "ck/receipts/.tmp-00-0000000000.json"
    torn.write_text("{")
    kept.recover()
    assert [path.name for path in (tmp_path / "ck/receipts").iterdir()] == ["0000000000.json"]


def test_files_of_batches_before_the_retention_are_deleted_and_the_newest_stays(store: Store) -> None:
    log = ReceiptLog(store)
    for batch in range(2 * PER_FILE + 1):
        log.write({**receipt(batch), "started_at": utc_text(batch)})
    log.purge(before_us=PER_FILE)  # exactly the first file is older
    assert log.read()[0]["batch_id"] == PER_FILE
    log.purge(before_us=PER_FILE + 1)  # the second file still has newer batches
    assert log.read()[0]["batch_id"] == PER_FILE
    log.purge(before_us=10**9)
    assert [one["batch_id"] for one in log.read()] == [2 * PER_FILE]
