"""How long each file waited for its results, read from the logs that Spark keeps beside every query.

    offsets/N        how far batch N reads each source
    sources/i/k      the files of entry k of source i
    commits/N        written when batch N is done, after its results are published

A file's latency is the time of `commits/N` minus its own time of modification, where N is the first batch
that has read it for every source: a query may read one folder more than once. This engine runs inside a
Spark query, so both have these logs and are measured alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote


def committed_at(checkpoint: Path) -> dict[str, float]:
    """By name of file: when the batch that processed it was committed, in seconds since the epoch."""
    root = spark_checkpoint(checkpoint)
    if root is None:
        return {}
    entries = {path.name: entries_of(path) for path in numbered(root / "sources")}
    entries = {source: files for source, files in entries.items() if files}
    if not entries:
        return {}
    commits = sorted(numbered(root / "commits"), key=lambda path: int(path.name))
    times = [commit.stat().st_mtime for commit in commits]
    offsets = [offsets_of(root / "offsets" / commit.name) for commit in commits]
    found: dict[str, float] = {}
    known = set.intersection(*(set(files) for files in entries.values()))
    batch = 0
    # Files in the order in which the slowest source takes them; batches only go forward.
    for file in sorted(known, key=lambda name: max(files[name] for files in entries.values())):
        while batch < len(commits) and not all(
            offsets[batch].get(source, -1) >= files[file] for source, files in entries.items()
        ):
            batch += 1
        if batch < len(commits):
            found[file] = times[batch]
    return found


def spark_checkpoint(checkpoint: Path) -> Path | None:
    """The folder with Spark's logs: the checkpoint, or one inside it."""
    inside = sorted(path.parent for path in checkpoint.rglob("commits") if path.is_dir())
    return inside[0] if inside else None


def numbered(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []


def entries_of(source: Path) -> dict[str, int]:
    """The files of a source, each with the number of its entry; old entries are gathered in one file.

    Other sources, such as this engine's heartbeat, log other things.
    """
    found: dict[str, int] = {}
    for path in source.iterdir():
        if path.name.removesuffix(".compact").isdecimal():
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                if line.startswith('{"path"'):
                    entry = json.loads(line)
                    found[unquote(entry["path"]).rpartition("/")[2]] = int(entry["batchId"])
    return found


def offsets_of(path: Path) -> dict[str, int]:
    """By source: the last entry that a batch reads. The first two lines are about the batch itself."""
    found: dict[str, int] = {}
    if path.exists():
        for source, line in enumerate(path.read_text(encoding="utf-8").splitlines()[2:]):
            if '"logOffset"' in line:
                found[str(source)] = int(json.loads(line)["logOffset"])
    return found


def percentile(latencies: list[float], part: float) -> float | None:
    """The latency that this part of the files does not exceed."""
    if not latencies:
        return None
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
