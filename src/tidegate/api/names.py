"""Names and paths that users give: what they may be, and the errors for what they may not."""

from __future__ import annotations

import os

from tidegate.errors import FlowError

#: Longer names make unreadable tables, and paths that file systems refuse.
NAME_LENGTH_MAX = 200


def checked_name(given: object, kind: str) -> str:
    """A usable name of a stream, an operator or an output; `kind` says of which, in the error."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise FlowError(
            f"The name of {_article(kind)} is not usable",
            code="NAME_UNUSABLE",
            got=repr(given),
            why="Checkpoint, progress and receipts know it by its name",
            do=f'Give a printable text: name="{_EXAMPLES.get(kind, "near")}"',
        )
    if len(given) > NAME_LENGTH_MAX:
        raise FlowError(
            f"The name of {_article(kind)} is too long",
            code="NAME_TOO_LONG",
            got=f"{len(given)} characters: {given[:40]!r}…",
            do=f"Give a name of at most {NAME_LENGTH_MAX} characters",
        )
    return given


def operator_name(given: object, kind: str) -> str | None:
    """The user's name for an operator; None: it gets a default name."""
    return None if given is None else checked_name(given, kind)


def path_text(given: object, what: str) -> str:
    """The path as text; `what` names the setting in the error."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise FlowError(
            f"{what} is not a path",
            code="PATH_TYPE",
            got=repr(given),
            do='Write it as text or a pathlib.Path: "some/folder"',
        )
    return path


_EXAMPLES = {"stream": "orders", "query": "dispatch", "window": "busy"}


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
