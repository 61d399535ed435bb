"""A flow in which everything may be pending at once, runs of it under other settings, and a judge.

    left  ─┬─▶ join near ◀─ right    near     pairs are skipped, and owed
           └─▶ match hits            hits     a sifter stands in front
    right ─┬─▶ window busy           busy     of 20 seconds, most are dropped
           └─▶ window about          about    estimated from a part of the rows

What is left out is drawn from a seed, not learnt from a clock. A run ends within a window of `busy`,
sometimes with a batch that was planned and not finished. Rows are a little out of order, never late.

The judge knows the answers by definition. Every row that comes must be right and come once; an output whose
receipt says EXACT must be complete; windows that do not come must be listed as missing.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.flows import EPOCH_US, PATIENCE_SECONDS, Sink, add_files, read_files, start_bounded
from tests.spark.shedding_flow import random_sifter

import tidegate as tg
from tidegate.control import planning
from tidegate.driver.engine.engine import Engine
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.state.checkpoint import Checkpoint
from tidegate.window.estimate.strata import STRATA

#: Nothing reads the last column, which files lack.
SCHEMA = "ts timestamp, k int, n int, v double, tag string"
FILES, FIRST_FILES, ROWS, FILE_SECONDS = 9, 5, 60, 7
WITHIN_US, BUSY_US, ABOUT_US = 3_000_000, 20_000_000, 8_000_000
#: Never missed: what is left out is what plans say.
GOAL = tg.Goal(latency="1 hour")
SHED = tg.Shed(window=0.7, repair="on_stop")
QUERIES = tuple((f"q{i}", i / 10, i / 10 + 0.3) for i in range(8))
NAMES = ("near", "hits", "busy", "about")
SIDES = ("left", "right")

Row = tuple[int, int, int, float]


@cache
def rows_of(side: int) -> tuple[Row, ...]:
    """The rows of a stream in order of arrival: time, k, n, v."""
    chance = np.random.default_rng([28, side])
    found: list[Row] = []
    for number in range(FILES):
        at = FILE_SECONDS * 1e6 * number + np.sort(chance.integers(0, FILE_SECONDS * 10**6, ROWS))
        at = np.maximum(at - chance.integers(0, 300_000, ROWS), 0)
        keys, values = chance.integers(0, 4, ROWS), chance.random(ROWS)
        first = len(found)
        found += [(EPOCH_US + int(at[i]), int(keys[i]), first + i, float(values[i])) for i in range(ROWS)]
    return tuple(found)


def tables(side: int, files: range) -> list[pa.Table]:
    kinds = [pa.timestamp("us", "UTC"), pa.int32(), pa.int32(), pa.float64()]
    names = [column.split()[0] for column in SCHEMA.split(", ")[: len(kinds)]]
    return [
        pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names)
        for number in files
        for columns in [zip(*rows_of(side)[ROWS * number : ROWS * (number + 1)], strict=True)]
    ]


@dataclass(frozen=True)
class Flow:
    """What one run computes; everything may be other in the next one."""

    names: Mapping[str, str] = field(default_factory=dict)
    streams: tuple[str, str] = ("left", "right")
    schema: str = SCHEMA
    how: Any = "inner"
    on: Any = "k"
    where: Any = None
    within_us: int = WITHIN_US
    size_us: int = BUSY_US
    approximate: bool = True
    lateness: str = "1 second"
    idle_timeout: str | None = None
    max_gap: Any = 30
    drop: Any = "windows"
    max_loss: float | None = None
    queries: Sequence[tuple[str, float, float]] = QUERIES
    #: Queries that all runs had.
    lasting: tuple[str, ...] = tuple(name for name, _, _ in QUERIES[2:])
    priority: float = 1.0
    left_out: tuple[str, ...] = ()
    reordered: bool = False
    #: A step in front of the join, on the right.
    step: Callable[[tg.Stream], tg.Stream] = lambda rows: rows
    #: A step behind the join.
    behind: Callable[[tg.Stream], tg.Stream] = lambda rows: rows
    #: Further outputs.
    more: Callable[[Mapping[str, tg.Stream]], list[tg.Output]] = lambda streams: []
    #: Rows of both streams that a trigger takes.
    files_per_batch: int = 1

    def name(self, old: str) -> str:
        return self.names.get(old, old)


class FailingSink(Sink):
    """Fails in a batch, whose plan is there then."""

    def __init__(self, name: str, fails_at: int | None):
        super().__init__(name)
        self.fails_at = fails_at

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if batch == self.fails_at:
            raise OSError("no room")
        super().__call__(frame, batch)


def some_left_out(seed: int) -> Callable[[Plan], Plan]:
    """A plan with what it skips, sifts and samples drawn from a seed and its batch."""

    def replan(plan: Plan) -> Plan:
        chance = random.Random(f"{seed} {plan.batch}")

        def shares(count: int) -> tuple[float, ...]:
            return tuple(chance.choice((0.0, 1.0, chance.random())) for _ in range(count))

        skipping = {
            name: replace(
                one,
                fraction=0.5,
                shares=(shares(len(one.shares[0])), shares(len(one.shares[1]))),
                explore_share=0.1,
                explore_depth=0.5,
            )
            for name, one in plan.shed.skipping.items()
        }
        sampled = {"shares": [chance.choice((1.0, 0.5)) for _ in range(STRATA)]}
        shed = replace(
            plan.shed,
            skipping=skipping,
            sifters={name: random_sifter(chance, raw, plan.batch) for name, raw in plan.shed.sifters.items()},
            estimating={name: {**raw, **sampled} for name, raw in plan.shed.estimating.items()},
        )
        return replace(plan, shed=shed)

    return replan


class World:
    """Input, a checkpoint, and what came out of it so far."""

    def __init__(self, spark: SparkSession, root: Path, files: Path):
        self.spark, self.root, self.files = spark, root, files
        #: By output, under its first name: batches and their rows.
        self.came: dict[str, dict[int, list[tuple[Any, ...]]]] = defaultdict(dict)
        self.sinks: dict[str, Sink] = {}
        #: The batch in which the last run failed.
        self.failed: int | None = None

    @property
    def checkpoint(self) -> Path:
        return self.root / "ck"

    def add(self, files: range) -> None:
        for side, name in enumerate(SIDES):
            add_files(self.files / name, tables(side, files))

    def copy(self, to: Path) -> World:
        copied = World(self.spark, to, self.files)
        shutil.copytree(self.checkpoint, copied.checkpoint)
        for name, batches in self.came.items():
            copied.came[name] = dict(batches)
        return copied

    def streams(self, flow: Flow) -> dict[str, tg.Stream]:
        return {
            side: tg.stream(
                read_files(self.spark, self.files / side, flow.schema, flow.files_per_batch),
                name=name,
                time="ts",
                lateness=flow.lateness,
                idle_timeout=flow.idle_timeout,
            )
            for side, name in zip(SIDES, flow.streams, strict=True)
        }

    def outputs(self, flow: Flow, fails_at: int | None = None) -> list[tg.Output]:
        given = self.streams(flow)
        left, right = given["left"], given["right"]
        self.sinks = {name: FailingSink(name, fails_at) for name in NAMES}
        counts = {"n": F.count("*"), "ids": F.sum("n")}
        joined = left.join(
            flow.step(right),
            flow.on,
            how=flow.how,
            where=flow.where,
            within=f"{flow.within_us} microseconds",
            name=flow.name("near"),
        )
        queries = [tg.RangeQuery(name, f"v >= {low} and v < {high}") for name, low, high in flow.queries]
        size = f"{flow.size_us} microseconds"
        about = right.window(
            f"{ABOUT_US} microseconds", by="k", name=flow.name("about"), approximate=flow.approximate
        )
        hits = None if "hits" in flow.left_out else left.match(queries, name=flow.name("hits"))
        made = {
            "near": flow.behind(joined.select("n", "n_right")),
            **({} if hits is None else {"hits": hits.select("n", "query_name")}),
            "busy": right.window(size, by="k", name=flow.name("busy"), drop=flow.drop).agg(**counts),
            "about": about.agg(n=F.count("*")),
        }
        options: dict[str, dict[str, Any]] = {
            "near": {"max_loss": flow.max_loss, "priority": flow.priority},
            "busy": {"max_gap": flow.max_gap},
        }
        written = [
            stream.write_to(self.sinks[name], name=flow.name(name), **options.get(name, {}))
            for name, stream in made.items()
            if name not in flow.left_out
        ]
        written += flow.more({**given, "joined": joined, **made})
        return written[::-1] if flow.reordered else written

    def begin(self, begun: bool) -> None:
        """The first run: it stops within a window, perhaps with a plan that it did not finish."""
        self.add(range(FIRST_FILES))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "settle", lambda engine: None)
            leave_out(patch, 0)
            fails_at = FIRST_FILES - 1 if begun else None
            self.run(Flow(), fails_at=fails_at, goal=GOAL, shed=SHED, seed=1)
        self.add(range(FIRST_FILES, FILES))
        assert self.manifest.debts
        assert Checkpoint(str(self.checkpoint)).plans.read(self.manifest.batch + 1) is None or begun

    def run(self, flow: Flow, fails_at: int | None = None, **settings: Any) -> Any:
        """One more run to the end of the input, or until it fails; with a trigger, until all is processed."""
        given = {"instances": 2, **settings}
        outputs = self.outputs(flow, fails_at)
        if "trigger" in given:
            query = tg.start(*outputs, checkpoint=str(self.checkpoint), **given)
            query.process_all_available()
            query.stop()
        else:
            query = start_bounded(*outputs, checkpoint=self.checkpoint, **given)
            try:
                assert query.await_termination(PATIENCE_SECONDS)
                assert fails_at is None or fails_at > self.batch
                fails_at = None
            except tg.BatchFailed as error:
                if "no room" not in str(error) or fails_at != self.batch + 1:
                    raise
        for name, sink in self.sinks.items():
            # A batch that failed comes again, and replaces what came of it.
            assert self.came[name].keys() & sink.batches.keys() <= {self.failed}
            self.came[name].update(sink.batches)
        self.failed = fails_at
        return query

    @property
    def batch(self) -> int:
        """The last that was committed; -1: none."""
        found = Checkpoint(str(self.checkpoint)).manifests.load_latest()
        return -1 if found is None else found.batch

    @property
    def manifest(self) -> Manifest:
        found = Checkpoint(str(self.checkpoint)).manifests.load_latest()
        assert found is not None
        return found


def leave_out(patch: pytest.MonkeyPatch, seed: int) -> None:
    """From now on plans are what `some_left_out` makes of them."""
    decided, replan = planning.next_plan, some_left_out(seed)
    patch.setattr(planning, "next_plan", lambda *given, **named: replan(decided(*given, **named)))


# -- the judge -----------------------------------------------------------------------------------------------


def judge(world: World, query: Any, flow: Flow, names: Sequence[str] = NAMES) -> None:
    """All outputs of all runs against what the receipts say; `flow`: of the last run."""
    lines = query.receipts().to_dict("records")
    arrived = _arrivals(lines, dict(zip(flow.streams, SIDES, strict=True)))
    for name in names:
        mine = [
            line for line in lines if line["kind"] == "output" and line["name"] in (flow.name(name), name)
        ]
        came = Counter(row for rows in world.came[name].values() for row in map(plain, rows))
        assert not came or max(came.values()) == 1, f"{name}: a row came twice"
        {"near": _judge_pairs, "hits": _judge_hits, "busy": _judge_windows, "about": _judge_estimates}[name](
            world, flow, mine, came, arrived
        )


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """With times in microseconds."""
    return tuple(round(value.timestamp() * 1e6) if isinstance(value, datetime) else value for value in row)


Arrived = Mapping[str, Sequence[int]]


def _arrivals(lines: Sequence[Mapping[str, Any]], sides: Mapping[str, str]) -> Arrived:
    """By side and row: the batch that it came with, because files are read in their order."""
    found: dict[str, list[int]] = {"left": [], "right": []}
    for line in lines:
        if line["kind"] == "stream":
            # Earlier runs may have had other names, in which their side stands.
            side = sides.get(line["name"]) or SIDES["right" in line["name"]]
            found[side] += [line["batch_id"]] * line["rows_offered"]
            assert not line["rows_late"] + line["rows_rejected"]
    return found


def pairs_of(within_us: int) -> set[tuple[int, int]]:
    """The true pairs, by the numbers of their rows."""
    left, right = (np.array([(at, k) for at, k, _, _ in rows_of(side)]) for side in (0, 1))
    near = np.abs(left[:, None, 0] - right[None, :, 0]) <= within_us
    near &= left[:, None, 1] == right[None, :, 1]
    return {(int(a), int(b)) for a, b in zip(*np.nonzero(near), strict=True)}


def _judge_pairs(
    world: World, flow: Flow, lines: Sequence[Mapping[str, Any]], came: Counter[Any], arrived: Arrived
) -> None:
    true = pairs_of(flow.within_us)
    # Rows of a left join that found no partner.
    alone = {row for row in came if row[1] is None}
    assert came.keys() - alone <= true, "a false pair"
    assert not {n for n, _ in alone} & {n for n, _ in true}, "a row with a partner came alone"
    assert flow.how == "left" or not alone
    exact = {line["batch_id"] for line in lines if line["mode"] == "EXACT"}
    missing = [
        (a, b)
        for a, b in true
        if a < len(arrived["left"]) and b < len(arrived["right"]) and (a, b) not in came
    ]
    late = [max(arrived["left"][a], arrived["right"][b]) for a, b in missing]
    assert not exact.intersection(late), f"pairs are missing from exact batches: {Counter(late)}, {exact}"


def _judge_hits(
    world: World, flow: Flow, lines: Sequence[Mapping[str, Any]], came: Counter[Any], arrived: Arrived
) -> None:
    asked = {*QUERIES, *flow.queries}
    true = {(n, name) for _, _, n, v in rows_of(0) for name, low, high in asked if low <= v < high}
    assert came.keys() <= true, "a false hit"
    exact = {line["batch_id"] for line in lines if line["mode"] == "EXACT"}
    always = {name for name, _, _ in asked if name in flow.lasting}
    missing = {n for n, name in true - came.keys() if name in always and n < len(arrived["left"])}
    lacks = {n for n in missing if arrived["left"][n] in exact}
    assert not lacks, f"hits are missing from exact batches: {sorted(lacks)}"


def windows_of(size_us: int) -> dict[tuple[int, int, int], tuple[int, int]]:
    """The true windows: start, end, k → count and sum of n."""
    found: dict[tuple[int, int, int], tuple[int, int]] = {}
    for at, k, n, _ in rows_of(1):
        start = at // size_us * size_us
        count, ids = found.get((start, start + size_us, k), (0, 0))
        found[start, start + size_us, k] = count + 1, ids + n
    return found


def _judge_windows(
    world: World, flow: Flow, lines: Sequence[Mapping[str, Any]], came: Counter[Any], arrived: Arrived
) -> None:
    true = {(*window, *values) for window, values in windows_of(flow.size_us).items()}
    wrong = sorted(came.keys() - true)
    assert not wrong, f"windows came with a part of their rows: {wrong}, {sorted(true)}"
    missing = {
        at
        for line in lines
        for begin, end, slide in line["missing_windows"] or ()
        for at in range(begin, end + 1, slide)
    }
    # By groups, those that are kept come.
    assert flow.drop == "groups" or not missing & {row[0] for row in came}, "a missing window came"
    settled = world.manifest.settled_us[flow.name("busy")]
    closed = {row for row in true if row[1] <= settled}
    assert {row[0] for row in closed - came.keys()} <= missing, "a window went without a word"
    assert all(line["mode"] == "SUBSET" for line in lines if line["windows_missing"])


def _judge_estimates(
    world: World, flow: Flow, lines: Sequence[Mapping[str, Any]], came: Counter[Any], arrived: Arrived
) -> None:
    true = {window: values[0] for window, values in windows_of(ABOUT_US).items()}
    assert {row[:3] for row in came} <= true.keys(), "a group that there is not"
    exact = {line["batch_id"] for line in lines if line["mode"] == "EXACT"}
    for batch in exact:
        for start, end, k, n, *_ in map(plain, world.came["about"].get(batch, ())):
            assert n == true[start, end, k], "an estimate that is said to be exact"
    settled = world.manifest.settled_us[flow.name("about")]
    if all(line["mode"] == "EXACT" for line in lines):
        assert {row for row in true if row[1] <= settled} <= {row[:3] for row in came}


def total(query: Any, name: str) -> Any:
    """The receipt of an output over all runs."""
    found = query.receipts(by="total")
    return found[(found.kind == "output") & (found.name == name)].iloc[0]
