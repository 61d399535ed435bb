"""Live progress of a running query: redrawn in place on a terminal, occasional plain lines elsewhere.

    streaming ━━━━━━━━━━━━━━━━━━━━━━━━━━━━╺━━━━━━━━━━━━━━━━━━━━━ 34/60 s
    rows in 212,340 (6,120/s)   rows out 1,203,111   batch 41 took 0.62 s
    state 181,000 rows, 7.2 MB   watermark 17:00:31   late 0   rejected 0
    near probes 43 % of candidate pairs, 12,030,000 skipped pairs wait for repair

Changes are printed as lines that stay. A file or a pipe never gets control codes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidegate.observe import units
from tidegate.observe.tally import Tally

#: The span of rows per second: a shorter one jumps with every batch, a longer one hides a burst.
RATE_SECONDS = 10.0
#: Outside of a terminal, a line is printed this often.
LINE_EVERY_SECONDS = 5.0


class LivePage:
    """Shows a tally as it grows; as a context manager it always restores the terminal."""

    def __init__(self, console: Console, *, total: int, clock: Callable[[], float]) -> None:
        self._console = console
        self._total = total
        self._clock = clock
        self._line_due = clock()
        self._rate = Rate(clock)
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> LivePage:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print a line that stays, above the redrawn part."""
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def show(self, phase: str, done: int, tally: Tally, doing: str = "", *, last: bool = False) -> None:
        """Show `done` of the total steps in this phase; the last call always prints."""
        rate = self._rate.of(tally.rows_in)
        facts = [*_facts(tally, rate), [doing] if doing else []]
        if self._live:
            self._live.update(self._picture(phase, done, facts), refresh=True)
        elif last or self._clock() >= self._line_due:
            self._line_due = self._clock() + LINE_EVERY_SECONDS
            parts = [part for line in facts for part in line]
            self.say("  ".join([f"{phase} {done}/{self._total} s", *parts]))

    def _picture(self, phase: str, done: int, facts: list[list[str]]) -> RenderableType:
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(no_wrap=True)
        head.add_column(ratio=1)
        head.add_column(no_wrap=True)
        bar = ProgressBar(total=self._total, completed=done)
        head.add_row(Text(phase), bar, Text(f"{done}/{self._total} s"))
        return Group(head, *(Text("   ".join(line)) for line in facts))


class Rate:
    """Growth per second of a count over the last seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque([(clock(), 0)])

    def of(self, count: int) -> float:
        now = self._clock()
        self._seen.append((now, count))
        # Keep one point from before the span, as the start of the measurement.
        while len(self._seen) > 2 and self._seen[1][0] <= now - RATE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        return (count - before) / (now - since) if now > since else 0.0


def _facts(tally: Tally, rate: float) -> tuple[list[str], list[str]]:
    last = tally.batch_seconds[-1] if tally.batch_seconds else None
    batch = "no batch yet" if last is None else f"batch {tally.batch} took {units.seconds(last)}"
    flow = [
        f"rows in {units.count(tally.rows_in)} ({units.count(rate)}/s)",
        f"rows out {units.count(tally.rows_out)}",
        batch,
    ]
    held = [
        f"state {units.count(tally.state.rows)} rows, {units.size(tally.state.bytes)}",
        f"watermark {units.moment(tally.watermark)}",
        f"late {units.count(tally.late)}",
        f"rejected {units.count(tally.rejected)}",
    ]
    return flow, held
