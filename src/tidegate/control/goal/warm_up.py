"""Whether a process still warms up: batches still become faster at equal work.

    seconds ▲ ▪
            │    ▪
            │       ▪   ▪  ▪      A new process loads, compiles and starts workers. As long as a batch is
            │          ▪   ▪      measurably shorter than all before it, and not only because it has fewer
            └──────────────▶      rows, that goes on. Two batches that are not: the process is warm.

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
        #: Rows and seconds of the shortest batch so far, and consecutive batches that were no improvement.
        self._rows, self._seconds, self._same = 0.0, inf, 0

    @property
    def is_cold(self) -> bool:
        return self._same < 2

    def observe(self, rows: float, seconds: float) -> None:
        """After a batch; one without rows says nothing."""
        if not rows or not self.is_cold:
            return
        expected = self._seconds * min(1.0, rows / self._rows) if self._rows else inf
        falls = seconds < (1 - self._tuning.level.measurable) * expected
        self._same = 0 if falls else self._same + 1
        if seconds < self._seconds:
            self._rows, self._seconds = rows, seconds
