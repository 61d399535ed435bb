"""Three edge nodes and a server that share a folder, without Spark: real files, made-up rows and clocks.

All from one seed: a failure is a number. In every publishing period each node sifts its rows, takes newer
sifters and writes its counts; then the server sees what passed, learns and publishes. Nodes are stopped,
killed or lose their counts; the server starts again, also with other queries, with a new checkpoint, behind a
plan that it never finished, or with a clock that was set back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.api.goal import Shed
from tidegate.api.range_queries import RangeQuery
from tidegate.control import planning
from tidegate.control.actuators import sifting
from tidegate.control.actuators.sifting import Offered, SiftSettings
from tidegate.driver.io import source_sifters
from tidegate.driver.io.source_sifters import SourceSifters
from tidegate.edge.node import TICK_SECONDS, Node
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.model.codec import decode, encode_exactly
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan, PlanDecisions, ShedPlan
from tidegate.model.reports import MatchReport
from tidegate.model.samples import Sampled
from tidegate.sift.filter.decision import DROP, SAMPLE
from tidegate.sift.index.query_index import QueryIndex
from tidegate.sift.queries.axes import places
from tidegate.sift.queries.query_set import QuerySet

MATCH = "pickups"
COLUMNS = ("x", "y", "s")
NODES = ("north", "south", "west")
#: Pieces of input in which a node gets the rows of a period.
PIECES = 5


def draw_queries(rng: np.random.Generator) -> QuerySet:
    """Squares of x and y, and a few on a column that most rows do not have."""
    count = int(rng.integers(3, 40))
    corners = rng.uniform(0, 0.9, (count, 2)).round(3)
    wheres = [f"x between {x} and {x + 0.1} and y between {y} and {y + 0.1}" for x, y in corners.tolist()]
    wheres += [f"s > {s}" for s in rng.uniform(0.5, 1, int(rng.integers(0, 3))).round(3).tolist()]
    queries = [RangeQuery(f"q{i}", where) for i, where in enumerate(wheres)]
    return QuerySet.of(queries, dict.fromkeys(COLUMNS, "number"))


@dataclass
class EdgeClock:
    seconds: float

    def __call__(self) -> float:
        return self.seconds


@dataclass
class EdgeServer:
    """One run of the query; what it knows of earlier runs is its manifest, as a file would give it."""

    url: str
    queries: QuerySet
    shed: Shed
    clock: EdgeClock
    said: list[str]
    manifest: Manifest
    z: float = 1.0
    plan: Plan | None = None

    def __post_init__(self) -> None:
        self.sources = SourceSifters({MATCH: (self.url, self.queries)}, self.said.append, self.clock)
        self.settings = SiftSettings(self.shed, {MATCH: self.queries}, 1.0, 1.0)
        self.index = QueryIndex.of(self.queries.boxes)

    def publish(self) -> None:
        """Decide the next plan, unless one was left unfinished, and publish its sifter."""
        if self.plan is None:
            shed = ShedPlan(sifters=sifting.decide(self.settings, self.manifest))
            now_us = int(self.clock() * 1e6)
            batch = self.manifest.batch + 1
            self.plan = planning.next_plan(batch, self.manifest, {}, now_us, PlanDecisions(shed=shed))
        self.sources.publish(self.plan)

    def learn(self, rows: NDArray[np.float64], sampled: NDArray[np.bool_]) -> int:
        """Learn from the rows that arrived; return how many the nodes say they were offered."""
        assert self.plan is not None
        counted = self.sources.counted(self.manifest)
        axes = [COLUMNS.index(axis.column) for axis in self.queries.boxes.axes]
        samples = rows[sampled][:, axes]
        report = MatchReport(
            operator=MATCH,
            received=len(rows),
            late=0,
            rejected=0,
            seen_us=None,
            matched=0,
            emitted=0,
            cpu_seconds=0.0,
            sampled=len(samples),
            sample=Sampled(samples, self._hits(samples)),
        )
        offered = Offered(counted.offered, 1.0, False, counted.regions)
        learnt = sifting.learn(self.settings, self.manifest, self.plan, [report], offered, {MATCH: self.z})
        control = {sifting.CONTROL: learnt, source_sifters.CONTROL: counted.remembered}
        after = replace(self.manifest, batch=self.plan.batch, control=control)
        self.manifest, self.plan = decode(Manifest, encode_exactly(after)), None
        return counted.offered[MATCH]

    def _hits(self, samples: NDArray[np.float64]) -> NDArray[np.int32]:
        hits = np.zeros(len(samples), np.int32)
        placed = np.ascontiguousarray(places(samples, np.isnan(samples)).T)
        for piece in self.index.pieces(placed) if len(samples) else ():
            hits[piece.first : piece.first + len(piece.hits)] = piece.hits
        return hits


@dataclass
class Period:
    """What became of the rows of one publishing period."""

    offered: int
    passed: int
    #: Rows that the server learnt of.
    counted: int
    #: Sifters of the nodes at its end, and the newest that was there at its beginning.
    orders: set[tuple[int, int]]
    published: tuple[int, int]


@dataclass
class EdgeStory:
    """See the module docstring."""

    seed: int
    path: Path
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([28, self.seed])
        #: What nodes measure time by, and the time of day at the server.
        self.clock, self.wall = EdgeClock(0.0), EdgeClock(1.79e9)
        self.rows = int(self.rng.choice([1_000, 4_000, 10_000, 30_000]))
        self.nulls = float(self.rng.choice([0.0, 0.5, 0.9]))
        self.centres = self.rng.uniform(0, 1, (len(NODES), 2))
        self.shed = Shed(regions=int(self.rng.choice([1, 4, 16, 32])))
        self.queries = draw_queries(self.rng)
        self.server = self._server(planning.first_manifest({}, [MATCH], {}, 0))
        self.server.z = self._z()
        self.server.publish()
        self.nodes = {name: self._node(name) for name in NODES}

    def _z(self) -> float:
        return float(self.rng.choice([0.02, 0.05, 0.2, 0.5, 0.9]))

    def _server(self, manifest: Manifest) -> EdgeServer:
        url = str(self.path)
        return EdgeServer(url, self.queries, self.shed, self.wall, self.said, manifest)

    def _node(self, name: str) -> Node:
        folder = SifterFolder(str(self.path), self.said.append)
        first = folder.newest()
        assert first is not None
        return Node(name, first, folder, clock=self.clock)

    def _draw(self, place: int) -> NDArray[np.float64]:
        centre = self.centres[place]
        near = self.rng.normal(centre, 0.1, (self.rows, 2))
        rows = np.where(self.rng.random((self.rows, 1)) < 0.7, near, self.rng.uniform(0, 1, (self.rows, 2)))
        sparse = np.where(self.rng.random(self.rows) < self.nulls, np.nan, self.rng.random(self.rows))
        return np.column_stack([rows, sparse])

    def period(self, trouble: float = 0.3) -> Period:
        """One publishing period; with this probability each node starts again within it."""
        newest = SifterFolder(str(self.path)).newest()
        assert newest is not None
        arrived, sampled = [np.empty((0, len(COLUMNS)))], [np.empty(0, np.bool_)]
        drawn = {name: np.array_split(self._draw(k), PIECES) for k, name in enumerate(NODES)}
        stops = {name: int(self.rng.integers(PIECES)) for name in NODES if self.rng.random() < trouble}
        for piece in range(PIECES):
            self._pass_time()
            for name in NODES:
                self.nodes[name].tick()
                rows = drawn[name][piece]
                verdicts = self.nodes[name].decide([rows[:, k] for k in self._axes(name)])
                arrived.append(rows[verdicts != DROP])
                sampled.append(verdicts[verdicts != DROP] == SAMPLE)
                if stops.get(name) == piece:
                    self._begin_anew(name)
        self._pass_time()
        for node in self.nodes.values():
            node.tick()
        passed = np.concatenate(arrived)
        counted = self.server.learn(passed, np.concatenate(sampled))
        orders = {node.sifter.order for node in self.nodes.values()}
        self.server.publish()
        return Period(len(NODES) * self.rows, len(passed), counted, orders, newest.order)

    def _pass_time(self) -> None:
        self.clock.seconds += TICK_SECONDS
        self.wall.seconds += TICK_SECONDS

    def _axes(self, name: str) -> list[int]:
        return [COLUMNS.index(axis.column) for axis in self.nodes[name].sifter.axes]

    def _begin_anew(self, name: str) -> None:
        how = self.rng.choice(["stopped", "killed", "forgot"])
        if how != "killed":
            self.nodes[name].close()
        if how == "forgot":
            (self.path / f"counts-{name}.json").unlink()
        self.nodes[name] = self._node(name)

    def restart(self, how: str) -> None:
        """The server starts again, and publishes."""
        if how == "other queries":
            self.queries = draw_queries(self.rng)
        if how == "clock":
            self.wall.seconds -= float(self.rng.choice([3600.0, 1e8]))
        manifest, plan = self.server.manifest, self.server.plan
        if how == "new checkpoint":
            manifest, plan = planning.first_manifest({}, [MATCH], {}, 0), None
        if how != "unfinished":
            plan = None
        z = self.server.z
        self.server = self._server(manifest)
        self.server.z, self.server.plan = z, plan
        self.server.publish()

    def ask(self, z: float | None = None) -> None:
        """Another admit ratio, from the next plan on."""
        self.server.z = self._z() if z is None else z

    @property
    def in_force(self) -> bool:
        """Whether the newest sifter is for the admit ratio that is asked for."""
        newest = SifterFolder(str(self.path)).newest()
        return newest is not None and newest.z == self.server.z
