"""The process of one contender of `tidegate bench join`: `python -m tidegate_lab.bench.join.contender TASK`.

All Spark contenders read the same files through the same kind of source (one file of each stream per batch,
back to back), write their pairs as the same kind of files, and use one clock: Spark's `triggerExecution`,
which covers a whole batch from listing files to the commit.
"""

from __future__ import annotations

import os
import sys
import threading

from tidegate_lab.bench.join.spec import EventLog, Task


def main(path: str) -> int:
    _leave_with_parent()
    # Spark starts its workers with "python3" from the path unless told otherwise.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    task = Task.load(path)
    log = EventLog(task.events)
    if task.engine == "duckdb":
        from tidegate_lab.bench.join import duckdb_job

        duckdb_job.run(task, log)
    else:
        from tidegate_lab.bench.join import streaming

        streaming.run(task, log)
    return 0


def _leave_with_parent() -> None:
    """End this process when the one that started it closes our standard input, or dies."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
