from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.observe.json_frame import Bar, Frame, versions, write_frame

FRAME = Frame(
    "bench join",
    seed=7,
    rows=[{"engine": "tidegate", "samples": [0.5, 0.6]}],
    bars=[Bar("join-speed", 3.2, "x", ">= 3", True)],
)


def test_the_frame_has_exactly_the_agreed_names(tmp_path: Path) -> None:
    target = tmp_path / "made" / "on the way.json"
    write_frame(FRAME, target)
    read = json.loads(target.read_text())
    assert list(read) == ["command", "versions", "seed", "rows", "bars"]
    assert read["rows"] == [{"engine": "tidegate", "samples": [0.5, 0.6]}]
    assert read["bars"] == [{"id": "join-speed", "value": 3.2, "unit": "x", "target": ">= 3", "holds": True}]


def test_a_dash_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write_frame(FRAME, "-")
    assert json.loads(capsys.readouterr().out)["command"] == "bench join"


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_frame(Frame("x", None, rows=[{"v": float("nan")}]), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_versions_name_what_can_change_a_figure() -> None:
    assert {"python", "numpy", "pyspark"} <= set(versions())


def test_the_report_package_does_not_bring_spark_along() -> None:
    program = (
        "import sys, tidegate.observe.json_frame as f, tidegate.observe.live_page, tidegate.observe.table;"
        "f.versions(); sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
