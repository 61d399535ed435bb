"""Each row of the table of changes in docs/operations.md: a restart within a window, with work left out.

The first run has skipped pairs that it owes, sifted rows, dropped windows and sampled others, and stopped
within a window, with or without a batch that it did not finish. The next run differs in one thing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.changing import (
    FILE_SECONDS,
    FILES,
    FIRST_FILES,
    GOAL,
    NAMES,
    QUERIES,
    ROWS,
    SCHEMA,
    SHED,
    Flow,
    World,
    judge,
    pairs_of,
    plain,
    rows_of,
    total,
    windows_of,
)
from tests.spark.flows import EPOCH_US, Sink

import tidegate as tg
from tidegate.model import codec
from tidegate.state.store import sealed

#: What the next run goes on with, unless a change says otherwise.
SAME: dict[str, Any] = {"goal": GOAL, "shed": SHED, "seed": 1}


@dataclass
class Ran:
    """The next run."""

    world: World
    query: Any
    flow: Flow
    log: str

    def told(self, name: str) -> list[Any]:
        """The receipts of an output in the batches of this run."""
        found = self.query.receipts()
        mine = found[(found.kind == "output") & (found.name == name) & (found.batch_id >= FIRST_FILES)]
        return list(mine.itertuples())


@dataclass(frozen=True)
class Change:
    """One row of the table."""

    name: str
    flow: Flow = field(default_factory=Flow)
    settings: dict[str, Any] = field(default_factory=dict)
    #: What must hold beside what the judge knows.
    check: Callable[[Ran], None] = lambda ran: None
    #: Outputs that the judge can judge.
    judged: tuple[str, ...] = NAMES
    often: bool = False
    #: Only without, or with, a batch that was begun.
    begun: bool | None = None


@pytest.fixture(scope="module")
def worlds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, World]:
    """By whether a batch was begun: what the first run left."""
    found = {}
    for begun in (False, True):
        root = tmp_path_factory.mktemp("begun" if begun else "ended")
        found[begun] = World(spark, root, root / "in")
        found[begun].begin(begun)
    return found


# -- what must hold beside -----------------------------------------------------------------------------------


def nothing_more_is_left_out(ran: Ran) -> None:
    assert total(ran.query, "near").debt_pairs == 0
    assert {line.mode for line in ran.told(ran.flow.name("near"))[1:]} == {"EXACT"}


def debts_are_repaired(ran: Ran) -> None:
    told = total(ran.query, ran.flow.name("near"))
    assert (told.debt_pairs, told.written_off_pairs) == (0, 0)
    came = {row for rows in ran.world.came["near"].values() for row in rows}
    assert came == pairs_of(ran.flow.within_us)


def pairs_stay_away(ran: Ran) -> None:
    told = total(ran.query, ran.flow.name("near"))
    assert told.debt_pairs == 0
    assert told.written_off_pairs > 0
    assert told["mode"] == "SUBSET"
    assert "skipped pairs were written off" in ran.log
    assert "[DEBTS_WRITTEN_OFF]" in ran.log


def all_queries_count(ran: Ran) -> None:
    came = {row for batch, rows in ran.world.came["hits"].items() for row in rows if batch > FIRST_FILES}
    assert {name for _, name in came} == {name for name, _, _ in ran.flow.queries}


def it_is_said(ran: Ran) -> None:
    debts_are_repaired(ran)
    assert "Steps in front of near have changed" in ran.log


class Beside:
    """Further outputs of the next run: of streams and of what its first outputs write."""

    def __init__(self, *made: Callable[[Mapping[str, tg.Stream]], tg.Stream]):
        self.made = made
        self.sinks = [Sink(f"beside {number}") for number in range(len(made))]

    def __call__(self, streams: Mapping[str, tg.Stream]) -> list[tg.Output]:
        pairs = zip(self.made, self.sinks, strict=True)
        return [make(streams).write_to(sink, name=sink.__name__) for make, sink in pairs]


#: Second outputs of a join and of windows that the first one drops.
MORE_OUTPUTS = Beside(
    lambda streams: streams["near"].select("n_right", "n").with_column("again", F.lit(1)),
    lambda streams: streams["busy"].with_column("again", F.lit(1)),
)
#: Operators of every kind, also behind a join that owes.
MORE_OPERATORS = Beside(
    lambda streams: (
        streams["left"]
        .join(streams["right"], "n", within=tg.between("-1 second", "1 second"), name="same n")
        .select("n")
    ),
    lambda streams: streams["left"].match([tg.RangeQuery("all", "v >= 0")], name="all"),
    lambda streams: streams["right"].window(tg.row_window(10), by="k", name="tens").agg(n=F.count("*")),
    lambda streams: streams["joined"].window("2 seconds", by="k", name="twos").agg(n=F.count("*")),
)


def others_come_from_now_on(ran: Ran) -> None:
    debts_are_repaired(ran)
    pairs, windows = MORE_OUTPUTS.sinks
    both = ran.world.came["near"], pairs.batches
    mine, others = ({row for b in one if b >= FIRST_FILES for row in one[b]} for one in both)
    assert {(n, other) for other, n, _ in others} == mine
    assert mine
    true = {(*window, *values) for window, values in windows_of(ran.flow.size_us).items()}
    came = {plain(row[:-1]) for row in windows.rows}
    assert came <= true, "windows came with a part of their rows"
    missing = {
        at
        for line in ran.told("beside 1")
        for begin, end, slide in line.missing_windows
        for at in range(begin, end + 1, slide)
    }
    settled = ran.world.manifest.settled_us["busy"]
    begun = EPOCH_US + FIRST_FILES * FILE_SECONDS * 10**6 - ran.flow.size_us
    closed = {start for start, end, *_ in true if begun < start and end <= settled}
    assert closed
    assert {row[0] for row in came} | missing >= closed, "a window went without a word"


def they_begin_empty(ran: Ran) -> None:
    debts_are_repaired(ran)
    same, hits, tens, twos = MORE_OPERATORS.sinks
    at = {side: [row[0] for row in rows_of(side)] for side in (0, 1)}
    for name in ("same n", "all", "tens", "twos"):
        assert f"operator {name} is new and begins empty" in ran.log
    new = range((FIRST_FILES + 1) * ROWS, FILES * ROWS)
    equal = {n for n in range(FILES * ROWS) if abs(at[0][n] - at[1][n]) <= 1_000_000}
    assert {n for n in equal if n in new} <= {row[0] for row in same.rows} <= equal
    assert {row[2] for row in hits.rows} >= set(new)
    assert all(row[-1] == 10 for row in tens.rows)
    # Windows of pairs: all of the pairs, or no window.
    true = Counter[tuple[int, int]]()
    for n, other in pairs_of(ran.flow.within_us):
        true[max(at[0][n], at[1][other]) // 2_000_000 * 2_000_000, rows_of(0)[n][1]] += 1
    came = {(start, k): n for start, _, k, n in map(plain, twos.rows)}
    assert came
    assert came == {window: n for window, n in true.items() if window in came}


def tripled(version: str) -> Callable[[tg.Stream], tg.Stream]:
    """A Python function in front of the join, which the first run does not have."""

    def three(frame: DataFrame) -> DataFrame:
        return frame.withColumn("v", F.udf(lambda v: 3 * v, "double")("v"))

    return lambda rows: rows.transform(three, version=version)


def a_window_more(streams: Mapping[str, tg.Stream]) -> list[tg.Output]:
    wide = streams["right"].window("10 seconds", by="k", name="wide").agg(n=F.count("*"))
    return [wide.write_to("noop", name="wide")]


def it_begins_empty(ran: Ran) -> None:
    debts_are_repaired(ran)
    assert "wide is new and begins empty" in ran.log


CHANGES = [
    Change("nothing", check=debts_are_repaired, often=True),
    # Settings.
    Change("goal", settings={"goal": tg.Goal(latency="30 minutes")}, check=debts_are_repaired),
    Change(
        "goal observes", settings={"goal": tg.Goal(latency="1 hour", observe=True)}, check=debts_are_repaired
    ),
    Change("no goal", settings={"goal": None, "shed": None}, check=debts_are_repaired, often=True),
    Change("no goal, repair", settings={"goal": None}, check=debts_are_repaired),
    Change("no goal, no repair", settings={"goal": None, "shed": tg.Shed()}, check=pairs_stay_away),
    Change("shed: no skipping", settings={"shed": tg.Shed(join="none")}, check=pairs_stay_away),
    Change("shed: another policy", settings={"shed": tg.Shed(join="partial", window=0.7, repair="on_stop")}),
    Change(
        "shed: no sifting, no drops", settings={"shed": tg.Shed(sift="none", window="none", repair="on_stop")}
    ),
    Change("shed.repair", settings={"shed": tg.Shed(window=0.7)}, check=pairs_stay_away),
    Change("max_gap shorter", Flow(max_gap=1), often=True),
    Change("max_gap longer", Flow(max_gap="1 hour")),
    Change("max_gap left out", Flow(max_gap=None)),
    Change("drop by groups", Flow(drop="groups")),
    Change("max_loss", Flow(max_loss=0.0), check=debts_are_repaired),
    Change("priority", Flow(priority=5.0), check=debts_are_repaired),
    Change("max_state", settings={"goal": tg.Goal(latency="1 hour", max_state="2 KB"), "shed": tg.Shed()}),
    Change("seed", settings={"seed": 8}, check=debts_are_repaired),
    Change(
        "balance: strategy", settings={"balance": tg.Balance(strategy="fastjoin")}, check=debts_are_repaired
    ),
    Change("balance: none", settings={"balance": tg.Balance(strategy="none")}, check=debts_are_repaired),
    Change("balance: scale", settings={"balance": tg.Balance(scale=(1, 3))}, check=debts_are_repaired),
    Change("instances", settings={"instances": 3}, check=debts_are_repaired, often=True),
    Change("trigger", settings={"trigger": "100 milliseconds"}),
    Change("lateness shorter", Flow(lateness="400 milliseconds"), often=True),
    Change("lateness longer", Flow(lateness="9 seconds"), check=debts_are_repaired),
    Change("idle_timeout", Flow(idle_timeout="10 minutes"), check=debts_are_repaired),
    Change("watermark", settings={"watermark": "own"}, check=debts_are_repaired),
    Change("retention", settings={"retention": "30 days"}, check=debts_are_repaired),
    Change("files in a batch", Flow(files_per_batch=3), check=debts_are_repaired),
    # The flow.
    Change(
        "queries of a match",
        Flow(queries=(*QUERIES[2:], ("new", 0.0, 0.2))),
        check=all_queries_count,
        often=True,
    ),
    Change("columns added", Flow(schema=f"{SCHEMA}, note string"), check=debts_are_repaired, often=True),
    Change("steps in front", Flow(step=lambda rows: rows.filter("v >= 0")), check=it_is_said),
    Change("a function", Flow(step=tripled("1")), check=it_is_said),
    Change("columns taken", Flow(schema=SCHEMA.removesuffix(", tag string")), check=debts_are_repaired),
    Change("steps behind", Flow(behind=lambda rows: rows.filter("n >= 0")), check=debts_are_repaired),
    Change("operators added", Flow(more=a_window_more), check=it_begins_empty),
    Change(
        "operators of every kind added",
        Flow(more=MORE_OPERATORS),
        {"goal": None, "shed": None},
        check=they_begin_empty,
        begun=False,
    ),
    Change("outputs added", Flow(more=MORE_OUTPUTS), check=others_come_from_now_on, often=True),
    Change("outputs reordered", Flow(reordered=True), check=debts_are_repaired),
    Change(
        "outputs renamed",
        Flow(names={name: f"{name} 2" for name in NAMES}),
        {"renames": {name: f"{name} 2" for name in NAMES}},
        debts_are_repaired,
    ),
    Change(
        "streams renamed",
        Flow(streams=("zebra", "ant")),
        {"renames": {"left": "zebra", "right": "ant"}},
        debts_are_repaired,
        often=True,
    ),
    Change(
        "outputs removed",
        Flow(left_out=("busy",)),
        judged=("near", "hits", "about"),
        check=debts_are_repaired,
    ),
    Change("operators removed", Flow(left_out=("near",)), judged=("hits", "busy", "about")),
    Change(
        "another interval under another name",
        Flow(names={"near": "close"}, within_us=1_000_000),
        judged=("hits", "busy", "about"),
    ),
]

REFUSED: list[tuple[str, Flow, dict[str, Any], str]] = [
    ("partitions", Flow(), {"partitions": 24}, r"CHECKPOINT_FLOW_CHANGED.*partitions: 16 → 24"),
    ("approximate", Flow(approximate=False), {}, r"CHECKPOINT_FLOW_CHANGED.*Give about a new name"),
    ("window size", Flow(size_us=10_000_000), {}, r"size_us: 20000000 → 10000000.*Give busy a new name"),
    ("keys", Flow(on={"k": "n"}), {}, r"operators\.near\.keys.*Give near a new name"),
    ("interval", Flow(within_us=1_000_000), {}, r"3000000 → 1000000.*Give near a new name"),
    ("kind of join", Flow(how="left"), {"shed": tg.Shed()}, r'how: "inner" → "left".*Give near a new name'),
    ("condition", Flow(where="n < n_right"), {}, r"where: null → .*Give near a new name"),
    ("type of a column", Flow(schema=SCHEMA.replace("v double", "v float")), {}, r"schema\.v: \"double\""),
    (
        "topology",
        Flow(left_out=("busy", "about")),
        {"balance": tg.Balance(strategy="random", topology="biclique")},
        r"BALANCE_TOPOLOGY_CHANGED",
    ),
    ("another stream", Flow(streams=("zebra", "right")), {}, r"CHECKPOINT_STREAM_REMOVED.*renames"),
]


@pytest.mark.parametrize("begun", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_what_cannot_change_is_refused_with_a_way_out_and_nothing_is_lost(
    worlds: dict[bool, World], tmp_path: Path, begun: bool
) -> None:
    world = worlds[begun].copy(tmp_path)
    before = world.manifest
    for name, flow, settings, said in REFUSED:
        with pytest.raises(tg.TidegateError, match=said):
            world.run(flow, **{**SAME, **settings})
        assert world.manifest == before, name
    if begun:
        with pytest.raises(tg.StateError, match=r"CHECKPOINT_ROWS_DROPPED.*results of near.*until the batch"):
            world.run(Flow(more=MORE_OPERATORS), goal=None)
        assert world.manifest == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed, "FORMAT", codec.FORMAT + 1)
        with pytest.raises(tg.StateError, match=r"CHECKPOINT_FORMAT_UNKNOWN.*Run the version that wrote"):
            world.run(Flow(), **SAME)
    query = world.run(Flow(), **SAME)
    judge(world, query, Flow())
    debts_are_repaired(Ran(world, query, Flow(), ""))


@pytest.mark.parametrize(
    ("change", "begun"),
    [
        pytest.param(change, begun, id=f"{change.name}{', begun' if begun else ''}", marks=marks)
        for number, change in enumerate(CHANGES)
        for begun in [number % 2 == 0 if change.begun is None else change.begun]
        for marks in [[] if change.often else [pytest.mark.soak]]
    ],
)
def test_results_stay_right_and_receipts_true_when_this_changes(
    worlds: dict[bool, World], tmp_path: Path, change: Change, begun: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = worlds[begun].copy(tmp_path)
    with caplog.at_level(logging.INFO, "tidegate"):
        query = world.run(change.flow, **{**SAME, **change.settings})
    judge(world, query, change.flow, change.judged)
    change.check(Ran(world, query, change.flow, caplog.text))
