"""A contender in a process of its own, which is asked one task after another.

A process lives for the rounds of one query: Java is warm in the second round, and what one query left in
memory does not weigh on the next, nor on another contender.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tidegate_lab.bench.join.process import cause_of_death, end_session
from tidegate_lab.bench.nexmark.task import Answer

POLL_SECONDS = 0.05
LAST_WORDS_SECONDS = 10.0


class Contender:
    """A running process; `ready` is its first answer."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        """`command` writes its answers to `answers.jsonl` in the folder."""
        folder.mkdir(parents=True)
        self._answers = folder / "answers.jsonl"
        self._log = folder / "log.txt"
        self._taken = 0
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **environment},
            )

    def ask(self, line: str, timeout_seconds: float) -> Answer:
        """Hand in a task and wait for its answer; a process that has ended answers that it died."""
        if self._process.poll() is None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
        return self.next_answer(timeout_seconds)

    def next_answer(self, timeout_seconds: float) -> Answer:
        until = time.monotonic() + timeout_seconds
        while True:
            ended = self._process.poll() is not None
            lines = self._answers.read_text(encoding="utf-8").splitlines() if self._answers.exists() else []
            if len(lines) > self._taken:
                self._taken += 1
                return dict(json.loads(lines[self._taken - 1]))
            if ended:
                return {"event": "died", "why": cause_of_death(self._log, self._process.returncode)}
            if time.monotonic() > until:
                end_session(self._process.pid)
                return {"event": "died", "why": f"not done after {timeout_seconds:.0f} s"}
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Let it end by itself, and after a while make it and all that it started."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_WORDS_SECONDS)
        end_session(self._process.pid)
        self._process.wait()
