"""Whether a process still warms up: batches still become faster at equal work.

    seconds ▲ ▪
            │    ▪         A new process loads, compiles and starts workers. It is warm when the second
            │      ▪ ▪     half of its batches so far has none that is measurably shorter than all of
            │          ▪   the first half, unless only by having fewer rows. So noise does not end it,
            └─|─|───|──▶   and what still becomes faster has twice the time to show it.
              2 4   8      batches

Warm-up belongs to the process, so it is not in the manifest: a restart begins anew. It is recognised, not
counted in batches, because batches of an overloaded start may last minutes, and those of a quiet one ten
milliseconds.
"""

from __future__ import annotations

from math import inf

from tidegate.control.goal.control_tuning import TUNING, ControlTuning


class WarmUp:
    """Recognises the end of warm-up from rows and seconds of batches."""

    def __init__(self, tuning: ControlTuning = TUNING) -> None:
        self._tuning = tuning
        #: Rows and seconds of the shortest batch: of the first half, and since then.
        self._first, self._since = (0.0, inf), (0.0, inf)
        self._batches, self._half = 0, 1
        self.is_cold = True

    def observe(self, rows: float, seconds: float) -> None:
        """After a batch; one without rows says nothing."""
        if not rows or not self.is_cold:
            return
        self._batches += 1
        if seconds < self._since[1]:
            self._since = rows, seconds
        if self._batches < 2 * self._half:
            if self._batches == 1:
                self._first, self._since = self._since, (0.0, inf)
            return
        expected = self._first[1] * min(1.0, self._since[0] / self._first[0])
        self.is_cold = self._since[1] < (1 - self._tuning.level.measurable) * expected
        self._first = min(self._first, self._since, key=lambda one: one[1])
        self._since, self._half = (0.0, inf), self._batches
