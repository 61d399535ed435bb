"""Every error that Tidegate raises on purpose, under one base class.

A message has four parts, in this order: what is wrong; what we got; why it matters; what to do. Errors take
the parts themselves; `explain` makes the same sentence for warnings.
"""

from __future__ import annotations


class TidegateError(Exception):
    """Base of all errors that Tidegate raises on purpose: what is wrong, what was got, why, what to do."""

    def __init__(self, wrong: str, *, got: object = None, why: str = "", do: str = "") -> None:
        super().__init__(explain(wrong, got=got, why=why, do=do))


class FlowError(TidegateError):
    """The description of the query is wrong: found before anything starts."""


class StateError(TidegateError):
    """What lies in the checkpoint cannot be trusted or does not fit this query."""


class CheckpointInUse(StateError):
    """Another run holds this checkpoint."""


class BatchFailed(TidegateError):
    """A batch did not complete; nothing of it was committed."""


def explain(wrong: str, *, got: object = None, why: str = "", do: str = "") -> str:
    """One message out of its four parts; parts that do not apply are left out."""
    parts = [wrong.rstrip(".") + "."]
    if got is not None:
        parts.append(f"Got: {got}.")
    if why:
        parts.append(why.rstrip(".") + ".")
    if do:
        parts.append(do.rstrip(".") + ".")
    return " ".join(parts)
