"""How the files of a checkpoint are named, and the error for one that is not there.

Every path is relative to a store's root, with `/` between its parts. Files that belong to a batch carry its
number in ten digits, so that the order of names is the order of batches. A name that starts with `.tmp-`
is an atomic write that has not been finished: readers ignore it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import TypeAlias

import pyarrow as pa

from tidegate.errors import REPORT_STATE_BUG, StateError

#: A list of paths. Spelled here because stores have a method `list`, which hides the type inside the class.
Names = list[str]

TEMPORARY_PREFIX = ".tmp-"
_BATCH_FILE = re.compile(r"(\d{10,})\.json")


def checked(path: str) -> str:
    """The path itself; StateError when it could leave the root or is not in its plain form."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts):
        raise StateError(
            "A path inside a checkpoint must be relative, without empty parts, `.` or `..`",
            code="INTERNAL_PATH_INVALID",
            got=repr(path),
            why="It could name a file outside the checkpoint",
        )
    return path


def temporary(path: str) -> str:
    """A fresh name beside `path`, for writing before a rename."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{TEMPORARY_PREFIX}{secrets.token_hex(6)}-{name}"


def is_temporary(path: str) -> bool:
    return path.rpartition("/")[2].startswith(TEMPORARY_PREFIX)


def selected(paths: Iterable[str], prefix: str, temporary: bool) -> Names:
    """The finished (or the temporary) files below the folder `prefix`, sorted; "" is the root."""
    folder = prefix.strip("/") + "/" if prefix.strip("/") else ""
    return sorted(p for p in paths if p.startswith(folder) and is_temporary(p) == temporary)


def segment_path(operator: str, batch: int, instance: int, attempt: str) -> str:
    """Where one attempt of a task writes; `attempt` must never come twice, not even after a restart."""
    return checked(f"segments/{operator}/{batch:010d}-{instance}-{attempt}.arrow")


def stage_path(operator: str, batch: int, task: int, attempt: str) -> str:
    """Where the same attempt leaves results that wait for the sinks."""
    return segment_path(operator, batch, task, attempt).removesuffix(".arrow") + ".parquet"


def batch_path(folder: str, batch: int) -> str:
    return f"{folder}/{batch:010d}.json"


def batch_of(path: str) -> int | None:
    """The batch a file belongs to; None for a file that is not one of ours."""
    found = _BATCH_FILE.fullmatch(path.rpartition("/")[2])
    return int(found.group(1)) if found else None


def missing(url: str, path: str) -> StateError:
    return StateError(
        f"A file of the checkpoint is missing: {path}",
        code="CHECKPOINT_FILE_MISSING",
        got=f"nothing at {url}/{path}",
        why="The state of the query is incomplete without it",
        do="Restore the file from a backup, or start with a new checkpoint",
    )


def no_file(url: str, path: str, error: OSError) -> StateError:
    return StateError(
        f"A file of the checkpoint cannot be used: {path}",
        code="CHECKPOINT_FILE_UNUSABLE",
        got=f"{type(error).__name__}: {error.strerror} at {url}/{path}",
        why="Something else may be in its place, and the state of the query is incomplete without it",
        do="Look at what is there; restore the file from a backup, or start with a new checkpoint",
    )


def written_twice(url: str, path: str) -> StateError:
    return StateError(
        f"A file of the checkpoint would be written twice: {path}",
        code="INTERNAL_FILE_WRITTEN_TWICE",
        got=f"an existing file at {url}/{path}",
        why="Files are immutable because other tasks may have mapped them into memory",
        do=REPORT_STATE_BUG,
    )


#: What can be written: anything that shows its bytes without a copy.
Bytes: TypeAlias = bytes | memoryview | pa.Buffer
