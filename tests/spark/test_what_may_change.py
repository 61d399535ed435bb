"""Each row of the table of changes in docs/operations.md: a restart within a window, with work left out.

The first run has skipped pairs that it owes, sifted rows, dropped windows and sampled others, and stopped
within a window, with or without a batch that it did not finish. The next run differs in one thing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.changing import (
    FIRST_FILES,
    GOAL,
    NAMES,
    QUERIES,
    SCHEMA,
    SHED,
    Flow,
    World,
    judge,
    pairs_of,
    total,
)

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


def all_queries_count(ran: Ran) -> None:
    came = {row for batch, rows in ran.world.came["hits"].items() for row in rows if batch > FIRST_FILES}
    assert {name for _, name in came} == {name for name, _, _ in ran.flow.queries}


def it_is_said(ran: Ran) -> None:
    debts_are_repaired(ran)
    assert "Steps in front of near have changed" in ran.log


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
    Change("no goal", settings={"goal": None, "shed": None}, check=pairs_stay_away, often=True),
    Change("shed: no skipping", settings={"shed": tg.Shed(join="none")}, check=pairs_stay_away),
    Change("shed: another policy", settings={"shed": tg.Shed(join="partial", window=0.7, repair="on_stop")}),
    Change(
        "shed: no sifting, no drops", settings={"shed": tg.Shed(sift="none", window="none", repair="on_stop")}
    ),
    Change("shed.repair", settings={"shed": tg.Shed(window=0.7)}, check=pairs_stay_away),
    Change("max_gap shorter", Flow(max_gap=1), often=True),
    Change("max_gap longer", Flow(max_gap="1 hour")),
    Change("max_gap left out", Flow(max_gap=None)),
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
    Change("steps behind", Flow(behind=lambda rows: rows.filter("n >= 0")), check=debts_are_repaired),
    Change("operators added", Flow(more=a_window_more), check=it_begins_empty),
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
        for begun in [number % 2 == 0]
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
