"""A console for commands that run Spark: what they print, and nothing of what Spark does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tidegate.cli.quiet_console import standard_error_in

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def console_beside_spark(json: str | None) -> Iterator[Console]:
    """A console of ours while Spark's standard error is turned away; `json` as the command was given it."""
    from rich.console import Console

    # A copy of the descriptor: what Spark writes to standard error is turned away, what we write is not.
    told = os.fdopen(os.dup(2 if json == "-" else 1), "w", buffering=1)
    sys.stdout.flush()
    with TemporaryDirectory(prefix="tidegate-log-") as logs, standard_error_in(Path(logs) / "spark.log"):
        yield Console(file=told, highlight=False)
