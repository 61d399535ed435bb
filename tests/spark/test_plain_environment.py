"""A script of a virtual environment runs without settings, and its failures print no stack traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import tidegate

SCRIPT = Path(__file__).with_name("plain_script.py")
SOURCE = str(Path(tidegate.__file__).parents[1])


def run(master: str, *mistakes: str, **environment: str) -> tuple[list[str], str, list[str]]:
    """Codes of errors, standard output, and the lines of standard error behind Spark's greeting."""
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
    bare = {"PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1", **kept, **environment}
    # The driver finds the package by its path, as in a virtual environment; workers only with PYTHONPATH.
    start = f"import sys, runpy; sys.path.insert(0, {SOURCE!r}); sys.argv = sys.argv[1:]; "
    start += "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", start, str(SCRIPT), master, *mistakes],
        env=bare,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    behind = done.stderr.partition("READY\n")[2].partition("DONE\n")[0].replace("\r", "\n").splitlines()
    lines = [line for line in behind if line.strip() and not line.startswith("[Stage")]
    return json.loads(found.removeprefix("FOUND ")), done.stdout, lines


def test_a_plain_script_runs_and_its_failures_are_a_few_lines() -> None:
    codes, out, lines = run("local[2]", "nothing", "sink", "column", "function", PYTHONPATH=SOURCE)
    assert codes == ["", "SINK_FAILED", "SINK_FAILED", "USER_FUNCTION_FAILED"], out
    assert "fair" in out
    assert not [line for line in lines if "\tat " in line or "\\tat " in line or "Traceback" in line], lines
    # Spark's own two warnings about the start of each streaming query.
    assert len(lines) <= 12, lines


def test_workers_without_the_package_are_told_before_the_first_batch() -> None:
    bare = getattr(sys, "_base_executable", sys.executable)
    codes, out, lines = run("local-cluster[1,1,1024]", "nothing", PYSPARK_PYTHON=bare)
    assert codes == ["WORKERS_WITHOUT_TIDEGATE"], out
    assert "No module named 'tidegate'" in out
    assert not [line for line in lines if line.startswith("\tat ") or "Traceback" in line], lines
