"""The process of a contender on Spark: `python -m tidegate_lab.bench.nexmark.worker ANSWERS MEMORY`.

Every line of standard input is a task, every answer a line of the file ANSWERS. Java stays up from one task
to the next, so the second round of a query meets a warm one. The process ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from tidegate_lab.bench.nexmark.task import CORES, Answer, Task


def main(answers: str, memory: str) -> int:
    from tidegate.driver.session import embedded_session
    from tidegate_lab.bench.nexmark.play import play
    from tidegate_lab.bench.nexmark.sustain import sustain

    out = Path(answers)
    leave_with_parent()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = embedded_session(
        "tidegate bench nexmark",
        cores=CORES,
        memory=memory,
        spark_local_dir=str(out.parent / "local"),
        spark_sql_warehouse_dir=str(out.parent / "warehouse"),
        # The commits of a whole run are needed to know its latencies.
        spark_sql_streaming_minBatchesToRetain="100000",
        spark_sql_streaming_numRecentProgressUpdates="10000",
        # A heap of one size, as servers run and as Flink starts its own: one that grows with the load makes
        # the collector mark all of it again and again, for a fifth of the processor time.
        spark_driver_extraJavaOptions=f"-Xms{memory}",
    )
    write_answer(out, {"event": "ready"})
    for line in sys.stdin:
        task = Task.of_line(line)
        try:
            answer = play(spark, task) if task.pace is None else sustain(spark, task)
        except Exception as error:
            answer = {"event": "died", "why": str(error).partition("\n")[0][:500]}
        write_answer(out, answer)
    spark.stop()
    return 0


def leave_with_parent() -> None:
    """End this process when the one that started it is gone, in the middle of a task too."""
    parent = os.getppid()

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


def write_answer(out: Path, answer: Answer) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
