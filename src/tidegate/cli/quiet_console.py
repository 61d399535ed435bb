"""Keeps what Spark's Java process writes to standard error off the screen, unless something fails.

Java writes to the file descriptor, not through Python, so the descriptor is redirected to a file. If an error
is raised, the end of that file is printed to the real standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

STANDARD_ERROR = 2
#: Enough for the cause of a Java error with its trace.
LINES_SHOWN = 60


@contextmanager
def standard_error_in(log: Path) -> Iterator[None]:
    """Redirect within the block; processes started inside keep writing to the file."""
    sys.stderr.flush()
    screen = os.dup(STANDARD_ERROR)
    with log.open("ab") as file:
        os.dup2(file.fileno(), STANDARD_ERROR)
    failed = False
    try:
        yield
    except Exception:
        failed = True
        raise
    finally:
        sys.stderr.flush()
        os.dup2(screen, STANDARD_ERROR)
        os.close(screen)
        if failed:
            lines = log.read_text(errors="replace").splitlines()[-LINES_SHOWN:]
            os.write(STANDARD_ERROR, ("\n".join(["The end of Spark's log:", *lines]) + "\n").encode())
