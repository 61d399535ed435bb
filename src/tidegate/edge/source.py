"""Input that arrives when it likes: in large pieces while there is plenty, at once when there is little.

A piece is handed on when it is full or when nothing more is ready, so a slow sensor's row does not wait for
others. While nothing comes, `idle` is called now and then. A signal ends the input as its end would: what has
been read is still carried, then the counters are told. A second signal ends the process the usual way.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from tidegate.errors import FlowError

PIECE_BYTES = 1 << 20
#: How long nothing may come before `idle` is called.
IDLE_SECONDS = 0.25
#: A line that is longer is none, most likely; more memory than this is not given to it.
LINE_BYTES_MAX = 64 << 20


class Stopping:
    """From here on SIGINT and SIGTERM ask to stop; `asked` is the signal that did, or 0."""

    def __init__(self) -> None:
        self.asked = 0
        self.fd, self._bell = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        os.set_blocking(self._bell, False)
        self._wakeup = signal.set_wakeup_fd(self._bell)  # so that waiting for input ends
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        signal.set_wakeup_fd(self._wakeup)
        os.close(self.fd)
        os.close(self._bell)

    def _heard(self, number: int, _: FrameType | None) -> None:
        self.asked = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class EdgeSource:
    """The bytes behind a file descriptor, until they end or somebody asks to stop."""

    def __init__(self, fd: int, stopping: Stopping, idle: Callable[[], None] = lambda: None) -> None:
        self._fd, self._stopping, self._idle = fd, stopping, idle
        self._held = bytearray()
        #: For pyarrow, to which this is a file.
        self.closed = False

    @property
    def stopped(self) -> bool:
        return self._stopping.asked != 0

    def peek(self) -> bytes:
        """The first bytes, which stay; nothing at all if there are none."""
        if not self._held:
            self._held += self._some(PIECE_BYTES)
        return bytes(self._held)

    def read(self, size: int = PIECE_BYTES) -> bytes:
        """As of a file: `size` bytes, fewer only at the end."""
        while len(self._held) < size:
            got = self._some(size - len(self._held))
            if not got:
                break
            self._held += got
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def lines(self) -> Iterator[bytes]:
        """Pieces of whole lines; the very last may lack its newline. What a signal cut off is left out."""
        more = True
        while more:
            # What was peeked at, or came with the last piece, may be a whole line: it does not wait for more.
            more = b"\n" in self._held or self._fill()
            while more and len(self._held) < PIECE_BYTES and self._ready(0.0):
                more = self._fill()
            whole = self._held.rfind(b"\n") + 1 if more or self.stopped else len(self._held)
            if whole:
                yield bytes(self._held[:whole])
                del self._held[:whole]
            elif len(self._held) > LINE_BYTES_MAX:
                raise _endless(len(self._held))

    def _fill(self) -> bool:
        got = self._some(PIECE_BYTES)
        self._held += got
        return bool(got)

    def _some(self, size: int) -> bytes:
        """What is there, at least one byte; none at the end."""
        while not self._ready(IDLE_SECONDS):
            self._idle()
        return b"" if self.stopped else os.read(self._fd, size)

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._fd, self._stopping.fd], [], [], seconds)[0])


def _endless(held: int) -> FlowError:
    return FlowError(
        "A line does not end",
        got=f"{held >> 20} MB without a newline",
        why="Rows are told apart by newlines",
        do="Name the right --format, or put each row on a line of its own",
    )


class Sink:
    """A file descriptor that takes everything; BrokenPipeError when nobody reads it any more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        left = view
        while left:
            left = left[os.write(self._fd, left) :]
        return len(view)

    def flush(self) -> None:
        """Nothing is held back."""
