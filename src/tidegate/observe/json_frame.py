"""The JSON that every measuring command writes, always in the same frame.

    {"command", "versions", "seed", "rows": [one object per measured line, raw samples included],
     "bars": [{"id", "value", "unit", "target", "holds"}]}

`bars` lists the figures that the work was asked to reach, by a fixed id, with what was really measured,
met or not.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: What can change a figure; a package that is not installed is left out.
PACKAGES = ("tidegate", "pyspark", "pyarrow", "numpy", "numba", "scipy", "duckdb")


@dataclass(frozen=True)
class Bar:
    """One figure to reach: `holds` says whether `value` met `target`."""

    id: str
    value: float | None
    unit: str
    target: str
    holds: bool


@dataclass(frozen=True)
class Frame:
    """What a measuring command has to say."""

    command: str
    seed: int | None
    rows: Sequence[Mapping[str, Any]] = ()
    bars: Sequence[Bar] = ()
    versions: Mapping[str, str] = field(default_factory=lambda: versions())

    def to_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "versions": dict(self.versions),
            "seed": self.seed,
            "rows": [dict(row) for row in self.rows],
            "bars": [asdict(bar) for bar in self.bars],
        }


def versions() -> dict[str, str]:
    """Python's and the packages' versions, read from their metadata: nothing is imported."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write_frame(frame: Frame, target: str | Path) -> None:
    """Write to a file, or to standard output for `-`; strict JSON, so no NaN or infinity."""
    text = json.dumps(frame.to_json(), indent=2, allow_nan=False)
    if str(target) == "-":
        sys.stdout.write(text + "\n")
    else:
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
