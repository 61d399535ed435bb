"""One run of a flow in a process of its own, which may be told where to die.

    python -m tests.spark.crash_runner HOME --how left --kill sunk:3

reads HOME/left and HOME/right, writes HOME/out, keeps its state in HOME/checkpoint and stops when all input
is taken. With --kill it sends SIGKILL to itself and its JVM at the given step of the given batch:

    planning, planned, materialised, sink, sunk, reported, committed, publishing, published
                  a step of the engine; `sink` is the first of them, "sink NAME" that of one output,
                  `publishing` comes behind the first file that is published
    writing       a task of the batch has begun to write its state file
    spilling      output files of the batch are there, but not all of them
    spark-commit  Spark's own commit of the batch stands

With --halt it stops itself there (SIGSTOP, the driver alone) until it is told to go on.
`--written` has Spark write the output. `--commit-every` holds files back.

`--only-driver` leaves the JVM alive: it must notice by itself that nobody is there any more.
`--restless` moves partitions, keys and splits between instances in every batch.
`--shedding` runs the flow of shedding_flow.py, under plans that nobody can foresee.
`--repair` gives a goal that no batch can meet: work is left out, and made up for when all input is taken.
`--failing-attempts` makes the first attempt of each join task fail after its state file is written (in
some batches: each failure costs a new Python worker).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.crash_flow import failing_at_first, joined
from tests.spark.flows import start_bounded
from tests.spark.restless import Restless

import tidegate as tg
from tests.spark import shedding_flow
from tidegate.control.balance import balancing
from tidegate.control.goal.warm_up import WarmUp
from tidegate.control.repair import repair
from tidegate.driver import runner as running_module
from tidegate.driver.engine import piece_files
from tidegate.driver.engine.engine import Engine

STEPS = (
    "planning",
    "planned",
    "materialised",
    "sink",
    "sunk",
    "reported",
    "committed",
    "publishing",
    "published",
)


def watched_files(home: Path, kind: str, batch: int) -> list[Path]:
    """The files whose appearance means that the batch has come so far."""
    if kind == "writing":
        written = (home / "checkpoint/tidegate/segments").glob(f"*/{batch:010d}-*")
        return [path for path in written if path.suffix != ".pieces"]  # which the driver has written
    if kind == "spilling":
        drafts = list((home / "out").glob(f".tidegate/{batch:010d}-*"))
        # Tasks of Spark write below `_temporary`; links are made at once.
        return [path for draft in drafts for path in (*draft.glob("_temporary/*"), *draft.glob("part-*"))]
    return list((home / "checkpoint/spark/commits").glob(str(batch)))


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    home = options.home
    spark = _session(options.master, options.conf)
    if options.kill:
        kind, _, batch = options.kill.partition(":")
        _arm(home, kind, int(batch), _killer(options.only_driver))
    if options.halt:
        kind, _, batch = options.halt.partition(":")
        _at_step(kind, int(batch), lambda: os.kill(os.getpid(), signal.SIGSTOP))
    if options.restless:
        balancing.strategy_of = lambda balance: Restless()
        # Its tasks read the pieces of their instance from files.
        setattr(piece_files, "LISTED_FROM", 1)  # noqa: B010
    more: dict[str, Any] = {"available_now": True}
    if options.repair:
        # Left out from the second batch on, also in a run that is young; made up for in several batches.
        setattr(WarmUp, "is_cold", False)  # noqa: B010
        setattr(repair, "FIRST_COMPARISONS", 15_000.0)  # noqa: B010
        more = {"goal": tg.Goal(latency="20 milliseconds"), "shed": tg.Shed(repair="idle")}
    where = failing_at_first() if options.failing_attempts else options.where
    if options.shedding:
        more["goal"] = shedding_flow.GOAL
        shedding_flow.replan_with(setattr, shedding_flow.unforeseen)
        outputs = shedding_flow.outputs(spark, home)
    else:
        flow = joined(spark, home, options.how, where)
        way = {"compression": "snappy"} if options.written else None
        more_of_it = {"options": way, "commit_every": options.commit_every}
        outputs = [flow.write_to("parquet", str(home / "out"), name="out", **more_of_it)]
    start = start_bounded if more.pop("available_now", False) else tg.start
    query = start(
        *outputs,
        checkpoint=str(home / "checkpoint"),
        partitions=4,
        balance=tg.Balance() if options.restless else tg.Balance(strategy="none"),
        **more,
    )
    if options.repair:
        query.process_all_available()
        query.stop()
    query.await_termination()
    spark.stop()


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--how", default="inner")
    parser.add_argument("--where")
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--kill", help="step:batch")
    parser.add_argument("--halt", help="step:batch")
    parser.add_argument("--written", action="store_true")
    parser.add_argument("--commit-every")
    parser.add_argument("--only-driver", action="store_true")
    parser.add_argument("--failing-attempts", action="store_true")
    parser.add_argument("--restless", action="store_true", help="partitions and keys move in every batch")
    parser.add_argument("--shedding", action="store_true", help="the flow of shedding_flow instead of a join")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", action="append", default=[], help="name=value")
    return parser.parse_args(arguments)


def _session(master: str, conf: list[str]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = (
        SparkSession.builder.master(master)
        .appName("tidegate-crash")
        .config("spark.driver.memory", "1g")
        # A short life: compile fast rather than well.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
    )
    for setting in conf:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _killer(only_driver: bool) -> Callable[[], None]:
    def kill() -> None:
        if only_driver:
            os.kill(os.getpid(), signal.SIGKILL)
        # The driver leads its group and the JVM is in it: both die at the same instant.
        os.killpg(os.getpid(), signal.SIGKILL)

    return kill


def _arm(home: Path, kind: str, batch: int, kill: Callable[[], None]) -> None:
    if kind.partition(" ")[0] in STEPS:
        _at_step(kind, batch, kill)
        return
    threading.Thread(target=_at_file, args=(home, kind, batch, kill), daemon=True).start()


def _at_step(kind: str, batch: int, kill: Callable[[], None]) -> None:
    def on_step(step: str, at: int) -> None:
        if kind in (step, step.partition(" ")[0]) and at == batch:
            kill()

    def engine(*given: Any) -> Engine:
        made = Engine(*given)
        made.on_step = on_step
        return made

    # The handle of a query does not show its engine, so it is reached where it is made.
    setattr(running_module, "Engine", engine)  # noqa: B010


def _at_file(home: Path, kind: str, batch: int, kill: Callable[[], None]) -> None:
    left_by_others = set(watched_files(home, kind, batch))
    while not set(watched_files(home, kind, batch)) - left_by_others:
        time.sleep(0.001)
    kill()


if __name__ == "__main__":
    main(sys.argv[1:])
