"""The arguments of `tidegate bench nexmark`."""

from __future__ import annotations

import pytest

from tidegate.cli.main import main
from tidegate_lab.bench.nexmark.queries.catalogue import QUERIES
from tidegate_lab.bench.nexmark.task import CONTENDERS as KNOWN
from tidegate_lab.commands.bench_nexmark import CONTENDERS, NAMES


def test_the_command_knows_every_query_and_contender() -> None:
    assert tuple(QUERIES) == NAMES
    assert KNOWN == CONTENDERS


def test_flink_without_an_interpreter_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nexmark", "--contenders", "tidegate,flink"]) == 2
    assert "flink needs an interpreter of its own" in capsys.readouterr().err


def test_a_query_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "nexmark", "--queries", "q3,q6"])
    assert "unknown. Got: q6" in capsys.readouterr().err
