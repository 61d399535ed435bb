from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.api.range_queries import RangeQuery
from tidegate.control import planning
from tidegate.control.actuators.sifting import passing
from tidegate.driver.io.source_sifters import CONTROL, SourceSifters
from tidegate.edge.node_counts import NodeCounts
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.errors import FlowError
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.query_set import QuerySet

QUERIES = QuerySet.of([RangeQuery("low", "x < 1")], {"x": "number"})
OTHERS = QuerySet.of([RangeQuery("low", "y < 1")], {"y": "number"})
FIRST = planning.first_manifest({}, ["s"], {}, 0)


def plan_of(sifter: Sifter | None) -> Plan:
    sifters = {} if sifter is None else {"m": sifter.to_json()}
    return planning.next_plan(0, FIRST, {}, 0, PlanDecisions(shed=ShedPlan(sifters=sifters)))


def dropping(version: int, share: float = 0.95, queries: QuerySet = QUERIES) -> Sifter:
    whole = passing(queries, "m")
    return replace(whole, thresholds=share * (1 + whole.thresholds), version=version, z=1 - share)


class Run:
    """A run of a query with one match."""

    def __init__(self, path: Path, queries: QuerySet = QUERIES, now: float = 1000.0) -> None:
        self.said: list[str] = []
        self.folder = SifterFolder(str(path))
        self.sources = SourceSifters({"m": (str(path), queries)}, self.said.append, lambda: now)

    def publish(self, sifter: Sifter | None) -> Sifter:
        self.sources.publish(plan_of(sifter))
        found = self.folder.newest()
        assert found is not None
        return found


def after(remembered: object) -> Manifest:
    return replace(FIRST, control={CONTROL: remembered})


@pytest.mark.parametrize("now", [1001.0, 1000.0, 1.0])
def test_a_newer_run_wins_whatever_its_versions_and_its_clock(tmp_path: Path, now: float) -> None:
    old = Run(tmp_path).publish(dropping(900))
    new = Run(tmp_path, now=now).publish(dropping(0, share=0.5))
    assert new.order > old.order
    assert (new.version, new.thresholds.tolist()) == (0, [0.5])


def test_without_a_planned_sifter_nodes_get_one_that_passes_everything(tmp_path: Path) -> None:
    Run(tmp_path).publish(dropping(7))
    found = Run(tmp_path).publish(None)
    assert (found.thresholds.tolist(), found.sample_share) == ([0], 0)


def test_a_planned_sifter_of_other_queries_is_not_published(tmp_path: Path) -> None:
    found = Run(tmp_path, OTHERS).publish(dropping(7))
    assert (found.columns, found.thresholds.tolist()) == (("y",), [0])


def test_a_sifter_is_written_once_and_versions_that_begin_anew_overrule_those_before(tmp_path: Path) -> None:
    run = Run(tmp_path)
    orders = [run.publish(dropping(version)).order for version in (5, 5, 6, 0, 1, 1)]
    assert orders == sorted(orders)
    assert len(set(orders)) == len(list(tmp_path.iterdir())) == 4
    assert run.publish(dropping(1, share=0.2)).thresholds.tolist() == [0.2]


def test_a_folder_that_cannot_be_used_costs_a_warning_and_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "filters"
    path.write_text("a file in place of the folder")
    run = Run(path)
    for _ in range(3):
        run.sources.publish(plan_of(dropping(1)))
        assert run.sources.counted(FIRST).offered == {"m": 0}
    assert len(run.said) == 1
    assert "folder of publish_to" in run.said[0]
    path.unlink()
    assert run.publish(dropping(1)).version == 1


def test_counts_are_differences_also_after_the_server_started_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.folder.write_counts(NodeCounts("east", "a", 0, 0, 10**9, 10**9 - 5, 5))
    first = run.sources.counted(FIRST)
    assert (first.offered, first.dropped) == ({"m": 0}, {"m": 0})
    run.folder.write_counts(NodeCounts("east", "a", 0, 0, 10**9 + 9, 10**9 + 2, 7))
    again = Run(tmp_path).sources.counted(after(first.remembered))
    assert (again.offered, again.dropped) == ({"m": 9}, {"m": 2})


def test_the_counts_of_another_folder_were_made_for_others(tmp_path: Path) -> None:
    remembered = Run(tmp_path / "a").sources.counted(FIRST).remembered
    other = Run(tmp_path / "b")
    other.folder.write_counts(NodeCounts("east", "a", 0, 0, 100, 100))
    assert other.sources.counted(after(remembered)).offered == {"m": 0}


def test_counts_by_region_are_those_of_the_sifter_that_this_run_published_last(tmp_path: Path) -> None:
    run = Run(tmp_path)
    counts = NodeCounts("east", "a", *run.publish(dropping(3)).order, 10, 6, 4, 1, 0, (10,), (4,), (1,))
    run.folder.write_counts(counts)
    assert run.sources.counted(FIRST).regions["m"].offered.tolist() == [10]
    run.publish(dropping(4))
    assert run.sources.counted(FIRST).regions["m"].offered.tolist() == [0]


def test_what_a_node_has_left_of_its_counts_is_weighted_as_it_was_before(tmp_path: Path) -> None:
    run = Run(tmp_path)
    first = run.publish(dropping(3))

    def count(node: str, incarnation: str, rows: int) -> None:
        regions = (rows,), (0,), (0,)
        run.folder.write_counts(NodeCounts(node, incarnation, *first.order, rows, rows, 0, 0, 0, *regions))

    count("east", "a", 0)
    count("west", "a", 0)
    remembered = run.sources.counted(FIRST).remembered
    count("east", "a", 20)
    count("west", "a", 40)
    remembered = run.sources.counted(after(remembered)).remembered
    count("east", "b", 5)
    count("west", "a", 80)
    counted = run.sources.counted(after(remembered))
    assert counted.offered == {"m": 45}
    # West has counted for two intervals, in which east usually gets twice 20 rows.
    assert counted.regions["m"].offered.tolist() == [80 + 40]
    assert run.publish(dropping(3)) == first, "nothing to publish"


def test_nodes_that_follow_a_later_run_are_named_once(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.publish(dropping(3))
    later = Run(tmp_path).publish(dropping(3))
    run.folder.write_counts(NodeCounts("east", "a", *later.order))
    run.sources.counted(FIRST)
    run.sources.counted(FIRST)
    assert run.said == ["Nodes follow another run that publishes to the folder of this query: east"]


def test_two_matches_cannot_share_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="MATCH_FOLDERS_EQUAL"):
        SourceSifters({"m": (str(tmp_path), QUERIES), "n": (str(tmp_path), OTHERS)})
