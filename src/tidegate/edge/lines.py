"""The lines in a piece of bytes: their bounds, and the lines that pass, gathered unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.kernels import compiled
from tidegate.sift.filter.decision import DROP, SAMPLE

NEWLINE, RETURN = 10, 13
#: In addition to DROP, KEEP and SAMPLE: a line that is not a row, passed on without a mark.
PASS_UNREAD = 3


@dataclass(frozen=True, eq=False)
class Lines:
    """Line i is data[starts[i]:ends[i]]; its newline, if it has one, ends at stops[i]."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, piece: bytes) -> Lines:
        data = np.frombuffer(piece, np.uint8)
        stops = np.flatnonzero(data == NEWLINE) + 1
        ends = stops - 1
        if len(data) and data[-1] != NEWLINE:
            stops, ends = np.append(stops, len(data)), np.append(ends, len(data))
        starts = np.concatenate([np.zeros(min(len(stops), 1), np.int64), stops[:-1]])
        returned = (ends > starts) & (data[np.maximum(ends, 1) - 1] == RETURN) if len(ends) else ends > starts
        return cls(data, starts, ends - returned, stops)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice | NDArray[np.bool_]) -> Lines:
        return Lines(self.data, self.starts[part], self.ends[part], self.stops[part])

    def line(self, i: int) -> bytes:
        return self.data[self.starts[i] : self.ends[i]].tobytes()

    def texts(self) -> list[bytes]:
        """All lines as a list; they must be adjacent, as for `bytes`."""
        # One split is several times as fast as cutting each line out of an array.
        found = self.bytes().tobytes().split(b"\n")[: len(self)]
        return [line.removesuffix(b"\r") for line in found]

    def bytes(self) -> memoryview:
        """All lines from the first to the last, which must be adjacent."""
        if not len(self):
            return memoryview(b"")
        return self.data[self.starts[0] : self.stops[-1]].data


def gathered(
    lines: Lines, verdicts: NDArray[np.uint8], marks: tuple[bytes, bytes], before_brace: bool
) -> memoryview:
    """The lines that pass; `marks` are the marks of kept lines and of samples.

    Before the last brace, a mark loses its comma if it is the first member.
    """
    passing = verdicts != DROP
    plain, sampled = (np.frombuffer(mark, np.uint8) for mark in marks)
    length = int((lines.stops - lines.starts)[passing].sum()) + int(passing.sum()) * max(map(len, marks))
    out = np.empty(length, np.uint8)
    used = _gather(
        lines.data, lines.starts, lines.ends, lines.stops, verdicts, plain, sampled, before_brace, out
    )
    return out[:used].data


@compiled
def _gather(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    stops: NDArray[np.int64],
    verdicts: NDArray[np.uint8],
    plain: NDArray[np.uint8],
    sampled: NDArray[np.uint8],
    before_brace: bool,
    out: NDArray[np.uint8],
) -> int:
    used = 0
    for i in range(len(starts)):
        if verdicts[i] == DROP:
            continue
        start, place, stop = starts[i], ends[i], stops[i]
        mark = sampled if verdicts[i] == SAMPLE else plain
        skipped = 0
        if verdicts[i] == PASS_UNREAD or len(mark) == 0:
            place, mark = stop, mark[:0]
        elif before_brace:
            while data[place - 1] != 125:  # "}"; only blanks follow it
                place -= 1
            place -= 1
            before = place
            while data[before - 1] <= 32:
                before -= 1
            skipped = 1 if data[before - 1] == 123 else 0  # "{"
        used = _copied(data, start, place, out, used)
        used = _copied(mark, skipped, len(mark), out, used)
        used = _copied(data, place, stop, out, used)
    return used


@compiled
def _copied(data: NDArray[np.uint8], start: int, stop: int, out: NDArray[np.uint8], used: int) -> int:
    for i in range(stop - start):
        out[used + i] = data[start + i]
    return used + stop - start
