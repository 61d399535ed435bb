"""Every error that Tidegate raises on purpose, under one base class.

A message starts with the code of the error and has four parts, in this order: what is wrong; what we got; why
it matters; what to do.

    [JOIN_HOW_UNKNOWN] Unknown kind of join. Got: how='iner'. Use one of inner, left, right, full, …

`docs/errors.md` lists the codes. Errors take the parts themselves; `explain` makes the same sentence for
warnings. `in_one_line` quotes the errors of others, with the place in the user's code.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Self

from tidegate.redaction import without_secrets

__all__ = ["BatchFailed", "CheckpointInUse", "FlowError", "StateError", "TidegateError"]

#: The remedy of a fault that no user can cause: of all codes that begin with INTERNAL_ and have no other.
REPORT_BUG = "This is a bug in Tidegate: report it with this message, the stack trace and the query's code"
#: The same, where the checkpoint shows what happened.
REPORT_STATE_BUG = (
    "This is a bug in Tidegate: report it with this message, the stack trace and the output of "
    "`tidegate inspect CHECKPOINT`"
)


_PARTS = ("problem", "got", "why", "remedy")


class TidegateError(Exception):
    """Base of all errors that Tidegate raises on purpose.

    `code` names the kind of mistake and does not change between versions. `details` has the parts of the
    message (`problem`, `got`, `why`, `remedy`) and, where they are known, `batch_id`, `operator`, `output`
    and `stream`.

    >>> error = TidegateError("Unknown kind of join", got="'iner'", do="Use inner", code="JOIN_HOW_UNKNOWN")
    >>> error.code, error.details["got"]
    ('JOIN_HOW_UNKNOWN', "'iner'")
    """

    code: str
    details: dict[str, Any]

    def __init__(
        self,
        wrong: str,
        *,
        code: str,
        got: object = None,
        why: str = "",
        do: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        if code.startswith("INTERNAL_"):
            do = do or REPORT_BUG
        said = explain(wrong, got=got, why=why, do=do)
        super().__init__(f"[{code}] {said}")
        self.code = code
        parts = {"problem": wrong, "got": got, "why": why or None, "remedy": do or None}
        known = {name: part for name, part in parts.items() if part is not None} | dict(details or {})
        self.details = {name: _shown(part) for name, part in known.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies and other processes: `Exception` would call `__init__` with the message alone."""
        return _restored, (type(self), self.args, dict(self.__dict__))

    def prefixed(self, place: str) -> Self:
        """The same error with the place of the mistake in front: `[CODE] Aggregate 'top': …`."""
        more = {name: part for name, part in self.details.items() if name not in _PARTS}
        problem, got, why, do = (self.details.get(part) for part in _PARTS)
        return type(self)(
            f"{place}: {problem}", got=got, why=why or "", do=do or "", code=self.code, details=more
        )


def _shown(part: Any) -> Any:
    """A part as it is, or as text if that would show a secret."""
    text = str(part)
    shown = without_secrets(text)
    return part if shown == text else shown


def _restored(kind: type[TidegateError], args: tuple[str, ...], state: dict[str, Any]) -> TidegateError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class FlowError(TidegateError, ValueError):
    """The description of the query is wrong: found before anything starts.

    >>> import tidegate as tg
    >>> try:
    ...     tg.Goal(latency="0 seconds")
    ... except FlowError as error:
    ...     print(error.code)
    GOAL_LATENCY_ZERO
    """


class StateError(TidegateError):
    """What lies in the checkpoint cannot be trusted or does not fit this query.

    >>> issubclass(StateError, TidegateError)
    True
    """


class CheckpointInUse(StateError):
    """Another run holds this checkpoint.

    >>> issubclass(CheckpointInUse, StateError)
    True
    """


class BatchFailed(TidegateError):
    """A batch did not complete; nothing of it was committed, unless the message says so.

    >>> BatchFailed("Batch 7 failed", code="SINK_FAILED", details={"batch_id": 7}).details["batch_id"]
    7
    """


#: Characters of a message: six lines of a terminal, with room for the code.
MESSAGE_MAX = 600
#: What of a part is left at least when a message is too long: long lists of columns, SQL, whole arrays.
_PART_MIN = 120


def explain(wrong: str, *, got: object = None, why: str = "", do: str = "") -> str:
    """One message out of its four parts; parts that do not apply are left out.

    Secrets of URLs are hidden. If it is too long, first `got` and then `do` end in an ellipsis; `details` has
    them in full.
    """
    wrong, why, do = map(without_secrets, (wrong, why, do))
    seen = "" if got is None else f"Got: {' '.join(without_secrets(str(got)).split())}"
    length = sum(map(len, (wrong, seen, why, do)))
    seen = _cut(seen, length - MESSAGE_MAX)
    do = _cut(do, sum(map(len, (wrong, seen, why, do))) - MESSAGE_MAX)
    return " ".join(part.rstrip(".") + "." for part in (wrong, seen, why, do) if part)


def _cut(part: str, excess: int) -> str:
    kept = max(_PART_MIN, len(part) - excess - 2)
    return part if excess <= 0 or len(part) <= kept else f"{part[:kept]} …"


#: Where the code of Tidegate and of Python lies.
_LIBRARIES = (PurePath(__file__).parent, PurePath(sysconfig.get_paths()["stdlib"]))
#: An error's own text is cut to this length: it may contain whole arrays.
_TEXT_MAX = 300


def in_one_line(error: BaseException) -> str:
    """An error and its place in the user's code: `ValueError: no such table (jobs.py, line 12)`."""
    place = own_place(error)
    return f"{shortened(f'{type(error).__name__}: {error}')}{f' ({place})' if place else ''}"


def own_place(error: BaseException) -> str | None:
    """File and line in the user's code where an error arose; None if no code of the user ran."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_library(frame.filename)]
    return f"{PurePath(own[-1].filename).name}, line {own[-1].lineno}" if own else None


def shortened(text: str) -> str:
    """One line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]} …"


def _is_library(filename: str) -> bool:
    """Whether a file belongs to Tidegate, to another package or to Python itself."""
    if filename.startswith("<"):
        return True
    path = PurePath(filename)
    return "site-packages" in path.parts or any(path.is_relative_to(root) for root in _LIBRARIES)
