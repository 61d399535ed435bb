"""Nearly all public symbols have types that every checker reads alike, as pyright counts them."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
#: The share of symbols with a known type.
FLOOR = 0.95


@pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason="pyright is not installed")
@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs node, and would download it")
def test_the_types_of_public_symbols_are_known(tmp_path: Path) -> None:
    # pyright looks for numpy and others through the first `python` of the path.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    modules = os.pathsep.join((str(SRC), os.environ.get("PYTHONPATH", "")))
    settings = {"PATH": path, "PYTHONPATH": modules, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    command += ["--verifytypes", "tidegate", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True, timeout=300
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)["typeCompleteness"]
    unknown = [one["name"] for one in found["symbols"] if one["isExported"] and not one["isTypeKnown"]]
    assert len(found["symbols"]) > 1000, "it looked at the package"
    assert found["completenessScore"] >= FLOOR, "\n".join(unknown)
