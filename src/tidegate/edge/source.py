"""Reads input with low latency: in large pieces under load, immediately when little arrives.

A piece is passed on when it is full or when nothing more is ready, so the row of a slow sensor does not
wait for others. While no input arrives, `idle` is called periodically. A signal ends the input like its
end: what has been read is still processed, then the counts are reported. A second signal ends the process
in the default way.
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
#: Time without input after which `idle` is called.
IDLE_SECONDS = 0.25
#: Longest accepted line: a longer one is most likely not a line, and would exhaust the memory.
LINE_BYTES_MAX = 64 << 20


class Stopping:
    """Turns SIGINT and SIGTERM into a request to stop; `asked` is the signal received, or 0."""

    def __init__(self) -> None:
        self.asked: int = 0
        self.fd, self._bell = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        os.set_blocking(self._bell, False)
        self._wakeup = signal.set_wakeup_fd(self._bell)  # wakes up a wait for input
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
    """The bytes of a file descriptor, until they end or a stop is requested."""

    def __init__(self, fd: int, stopping: Stopping, idle: Callable[[], None] = lambda: None) -> None:
        self._fd, self._stopping, self._idle = fd, stopping, idle
        self._held = bytearray()
        #: Required by pyarrow, which uses this as a file.
        self.closed = False

    @property
    def stopped(self) -> bool:
        return self._stopping.asked != 0

    def peek(self) -> bytes:
        """The first bytes without consuming them; empty at the end of the input."""
        if not self._held:
            self._held += self._some(PIECE_BYTES)
        return bytes(self._held)

    def read(self, size: int = PIECE_BYTES) -> bytes:
        """Read like a file: `size` bytes, fewer only at the end."""
        while len(self._held) < size:
            got = self._some(size - len(self._held))
            if not got:
                break
            self._held += got
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def lines(self) -> Iterator[bytes]:
        """Pieces of whole lines; the last may lack its newline. A line cut off by a signal is discarded."""
        more = True
        while more:
            # Buffered bytes may already contain a whole line, which must not wait for more input.
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
        """The available bytes, at least one; empty at the end."""
        while not self._ready(IDLE_SECONDS):
            self._idle()
        return b"" if self.stopped else os.read(self._fd, size)

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._fd, self._stopping.fd], [], [], seconds)[0])


def _endless(held: int) -> FlowError:
    return FlowError(
        "A line of the input does not end",
        code="SIFT_LINE_TOO_LONG",
        got=f"{held >> 20} MB without a newline",
        do="Pass the right --format, or write each row on its own line",
    )


class Sink:
    """A file descriptor to write to; BrokenPipeError when the reader has gone."""

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
        """Does nothing: writes are not buffered."""
