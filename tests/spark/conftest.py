"""Every batch of every test leaves a receipt, and every receipt must balance; small batches run both ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

import pytest
from tests.spark.ledger_watch import violations

from tidegate.control import small_batches
from tidegate.state.receipt_log import ReceiptLog


@pytest.fixture(autouse=True)
def wrong_receipts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is wrong with the receipts of this test; it fails if anything is, however well it went."""
    found: list[str] = []
    write = ReceiptLog.write

    def watched(log: ReceiptLog, receipt: Mapping[str, Any]) -> None:
        found.extend(violations(receipt))
        write(log, receipt)

    monkeypatch.setattr(ReceiptLog, "write", watched)
    yield found
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def batches_in_one_task(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches run in one task in half of the tests, and never in the others.

    Left to the time that batches take, it would be another half in every run.
    """
    together = crc32(request.node.nodeid.encode()) % 2 == 0
    monkeypatch.setattr(small_batches, "RUN_SECONDS_MAX", 1e9 if together else -1.0)
