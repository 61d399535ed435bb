"""The run that holds a checkpoint, as written into its lock."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tidegate.errors import CheckpointInUse
from tidegate.model.codec import decode, encode

#: A later time, in the year 5138, is nonsense.
_SINCE_MAX = 1e11


@dataclass(frozen=True)
class Holder:
    """One run that holds, or held, a checkpoint. Times are wall clock seconds."""

    owner: str
    pid: int
    host: str
    since: float
    #: A fresh random word per run: tells a run from its successor even at the same pid.
    token: str
    #: When the run last said that it is alive; means nothing for a local lock, which the kernel keeps.
    renewed: float

    @property
    def run(self) -> int:
        """Larger than that of every earlier run of the checkpoint: when this one began, in microseconds."""
        return round(self.since * 1e6)

    def after(self, before: Holder | None) -> Holder:
        """This run, which takes over from that one; a clock that was set back does not count."""
        if before is None or not self.since <= before.since < _SINCE_MAX:
            return self
        return replace(self, since=before.since + 1e-6)

    def to_bytes(self) -> bytes:
        return encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Holder | None:
        """The holder that was written; None for bytes that are none, such as a half-written file."""
        try:
            return decode(cls, data)
        except (ValueError, RecursionError):
            return None


def this_process(owner: str, token: str, now: float) -> Holder:
    return Holder(owner, os.getpid(), socket.gethostname(), now, token, now)


def in_use(url: str, holder: Holder | None) -> CheckpointInUse:
    if holder is None:
        who = "a lock that is gone or cannot be read"
    else:
        who = f"held by {holder.owner}, pid {holder.pid} on {holder.host}"
        with suppress(ValueError, OverflowError, OSError):  # a damaged lock may say anything
            who += f", since {datetime.fromtimestamp(holder.since, UTC).isoformat(timespec='seconds')}"
    return CheckpointInUse(
        f"Another run uses this checkpoint: {url}",
        code="CHECKPOINT_IN_USE",
        got=who,
        why="Two runs would overwrite each other's state",
        do="Stop that run, or pass another checkpoint=…; delete the file `lock` only if that run has died",
    )
