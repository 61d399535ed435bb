"""The processes of all contenders: started when they are first asked, and handed their tasks."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate_lab.bench.nexmark.process import Contender
from tidegate_lab.bench.nexmark.queries import flink_sql
from tidegate_lab.bench.nexmark.task import CORES, FLINK_CHECKPOINTS, FLINKS, Answer, Pace, Task

START_SECONDS = 180.0
_FLINK_SCRIPT = Path(__file__).parents[1] / "elsewhere" / "nexmark_flink.py"


@dataclass(frozen=True)
class Machine:
    """What a contender gets."""

    #: Heap of Spark's Java, and of Flink's.
    memory: str
    flink_python: str | None = None
    checkpoint_seconds: float = 1.0


class Processes:
    """Contenders by name; they leave when the rounds of a query are over."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine = machine
        self._folder = folder
        self._running: dict[str, tuple[Contender, Answer]] = {}
        self._started = 0

    def play(
        self,
        contender: str,
        query: str,
        files: Sequence[Path],
        work: Path,
        keep: bool,
        timeout_seconds: float,
    ) -> Answer:
        """One query over files that are all there."""
        process, ready = self._there(contender)
        if ready["event"] != "ready":
            return ready
        if contender in FLINKS:
            line = self._flink_task(contender, query, files, work, keep, bool(ready["parquet"]))
        else:
            line = Task(contender, query, str(files[0].parent), str(work), keep).to_line()
        return process.ask(line, timeout_seconds)

    def sustain(
        self, contender: str, query: str, events: Path, work: Path, pace: Pace, timeout_seconds: float
    ) -> Answer:
        """One query while files are published."""
        process, ready = self._there(contender)
        if ready["event"] != "ready":
            return ready
        return process.ask(
            Task(contender, query, str(events), str(work), True, pace).to_line(), timeout_seconds
        )

    def leave(self) -> None:
        """End all processes."""
        for process, _ in self._running.values():
            process.close()
        self._running.clear()

    def _there(self, contender: str) -> tuple[Contender, Answer]:
        if contender not in self._running:
            self._started += 1
            folder = self._folder / f"{self._started:03d}-{contender}"
            process = Contender(self._command(contender, folder), folder, self._environment(contender))
            self._running[contender] = process, process.next_answer(START_SECONDS)
        return self._running[contender]

    def _command(self, contender: str, folder: Path) -> list[str]:
        answers = str(folder / "answers.jsonl")
        if contender in FLINKS:
            return [str(self._machine.flink_python), str(_FLINK_SCRIPT), answers]
        return [sys.executable, "-m", "tidegate_lab.bench.nexmark.worker", answers, self._machine.memory]

    def _environment(self, contender: str) -> dict[str, str]:
        if contender not in FLINKS:
            return {}
        return {"JVM_ARGS": f"-Xmx{self._machine.memory}", "HADOOP_CLASSPATH": _hadoop_jars()}

    def _flink_task(
        self, contender: str, query: str, files: Sequence[Path], work: Path, keep: bool, parquet: bool
    ) -> str:
        # The same for every round of a query, and for both ways to run Flink.
        flat = self._folder / f"flat-{query}"
        if not flat.exists():
            for old in self._folder.glob("flat-*"):
                shutil.rmtree(old)
            flink_sql.write_flat(query, files, flat, CORES, parquet)
        settings: dict[str, Any] = {"parallelism.default": str(CORES), "table.local-time-zone": "UTC"}
        if contender == FLINK_CHECKPOINTS:
            settings["execution.checkpointing.interval"] = (
                f"{round(self._machine.checkpoint_seconds * 1000)} ms"
            )
            settings["execution.checkpointing.dir"] = f"file://{work / 'checkpoints'}"
        out = work / "out" if keep else None
        statements = flink_sql.statements(query, flat, parquet, out)
        return json.dumps({"settings": settings, "statements": statements, "insert": flink_sql.insert(query)})


def _hadoop_jars() -> str:
    """Flink's Parquet format needs classes of Hadoop; Spark brings them."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    return os.pathsep.join(str(jar) for jar in sorted(jars.glob("hadoop-client-*.jar")))
