from __future__ import annotations

from contextlib import nullcontext

import pytest
from rich.console import Console

from tidegate.cli.main import main
from tidegate_lab.bench.sift import lookups
from tidegate_lab.commands import bench_sift
from tidegate_lab.workloads.sifters import Workload


@pytest.mark.parametrize("asked", [[], ["--whole-normals"]])
def test_rows_lie_within_the_hot_spots_unless_normals_are_asked_for_whole(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Workload] = []

    def looked_up(workload: Workload, *_: object) -> list[object]:
        seen.append(workload)
        return []

    monkeypatch.setattr(lookups, "lookups", looked_up)
    monkeypatch.setattr(bench_sift, "_on_spark", lambda *_: ([], []))
    monkeypatch.setattr(bench_sift, "console_beside_spark", lambda _: nullcontext(Console()))
    assert main(["bench", "sift", "--seed", "3", *asked]) == 0
    assert seen == [Workload(seed=3, whole_normals=bool(asked))]
