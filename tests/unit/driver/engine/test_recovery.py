"""What a query says and refuses at its start about parts of the flow that come, go or are renamed."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.unit.state.samples import a_manifest, a_piece

from tidegate.api.nodes import Output
from tidegate.control.identity.flow_change import FlowChange
from tidegate.control.identity.translation import Translation
from tidegate.driver.engine.recovery import check_tables, report
from tidegate.errors import StateError
from tidegate.model.debts import Debt, DebtCell
from tidegate.model.skip_plan import Skipping


def test_what_is_dropped_with_a_removed_operator_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    skipping = Skipping(0.5, ((0.5,), (0.5,)))
    debt = Debt("near", 1, skipping, 0, ((0, 1), (0, 1)), (DebtCell(0, 0, 40, 1.0, repaired=0.25),))
    found = replace(
        a_manifest(3), pieces=(a_piece("segments/near/1.arrow"),), debts=(debt, replace(debt, batch=2))
    )
    rows = found.pieces[0].rows
    with caplog.at_level(logging.INFO, "tidegate"):
        report(FlowChange(removed=(found.pieces[0].operator,)), found, found)
    assert f"{rows} stored rows are dropped with the next commit" in caplog.text
    assert "and 60 skipped pairs are written off" in caplog.text


def test_an_operator_that_is_new_says_when_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    found = replace(a_manifest(3), begins_us={"busy": 1_700_000_000_000_000})
    with caplog.at_level(logging.INFO, "tidegate"):
        report(FlowChange(added=("more", "busy")), found, found)
    (more, busy) = caplog.records
    assert (more.levelname, busy.levelname) == ("INFO", "WARNING")
    assert "operator more is new and begins empty with batch 4" in more.getMessage()
    assert "its first window begins at 2023-11-14T22:13:20" in busy.getMessage()


def test_a_table_that_may_have_the_rows_of_a_batch_already_keeps_the_name_of_its_output() -> None:
    table = Output(cast(Any, None), "close", table="db.close")
    files = Output(cast(Any, None), "far", path="out/far")
    renamed = Translation({}, {"near": "close", "off": "far", "gone": None})
    with pytest.raises(StateError, match=r"CHECKPOINT_PLAN_OF_OTHER_NAMES.*near → close, table db\.close"):
        check_tables(FlowChange(renamed), [files, table])
    check_tables(FlowChange(renamed), [files])
    check_tables(FlowChange(), [files, table])
