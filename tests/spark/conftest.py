"""Every batch of every test leaves a receipt, and every receipt must balance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.spark.ledger_watch import violations

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
