from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tidegate.edge import source as module
from tidegate.edge.source import EdgeSource, Sink, Stopping
from tidegate.errors import FlowError


class Pipe:
    """A source that reads what a test writes."""

    def __init__(self, stopping: Stopping, idle: Callable[[], None] = lambda: None) -> None:
        reader, writer = os.pipe()
        self.reader = os.fdopen(reader, "rb", buffering=0)
        self.writer = os.fdopen(writer, "wb", buffering=0)
        self.source = EdgeSource(reader, stopping, idle)

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()
        self.writer.close()


def test_a_line_does_not_wait_for_the_next_one() -> None:
    with Stopping() as stopping, Pipe(stopping) as pipe:
        pipe.writer.write(b"one\ntw")
        lines = pipe.source.lines()
        assert next(lines) == b"one\n"
        pipe.writer.write(b"o\nthree")
        assert next(lines) == b"two\n"
        pipe.writer.close()
        assert list(lines) == [b"three"]


def test_what_was_peeked_at_does_not_wait_either() -> None:
    with Stopping() as stopping, Pipe(stopping) as pipe:
        pipe.writer.write(b"one\n")
        assert pipe.source.peek() == pipe.source.peek() == b"one\n"
        assert next(pipe.source.lines()) == b"one\n"


def test_read_is_that_of_a_file() -> None:
    with Stopping() as stopping, Pipe(stopping) as pipe:
        pipe.writer.write(b"abcdef")
        pipe.writer.close()
        read = pipe.source.read
        assert (pipe.source.peek(), read(2), read(9), read(1)) == (b"abcdef", b"ab", b"cdef", b"")


def test_while_nothing_comes_there_is_time_for_other_things(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    called = []

    def idle() -> None:
        called.append(1)
        if len(called) == 3:
            pipe.writer.write(b"one\n")

    with Stopping() as stopping, Pipe(stopping, idle) as pipe:
        assert next(pipe.source.lines()) == b"one\n"
    assert len(called) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_input_and_what_was_read_is_carried(number: int) -> None:
    before = signal.getsignal(number)
    with Stopping() as stopping, Pipe(stopping, idle=lambda: os.kill(os.getpid(), number)) as pipe:
        pipe.writer.write(b"one\ntwo\nthr")
        assert list(pipe.source.lines()) == [b"one\ntwo\n"]
        assert stopping.asked == number
        # From now on the same signal means what it always did.
        assert signal.getsignal(number) == before


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 10)
    with Stopping() as stopping, Pipe(stopping) as pipe:
        pipe.writer.write(b"x" * 11)
        with pytest.raises(FlowError, match="SIFT_LINE_TOO_LONG"):
            next(pipe.source.lines())


def test_nobody_reading_is_noticed() -> None:
    with Stopping() as stopping, Pipe(stopping) as pipe:
        pipe.reader.close()
        with pytest.raises(BrokenPipeError):
            Sink(pipe.writer.fileno()).write(b"x")
