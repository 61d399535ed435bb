"""Runs one contender in a separate process, measures its memory, and cleans up after it.

A contender is a small tree of processes (Python, Java, Python workers) with one session id: memory is the sum
of their resident sizes, sampled a few times a second, and ending a contender ends every process of that
session. If this process is killed, the contender's standard input closes and the contender exits too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate_lab.bench.join.spec import Task, read_events

SAMPLE_SECONDS = 0.25
#: Time between asking a contender's processes to end and ending them.
GRACE_SECONDS = 5.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: Engines whose packages live in an interpreter of their own run these files with it.
SCRIPTS = {"flink": "elsewhere/flink_job.py", "pathway": "elsewhere/pathway_job.py"}


@dataclass(frozen=True)
class Outcome:
    """What became of one run: `died` is empty, or says why there is no complete result."""

    engine: str
    died: str
    events: tuple[Mapping[str, Any], ...]
    wall_seconds: float
    peak_memory_bytes: int
    absent: bool = False
    done: Mapping[str, Any] = field(default_factory=dict)


def run_contender(task: Task, timeout_seconds: float, python: str = sys.executable) -> Outcome:
    """Run to the end, to death or to the time limit, whichever comes first."""
    Path(task.work).mkdir(parents=True, exist_ok=True)
    log = Path(task.work) / "log.txt"
    begun = time.monotonic()
    peak, timed_out = 0, False
    with log.open("wb") as out, _start(task, python, out) as process:
        try:
            while process.poll() is None:
                peak = max(peak, sum(resident_bytes(process.pid).values()))
                if time.monotonic() - begun > timeout_seconds:
                    timed_out = True
                    break
                time.sleep(SAMPLE_SECONDS)
        finally:
            end_session(process.pid)
            process.wait()
    events = tuple(read_events(task.events))
    last = events[-1] if events else {}
    died = ""
    if timed_out:
        died = f"not done after {timeout_seconds:.0f} s"
    elif last.get("event") not in ("done", "absent"):
        died = cause_of_death(log, process.returncode)
    return Outcome(
        engine=task.engine,
        died=died,
        events=events,
        wall_seconds=time.monotonic() - begun,
        peak_memory_bytes=peak,
        absent=last.get("event") == "absent",
        done=last if last.get("event") == "done" else {},
    )


def _start(task: Task, python: str, out: Any) -> subprocess.Popen[bytes]:
    if task.engine in SCRIPTS:
        command = [python, str(Path(__file__).parents[1] / SCRIPTS[task.engine]), str(task.save())]
    else:
        command = [python, "-m", "tidegate_lab.bench.join.contender", str(task.save())]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
    )


def resident_bytes(session: int) -> dict[int, int]:
    """Process id → resident bytes of every living process of the session; empty where there is no /proc."""
    sizes: dict[int, int] = {}
    if not os.path.isdir("/proc"):
        return sizes
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _stat(int(entry))
            if fields is not None and fields[0] != "Z" and int(fields[3]) == session:
                sizes[int(entry)] = int(fields[21]) * PAGE_BYTES
    return sizes


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the name, which may hold spaces; None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def end_session(session: int) -> None:
    """Ask every process of the session to end, and after a while make it."""
    for how, wait in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        for pid in resident_bytes(session) or (session,):
            with suppress(ProcessLookupError):
                os.kill(pid, how)
        until = time.monotonic() + wait
        while time.monotonic() < until and resident_bytes(session):
            time.sleep(0.05)


def cause_of_death(log: Path, code: int | None) -> str:
    """The line of the log that says most: memory first, then the last exception."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for word in ("OutOfMemoryError", "Cannot allocate memory", "Exception:", "Error:"):
        for line in reversed(lines):
            if word in line:
                return line.strip()[:200]
    return f"ended with code {code}" + (f": {lines[-1].strip()[:150]}" if lines else "")
