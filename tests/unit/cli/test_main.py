from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

import tidegate
from tidegate.cli.demo import command
from tidegate.cli.main import main
from tidegate.errors import StateError


def left_with(argv: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    return left.value.code


def test_version_is_the_packages_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(["--version"]) == 0
    assert capsys.readouterr().out == f"tidegate {tidegate.__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("demo", "bench", "reproduce", "sift", "inspect"))


@pytest.mark.parametrize("argv", [["dmo"], ["bench", "dmo"]])
def test_an_unknown_name_is_answered_with_the_known_ones(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert left_with(argv) == 2
    error = capsys.readouterr().err
    assert "dmo" in error
    assert ("demo" if len(argv) == 1 else "join") in error.replace("'dmo'", "")


@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_a_command_of_the_lab_without_the_lab_says_in_one_line_how_to_get_it(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tidegate.cli.main.entry_points", lambda group: ())
    assert main([command, "anything"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"tidegate {command}: needs the lab")
    assert "pip install ./lab" in error


def test_no_command_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with([]) == 2
    assert "COMMAND" in capsys.readouterr().err


def test_a_known_error_is_one_line_and_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: argparse.Namespace) -> int:
        raise StateError("The checkpoint is damaged.", code="CHECKPOINT_FILE_DAMAGED")

    monkeypatch.setattr(command, "run", fail)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "tidegate demo: [CHECKPOINT_FILE_DAMAGED] The checkpoint is damaged.\n"


def test_ctrl_c_is_code_130_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(arguments: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupt)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "tidegate demo: stopped\n"


def test_an_unknown_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: argparse.Namespace) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(command, "run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


@pytest.mark.parametrize("slow", ["pyspark", "pyarrow", "pandas", "numba", "rich", "matplotlib"])
def test_help_imports_nothing_slow(slow: str) -> None:
    program = f"import sys, tidegate.cli.main; sys.exit({slow!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
