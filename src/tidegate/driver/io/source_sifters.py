"""Sifters that run at the sources, not here: published for nodes, whose counts are the offered volume.

A match with `sources=` gets rows that nodes have let through (`tidegate sift --follow`), samples marked. Its
sifter of every plan goes into that folder, and z refers to what the nodes were offered in the meantime.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.driver.operators.match import MatchOperator
from tidegate.edge.sifter_folder import offered, publish
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.sift.filter.sifter import Sifter

#: Where the manifest keeps what the nodes had been offered, and had dropped, when its batch was over.
CONTROL, DROPPED = "sources", "sources_dropped"


class SourceSifters:
    """The folders of all matches of a query that have one."""

    def __init__(self, matches: list[MatchOperator]):
        self._folders = {m.layout.operator: m.node.sources for m in matches if m.node.sources is not None}
        self._published: dict[str, int] = {}

    def publish(self, plan: Plan) -> None:
        """Leave the sifters of a plan for the nodes, where they have not got them yet."""
        for name, folder in self._folders.items():
            if name not in plan.shed.sifters:
                continue
            sifter = Sifter.from_json(plan.shed.sifters[name])
            if self._published.get(name) != sifter.version:
                publish(folder, sifter)
                self._published[name] = sifter.version

    def counted(self) -> tuple[dict[str, int], dict[str, int]]:
        """By match: rows that its nodes have been offered since they began, and have dropped."""
        counts = {name: offered(folder) for name, folder in self._folders.items()}
        return {name: c.offered for name, c in counts.items()}, {
            name: c.dropped for name, c in counts.items()
        }


def since(before: Manifest, what: str, now: Mapping[str, int]) -> dict[str, int]:
    """By match: rows that nodes counted after the last batch; fewer than then: they began anew."""
    last = before.control.get(what, {})
    return {
        name: rows - last.get(name, 0) if rows >= last.get(name, 0) else rows for name, rows in now.items()
    }
