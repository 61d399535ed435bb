#!/usr/bin/env python3
"""Makes BENCHMARKS.md from the results in benchmarks/. Run `python scripts/benchmarks.py`.

`--check` writes nothing and fails if the page is not what the results say; a test runs it.
benchmarks/README.md describes the two forms of a result: a record, and what `--json` of a measuring command
writes. Targets are compared again here, so that no result claims to meet a target that its value misses.
"""

from __future__ import annotations

import argparse
import json
import operator
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks", ROOT / "BENCHMARKS.md"

COMPARISONS = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}
SIGNS = {"<=": "≤ ", ">=": "≥ ", "=": ""}

HEAD = """\
# Benchmarks

Made by `python scripts/benchmarks.py` from the results in [benchmarks/](benchmarks/README.md).

Each figure is from the last full run of its command. Times depend on the machine and on what else it does:
compare ratios within one run, not seconds between runs. `tidegate bench`, `tidegate reproduce` and the
scripts need the lab (`make install` in a clone).

"""


class ResultError(ValueError):
    """A result that cannot be read, named with its file."""


@dataclass(frozen=True)
class Figure:
    """One measured value."""

    id: str
    what: str
    value: float | None
    unit: str
    target: str | None
    note: str

    @property
    def met(self) -> bool | None:
        """Whether the value meets the target; None without a target or a value."""
        if self.target is None or self.value is None:
            return None
        sign, bound = self.target.split()
        return bool(COMPARISONS[sign](self.value, float(bound)))


@dataclass(frozen=True)
class Result:
    """One run of one command."""

    command: str
    date: str
    machine: str
    commit: str
    note: str
    figures: tuple[Figure, ...]


def read(file: Path) -> Result:
    """The result in a file, in either form."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return _from_frame(found, file) if "bars" in found else _from_record(found)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultError(f"{file.name}: {type(error).__name__}: {error}") from error


def _from_record(found: Mapping[str, Any]) -> Result:
    figures = tuple(
        Figure(row["id"], row["what"], row["value"], row["unit"], row["target"], row.get("note", ""))
        for row in found["rows"]
    )
    for figure, row in zip(figures, found["rows"], strict=True):
        if row["met"] is not figure.met:
            raise ValueError(f"{figure.id} says met={row['met']}, but its value and target say {figure.met}")
    return Result(
        found["command"], found["date"], found["machine"], found["commit"], found.get("note", ""), figures
    )


def _from_frame(found: Mapping[str, Any], file: Path) -> Result:
    dated = re.search(r"\d{4}-\d{2}-\d{2}", file.name)
    date = found.get("date") or (dated and dated[0])
    if not date:
        raise ValueError("has no date: let the file's name end with it, as in skew.2026-11-17.json")
    figures = tuple(
        Figure(bar["id"], "", bar["value"], bar["unit"], bar["target"], "") for bar in found["bars"]
    )
    for figure, bar in zip(figures, found["bars"], strict=True):
        if figure.met is not None and bar["holds"] is not figure.met:
            raise ValueError(f"{figure.id} says holds={bar['holds']}, but its value and target differ")
    command = found["command"]
    return Result(
        command if command.startswith(("tidegate ", "python ")) else f"tidegate {command}",
        date,
        found.get("machine") or ", ".join(f"{name} {version}" for name, version in found["versions"].items()),
        found.get("commit", ""),
        found.get("note", ""),
        figures,
    )


def page(results: list[Result]) -> str:
    """The whole page."""
    figures = [figure for result in results for figure in result.figures]
    judged = [figure for figure in figures if figure.met is not None]
    missed = [figure.id for figure in judged if not figure.met]
    unmeasured = [figure.id for figure in figures if figure.target is not None and figure.value is None]
    lines = [f"**{len(judged) - len(missed)} of {len(judged)} targets are met.** Missed: {_names(missed)}."]
    if unmeasured:
        lines.append(f"Not measured: {_names(unmeasured)}.")
    lines += ["", "| figure | | measured | target | met |", "|---|---|--:|--:|---|"]
    for result in results:
        lines += _rows(result)
    return HEAD + "\n".join(lines) + "\n"


def _rows(result: Result) -> Iterator[str]:
    commit = f", {result.commit}" if result.commit else ""
    note = f" {result.note}." if result.note else ""
    yield _row(f"**`{result.command}`**", f"{result.date}; {result.machine}{commit}.{note}", "", "", "")
    for figure in result.figures:
        met = {True: "yes", False: "**no**", None: ""}[figure.met]
        about = " ".join(part for part in (figure.what, figure.note and f"*{figure.note}*") if part)
        yield _row(f"`{figure.id}`", about, _measured(figure), _target(figure.target), met)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _names(ids: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in ids) or "none"


def _measured(figure: Figure) -> str:
    if figure.value is None:
        return "not measured"
    text = f"{figure.value:,}" if abs(figure.value) >= 1_000 else f"{figure.value:g}"
    return f"{text} {figure.unit}".rstrip()


def _target(target: str | None) -> str:
    if target is None:
        return ""
    sign, bound = target.split()
    return f"{SIGNS[sign]}{bound}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Makes BENCHMARKS.md from the results in benchmarks/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is out of date")
    check = parser.parse_args(argv).check
    try:
        results = [read(file) for file in sorted(RESULTS.glob("*.json"))]
    except ResultError as error:
        print(f"benchmarks/{error}", file=sys.stderr)
        return 1
    text = page(results)
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("BENCHMARKS.md is out of date: run python scripts/benchmarks.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
