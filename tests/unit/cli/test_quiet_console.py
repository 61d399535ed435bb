from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.cli.quiet_console import standard_error_in


def child_complains() -> None:
    subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('WARN: noise')"], check=True)


def fail_aside(log: Path, error: type[BaseException]) -> None:
    with standard_error_in(log):
        child_complains()
        raise error


def test_what_a_child_writes_stays_off_the_screen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with standard_error_in(tmp_path / "log"):
        child_complains()
    os.write(2, b"back again")
    assert capfd.readouterr().err == "back again"
    assert (tmp_path / "log").read_text() == "WARN: noise"


def test_an_error_brings_the_log_with_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_aside(tmp_path / "log", ZeroDivisionError)
    assert capfd.readouterr().err == "The end of Spark's log:\nWARN: noise\n"


def test_ctrl_c_brings_no_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail_aside(tmp_path / "log", KeyboardInterrupt)
    assert capfd.readouterr().err == ""
