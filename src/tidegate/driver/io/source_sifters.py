"""Publishes sifters to nodes at the sources, and reads the nodes' counts.

A match with `publish_to=` gets rows that passed nodes (`tidegate sift --follow`), with samples marked. The
sifter of every plan is written to that folder, one that passes everything where the plan has none, and the
admit ratio refers to the rows that the nodes were offered. A folder that cannot be used for a while costs no
batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from tidegate.control.actuators.sifting import passing
from tidegate.edge.node_counts import NodeCounts, by_region, since
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.errors import FlowError, TidegateError
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.sift.filter.decision import Counters
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.query_set import QuerySet

#: Key of the manifest: by match, what its nodes had counted up to its batch.
CONTROL = "sources"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SourceCounts:
    """What the nodes of all matches counted, by match."""

    #: Rows since the last batch.
    offered: Mapping[str, int]
    dropped: Mapping[str, int]
    #: Rows by region, since the sifter that was published last.
    regions: Mapping[str, Counters]
    #: For the manifest.
    remembered: Snapshot


class SourceSifters:
    """The folders of all matches with `publish_to=`: by match, its folder and its queries."""

    def __init__(
        self,
        matches: Mapping[str, tuple[str, QuerySet]],
        report: Callable[[str], None] = _log.warning,
        clock: Callable[[], float] = time.time,
    ):
        urls = [url for url, _ in matches.values()]
        shared = sorted({url for url in urls if urls.count(url) > 1})
        if shared:
            raise FlowError(
                "Two matches publish to the same folder",
                code="MATCH_FOLDERS_EQUAL",
                got=", ".join(shared),
                why="Nodes follow one sifter in a folder, and each match has its own",
                do="Give each match its own publish_to",
            )
        self._sources = {
            name: _Source(name, url, queries, report, clock) for name, (url, queries) in matches.items()
        }

    def publish(self, plan: Plan) -> None:
        """Publish the sifters of a plan to the nodes, if they are new."""
        for name, source in self._sources.items():
            planned = plan.shed.sifters.get(name)
            source.publish(None if planned is None else Sifter.from_json(planned))

    def counted(self, before: Manifest) -> SourceCounts:
        """What was counted since this manifest."""
        known = before.control.get(CONTROL, {})
        offered: dict[str, int] = {}
        dropped: dict[str, int] = {}
        regions: dict[str, Counters] = {}
        remembered: Snapshot = {}
        for name, source in self._sources.items():
            nodes = source.nodes()
            last = known.get(name)
            same = last is not None and last["folder"] == source.fingerprint
            more, found = since(last["nodes"] if same else None, nodes)
            offered[name], dropped[name] = more.total, more.dropped
            usual = last["usual"] if same else {}
            if more.total and not more.lacking:
                usual = dict(more.offered)
            regions[name] = source.by_region(nodes, more.lacking, usual)
            remembered[name] = {"folder": source.fingerprint, "nodes": found, "usual": usual}
        return SourceCounts(offered, dropped, regions, remembered)


class _Source:
    """The folder of one match."""

    def __init__(
        self,
        name: str,
        url: str,
        queries: QuerySet,
        report: Callable[[str], None],
        clock: Callable[[], float],
    ):
        self._folder, self._report, self._clock = SifterFolder(url, report), report, clock
        #: Other folders hold counts of other nodes.
        self.fingerprint: str = blake2b(url.encode(), digest_size=8).hexdigest()
        self._passing = passing(queries, name)
        self._published: Sifter | None = None
        #: Nodes that lost counts since the sifter was published.
        self._lacking: frozenset[str] = frozenset()
        #: Whether the folder could not be used the last time.
        self._in_trouble = False
        self._overruled = False

    def publish(self, planned: Sifter | None) -> None:
        """Publish a sifter, unless the nodes have it; with other axes than the queries it is not valid."""
        valid = planned is not None and planned.axes == self._passing.axes
        sifter = planned if planned is not None and valid else replace(self._passing, sample_share=0.0)
        last = self._published
        if last is not None and replace(sifter, epoch=last.epoch) == last:
            return

        def write() -> None:
            if last is None:
                epoch = self._folder.next_epoch(int(self._clock() * 1e6))
            else:
                # After a plan of an earlier run, versions may begin anew.
                epoch = last.epoch + (sifter.version <= last.version)
            published = replace(sifter, epoch=epoch)
            self._folder.publish(published)
            self._published, self._lacking = published, frozenset()

        self._tried(write)

    def nodes(self) -> list[NodeCounts]:
        found: list[NodeCounts] = []
        self._tried(lambda: found.extend(self._folder.counts()))
        own = self._published
        later = [one.node for one in found if own is not None and one.epoch > own.epoch]
        if later and not self._overruled:
            self._overruled = True
            self._report(
                f"Nodes follow another run that publishes to the folder of this query: {', '.join(later)}"
            )
        return found

    def by_region(
        self, nodes: list[NodeCounts], lacking: frozenset[str], usual: Mapping[str, int]
    ) -> Counters:
        """The rows by region of the nodes that run the sifter that was published last; `lacking`, `usual`: of
        the newest rows, as in `since` and `node_counts.by_region`."""
        self._lacking |= lacking
        sifter = self._published
        if sifter is None:
            return Counters.zero(0)
        return by_region(nodes, sifter.order, sifter.regions.count, self._lacking, usual)

    def _tried(self, action: Callable[[], None]) -> None:
        try:
            action()
            self._in_trouble = False
        except (OSError, TidegateError) as error:
            if not self._in_trouble:
                self._report(f"The folder of publish_to cannot be used, so nodes keep their sifters: {error}")
            self._in_trouble = True
