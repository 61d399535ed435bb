"""Runs that are killed and started again, one after the other, on one checkpoint.

    run ─▶ SIGKILL at p1 ─▶ run ─▶ SIGKILL at p2 ─▶ … ─▶ run to the end ─▶ compare with DuckDB

Each restart is the next run to be killed, so n kills cost n + 1 starts. Every kill must have hit what it was
aimed at: the checkpoint is looked at before the next start.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.spark.crash_input import BATCHES, Case, expected, prepare, written
from tests.spark.crash_runner import watched_files
from tests.spark.ledger_watch import violations

from tidegate.state.checkpoint import Checkpoint
from tidegate.state.recovery import referenced
from tidegate.state.spark_log import reads_nothing_new

ROOT = Path(__file__).parents[2]
#: A run takes seconds on an idle machine; a hung one must not hang the tests.
RUN_SECONDS_MAX = 300


@dataclass(frozen=True)
class Kill:
    """Where a run dies; see crash_runner for the steps."""

    step: str
    batch: int
    only_driver: bool = False

    def arguments(self) -> list[str]:
        return ["--kill", f"{self.step}:{self.batch}", *(["--only-driver"] if self.only_driver else [])]


def survive(home: Path, case: Case, kills: list[Kill], *more: str) -> None:
    """Kill and restart; at the end nothing is lost, nothing is there twice, and nothing is left behind."""
    prepare(home, case.seed)
    for kill in kills:
        run_and_kill(home, kill, *case.arguments(), *more)
    run_to_the_end(home, *case.arguments(), *more)
    check_result(home, case)


def run_and_kill(home: Path, kill: Kill, *arguments: str, outputs: Sequence[str] = ("out",)) -> None:
    code, told = run(home, *arguments, *kill.arguments())
    assert code == -signal.SIGKILL, f"{kill} did not happen (exit {code}):\n{told}"
    check_left_behind(home, kill, outputs)


def run_to_the_end(home: Path, *arguments: str) -> None:
    code, told = run(home, *arguments)
    assert code == 0, told


def check_rows(home: Path, case: Case) -> None:
    """What was written is what DuckDB says, nothing lost and nothing twice."""
    answer = expected(home, case)
    assert len(answer) > 1000, "too few rows to show anything"
    got = written(home)
    lost, extra = set(answer) - set(got), set(got) - set(answer)
    assert not lost, f"{len(lost)} rows lost, such as {min(lost, key=str)}"
    assert not extra, f"{len(extra)} rows that are wrong, such as {min(extra, key=str)}"
    assert got == answer, "rows are there twice"


def check_result(home: Path, case: Case) -> None:
    check_rows(home, case)
    check_checkpoint(home)


def check_checkpoint(home: Path, batches: int = BATCHES) -> None:
    """Nothing unfinished is left, and both logs end together."""
    checkpoint = Checkpoint(str(home / "checkpoint"))
    manifest = checkpoint.manifests.load_latest()
    assert manifest is not None
    check_logs(home, manifest.spark_batch.number, batches)
    receipts = checkpoint.receipts.read()
    assert [one["batch_id"] for one in receipts] == list(range(manifest.batch + 1)), (
        "a receipt is missing or twice"
    )
    assert not [wrong for one in receipts for wrong in violations(one)]
    assert not checkpoint.store.list(temporary=True)


def check_logs(home: Path, batch: int, batches: int) -> None:
    """Both logs end with the same batch, or Spark's with idle ones, and every input file was taken, once.

    Not "one file a batch": killed alone, a driver may leave a JVM behind that has begun the source log of the
    next batch, but not that batch; Spark then reads that file together with the one after it.
    """
    spark = home / "checkpoint/spark"
    last = max(int(path.name) for path in (spark / "commits").iterdir() if path.name.isdigit())
    log = Checkpoint(str(home / "checkpoint")).spark_log
    assert batch == last or (batch < last and reads_nothing_new(log.batch(last), log.batch(batch)))
    for source in ("0", "1"):
        lines = [line for log in (spark / "sources" / source).iterdir() for line in _entries(log)]
        taken = sorted(json.loads(line)["path"].rsplit("/", 1)[-1] for line in lines)
        assert taken == sorted(f"{number}.parquet" for number in range(batches)), source


def _entries(log: Path) -> list[str]:
    return [] if log.name.startswith(".") else log.read_text().splitlines()[1:]


def unreferenced(home: Path) -> set[str]:
    """Segment files that the newest manifest does not name."""
    checkpoint = Checkpoint(str(home / "checkpoint"))
    manifest = checkpoint.manifests.load_latest()
    return set(checkpoint.store.list("segments")) - referenced(manifest.pieces if manifest else ())


def run(home: Path, *arguments: str) -> tuple[int, str]:
    """One run to its end, whichever that is: exit code, and what it said. Nothing of it lives on."""
    command = [sys.executable, "-m", "tests.spark.crash_runner", str(home), *arguments]
    log = home / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        code = process.wait(timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        code = 1
    finally:
        end_session(process)
    return code, f"{shlex.join(command)}\n{log.read_text()[-5000:]}"


@contextmanager
def halted(home: Path, *arguments: str) -> Iterator[Callable[[], tuple[int, str]]]:
    """A run that has stopped itself; call what this gives to wake it up: exit code, and what it said."""
    command = [sys.executable, "-m", "tests.spark.crash_runner", str(home), *arguments]
    log = home / "halted.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )

    def wake() -> tuple[int, str]:
        process.send_signal(signal.SIGCONT)
        return process.wait(timeout=RUN_SECONDS_MAX), log.read_text()

    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"{shlex.join(command)}\n{log.read_text()[-5000:]}"
        yield wake
    finally:
        end_session(process)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a run: Spark's Python workers have process groups of their own."""
    deadline = time.monotonic() + 30
    while left := living_in_session(process.pid):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.02)
    process.wait()


def living_in_session(session: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


def check_left_behind(home: Path, kill: Kill, outputs: Sequence[str]) -> None:
    """The run died where it was meant to: what stands is what had been done, and no more."""
    batch = kill.batch
    step, _, name = kill.step.partition(" ")
    state = home / "checkpoint/tidegate"
    segments = watched_files(home, "writing", batch)
    spark_commit = watched_files(home, "spark-commit", batch)
    telemetry = list((state / "telemetry").glob(f"*{batch:010d}*"))
    manifest = (state / f"manifests/{batch:010d}.json").exists()
    plan = (state / f"plans/{batch:010d}.json").exists()
    drafted = [any((home / folder).glob(f".tidegate/{batch:010d}-*")) for folder in outputs]
    published = [any((home / folder).glob(f"part-{batch:010d}-*")) for folder in outputs]
    done = ("committed", "publishing", "published", "spark-commit")
    assert manifest == (step in done), kill
    # The plan of a batch that has been tried before is there before it is planned again.
    assert plan or step == "planning", kill
    # Where the action writes the output too, files of both appear in any order.
    if step in ("writing", "materialised", "sink", "sunk", "reported"):
        assert segments, kill
    if step not in ("publishing", "published", "spark-commit"):
        assert not any(published), kill
    if step == "sink" and name:
        before = [Path(folder).name for folder in outputs].index(name)
        assert drafted == [number < before for number in range(len(outputs))], kill
    if step in ("sunk", "reported", "committed", "publishing"):
        assert all(drafted), kill
    if step in ("published", "spark-commit"):
        assert all(published), kill
        assert not any(drafted), kill
    if step == "reported":
        assert telemetry, kill
    assert bool(spark_commit) == (step == "spark-commit"), kill
