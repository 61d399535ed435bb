"""The common JSON format of all measuring commands.

    {"command", "versions", "seed", "rows": [one object per measured line, raw samples included],
     "bars": [{"id", "value", "unit", "target", "holds"}]}

`bars` lists the target figures by a fixed id, with the measured value, met or not.
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

from tidegate.model.json_values import Metrics

#: Packages that can change a figure; those that are not installed are omitted.
PACKAGES = ("tidegate", "pyspark", "pyarrow", "numpy", "numba", "scipy", "duckdb")


@dataclass(frozen=True)
class Bar:
    """One target figure; `holds` is whether `value` meets `target`."""

    id: str
    value: float | None
    unit: str
    target: str
    holds: bool


@dataclass(frozen=True)
class Frame:
    """The output of a measuring command."""

    command: str
    seed: int | None
    rows: Sequence[Mapping[str, Any]] = ()
    bars: Sequence[Bar] = ()
    versions: Mapping[str, str] = field(default_factory=lambda: versions())

    def to_json(self) -> Metrics:
        return {
            "command": self.command,
            "versions": dict(self.versions),
            "seed": self.seed,
            "rows": [dict(row) for row in self.rows],
            "bars": [asdict(bar) for bar in self.bars],
        }


def versions() -> dict[str, str]:
    """The versions of Python and the packages, read from metadata without importing them."""
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
