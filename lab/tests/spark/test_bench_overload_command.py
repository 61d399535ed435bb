"""`tidegate bench overload --quick` as a user runs it: another process, its report in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Results of a quick day can be counted on one machine and are the same on every other.
SEED = 3


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    home = tmp_path_factory.mktemp("overload")
    command = [
        *(sys.executable, "-m", "tidegate", "bench", "overload", "--quick", "--seed", str(SEED)),
        *("--contenders", "tidegate,spark-capped", "--json", "report.json", "--plots", "plots"),
    ]
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return home, ran.stdout


@pytest.mark.soak
def test_every_contender_has_its_batches_and_what_became_of_its_results(finished: tuple[Path, str]) -> None:
    report = json.loads((finished[0] / "report.json").read_text())
    assert report["command"] == "bench overload"
    assert [row["contender"] for row in report["rows"]] == ["tidegate", "spark-capped"]
    for row in report["rows"]:
        found = sum(results for batch in row["batches"] for _, results, _ in batch["found"])
        assert found == row["results"] > 0
        assert row["recall_in_time"] + row["lost_too_late"] + row["lost_never"] == pytest.approx(1)


@pytest.mark.soak
def test_the_bars_of_a_dry_run_are_named_so(finished: tuple[Path, str]) -> None:
    report = json.loads((finished[0] / "report.json").read_text())
    assert {bar["id"] for bar in report["bars"]} == {
        "overload.p95_after_step_seconds.dry_run",
        "overload.p95_held.dry_run",
        "overload.calm_shed_rows.dry_run",
        "overload.union_exact_after_repair.dry_run",
        "overload.repair_batches_over_goal.dry_run",
    }


@pytest.mark.soak
def test_there_is_a_picture_and_it_is_said_where(finished: tuple[Path, str]) -> None:
    home, text = finished
    assert "Picture: plots/overload-day.png" in text
    assert (home / "plots" / "overload-day.png").stat().st_size > 10_000
    assert "Traceback" not in text
