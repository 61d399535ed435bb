"""The matches of a running query: rows that entered them, counts of their streams, and their sifters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.control.actuators import sifting
from tidegate.control.actuators.sifting import SiftSettings
from tidegate.control.receipts.ledger import Counted
from tidegate.driver.compile.compiled import (
    Compiled,
)
from tidegate.driver.frames import observed
from tidegate.driver.frames.stream_rows import StreamRows
from tidegate.driver.io.source_sifters import CONTROL, SourceCounts, SourceSifters
from tidegate.model.graph import Reader
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport, Observed


@dataclass(frozen=True)
class Entered:
    """Rows that entered the flow, its matches and its unions in one batch."""

    #: By stream that Spark counts: what it observed in front of the steps.
    arrived: Mapping[str, Observed]
    #: By match of a source: rows in front of its sifter, here or at the source.
    rows: Mapping[str, int]
    #: By match whose sifter runs at the sources: rows that arrived here.
    here: Mapping[str, int]
    #: What sources counted that run sifters.
    sources: SourceCounts
    #: By input of a union: its rows, and the late ones among them.
    united: Mapping[Reader, tuple[int, int]] = field(default_factory=dict)


class Matching:
    """What the engine does for matches, batch by batch."""

    def __init__(self, compiled: Compiled):
        self._compiled = compiled
        #: Which matches may drop rows; None: none.
        self.settings: SiftSettings | None = None
        self._streams = {match.name: match.layout.stream for match in compiled.matches}
        self._sources = SourceSifters(
            {
                match.name: (match.node.publish_to, match.queries)
                for match in compiled.matches
                if match.node.publish_to is not None
            }
        )

    def sifters(self, manifest: Manifest) -> dict[str, Any]:
        """The sifters for the plan after this manifest."""
        return {} if self.settings is None else sifting.decide(self.settings, manifest)

    def publish(self, plan: Plan) -> None:
        """Publish the sifters of a plan to the sources that run them."""
        self._sources.publish(plan)

    def entered(self, seen: Mapping[str, Observed], batch: StreamRows, before: Manifest) -> Entered:
        """The rows that entered, from the observations of Spark and the counts of the sources."""
        taps = {one.name: one.tap for one in self._compiled.matches if one.tap is not None}
        counted = [name for name, tap in taps.items() if tap.entry.counted_as is not None]
        counts = observed.read_counts(counted, batch)
        rows = {
            name: counts[name] if name in counts else seen[stream].offered - seen[stream].rejected
            for name, stream in self._streams.items()
            if stream is not None and (name in counts or stream in seen)
        }
        sources = self._sources.counted(before)
        return Entered(seen, {**rows, **sources.offered}, rows, sources)

    def nothing_entered(self, seen: Mapping[str, Observed], before: Manifest) -> Entered:
        """The same for a commit without rows: what sources count meanwhile belongs to the next batch."""
        sources = SourceCounts({}, {}, {}, before.control.get(CONTROL, {}))
        nothing = {name: 0 for name, stream in self._streams.items() if stream is not None}
        return Entered(seen, nothing, nothing, sources)

    def counts_more(self, before: Manifest) -> bool:
        """Whether sources that run sifters have counted rows since this manifest."""
        return any(self._sources.counted(before).offered.values())

    def judged(
        self, seen: Mapping[str, Observed], plan: Plan, reports: Sequence[MatchReport]
    ) -> dict[str, Observed]:
        """The observations of streams, corrected by the matches, whose tasks find times too far ahead.

        Streams that only one match reads, and reads in full, are counted by its tasks, not by Spark.
        """
        found = dict(seen)
        elsewhere = self._seen_elsewhere()
        for name, stream in reversed(self._streams.items()):
            mine = [report for report in reports if report.operator == name]
            if stream is None:
                continue
            if stream in seen:
                newest_us = self._compiled.newest_us(stream, plan)
                found[stream] = observed.judged(seen[stream], mine, newest_us)
            elif stream not in elsewhere:
                found[stream] = observed.counted_by(mine)
        return found

    def _seen_elsewhere(self) -> set[str | None]:
        """Streams whose rows the tasks of joins or windows count."""
        operators = self._compiled.operators
        return {stream for one in operators if one.stateful for stream in one.streams}

    def late(self, reports: Sequence[MatchReport]) -> dict[str, int]:
        """Late rows of streams that only matches count; one match counts each stream."""
        elsewhere = self._seen_elsewhere()
        first = {stream: name for name, stream in reversed(self._streams.items()) if stream not in elsewhere}
        return {
            stream: sum(report.late for report in reports if report.operator == name)
            for stream, name in first.items()
            if stream is not None
        }

    def remembered(self, entered: Entered) -> dict[str, Any]:
        """The counts of the sources so far, for the manifest."""
        return {CONTROL: entered.sources.remembered} if entered.sources.remembered else {}


def counted(entered: Entered, late: Mapping[str, int]) -> Counted:
    """The counts of Spark, sifters and sources in a batch."""
    return Counted(
        arrived={name: one.offered for name, one in entered.arrived.items()},
        rejected={name: one.rejected for name, one in entered.arrived.items()},
        entered=entered.here,
        at_sources=entered.sources.dropped,
        late=late,
        united={reader.name: rows for reader, rows in entered.united.items()},
    )
