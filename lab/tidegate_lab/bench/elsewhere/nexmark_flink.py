"""Flink as a contender of `tidegate bench nexmark`: runs SQL that it is given, where PyFlink is.

That interpreter runs this file as a script, so it imports nothing of Tidegate. Java stays up from one task to
the next, so the second round of a query meets a warm one. Each line of standard input is a task:

    {"settings": {…}, "statements": ["CREATE …", …], "insert": "INSERT …"}

and each answer is a line of the file named by the only argument. The first answer comes without a task.

    {"event": "ready", "version": …, "parquet": …}     or     {"event": "absent", "why": …}
    {"event": "done", "seconds": …}                    or     {"event": "died", "why": …}
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any


def main(answers: str) -> None:
    out = Path(answers)
    leave_with_parent()
    try:
        import pyflink.version  # type: ignore[import-not-found,unused-ignore]
        from pyflink.table import (  # type: ignore[import-not-found,unused-ignore]
            EnvironmentSettings,
            TableEnvironment,
        )
    except ImportError as error:
        write_answer(out, {"event": "absent", "why": str(error)})
        return
    lib = Path(pyflink.version.__file__).parent / "lib"
    parquet = any(lib.glob("flink-sql-parquet*.jar"))
    write_answer(out, {"event": "ready", "version": pyflink.version.__version__, "parquet": parquet})
    for line in sys.stdin:
        task = json.loads(line)
        try:
            tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
            write_answer(out, {"event": "done", "seconds": run(tables, task)})
        except Exception as error:
            write_answer(out, {"event": "died", "why": cause(str(error))})


def run(tables: Any, task: dict[str, Any]) -> float:
    """Seconds from handing in the query until the job has ended."""
    for key, value in task["settings"].items():
        tables.get_config().set(key, value)
    for statement in task["statements"]:
        tables.execute_sql(statement)
    begun = time.monotonic()
    tables.execute_sql(task["insert"]).wait()
    return time.monotonic() - begun


def leave_with_parent() -> None:
    """End this process when the one that started it is gone, in the middle of a task too."""
    parent = os.getppid()

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


def cause(text: str) -> str:
    """The last cause that Java names."""
    lines = [line.strip() for line in text.splitlines() if "Caused by" in line or "Exception" in line]
    return (lines[-1] if lines else text)[:500]


def write_answer(out: Path, answer: dict[str, Any]) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
