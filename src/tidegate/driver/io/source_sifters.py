"""Publishes sifters to nodes at the sources, and reads the nodes' counts.

A match with `sources=` gets rows that passed nodes (`tidegate sift --follow`), with samples marked. The
sifter of every plan is written to that folder, and the admit ratio refers to the rows that the nodes were
offered.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.driver.operators.match import MatchOperator
from tidegate.edge.sifter_folder import offered, publish
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.sift.filter.sifter import Sifter

#: Key of the manifest for the rows that nodes were offered and dropped up to its batch.
CONTROL, DROPPED = "sources", "sources_dropped"


class SourceSifters:
    """The folders of all matches with `sources=`."""

    def __init__(self, matches: list[MatchOperator]):
        self._folders = {
            m.layout.operator: m.node.publish_to for m in matches if m.node.publish_to is not None
        }
        self._published: dict[str, int] = {}

    def publish(self, plan: Plan) -> None:
        """Publish the sifters of a plan to the nodes, if they are new."""
        for name, folder in self._folders.items():
            if name not in plan.shed.sifters:
                continue
            sifter = Sifter.from_json(plan.shed.sifters[name])
            if self._published.get(name) != sifter.version:
                publish(folder, sifter)
                self._published[name] = sifter.version

    def counted(self) -> tuple[dict[str, int], dict[str, int]]:
        """By match: all rows that its nodes were offered, and dropped."""
        counts = {name: offered(folder) for name, folder in self._folders.items()}
        return {name: c.offered for name, c in counts.items()}, {
            name: c.dropped for name, c in counts.items()
        }


def since(before: Manifest, what: str, now: Mapping[str, int]) -> dict[str, int]:
    """By match: rows that nodes counted since the last batch; a smaller count means that they restarted."""
    last = before.control.get(what, {})
    return {
        name: rows - last.get(name, 0) if rows >= last.get(name, 0) else rows for name, rows in now.items()
    }
