"""Random restarts with random changed settings: every row that comes is right, and every receipt is true.

Three runs on one checkpoint, over all kinds of operators at once (`changing.py`). Each run draws what it
leaves out and repairs, how it balances, what its outputs may lose, its lateness, queries and names; it may
fail within a batch, which the next one then repeats. A failure is a number:

    make soak ARGS="tests/spark/test_random_restarts.py -k 17"
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.changing import FILES, GOAL, NAMES, QUERIES, Flow, World, judge, leave_out

import tidegate as tg
from tidegate.control.identity.translation import Translation
from tidegate.driver.engine.engine import Engine
from tidegate.model.codec import encode_exactly
from tidegate.state.checkpoint import Checkpoint

DRAWS, IN_MAKE_TEST, RUNS = 40, 1, 3
#: Names that stand for nothing else in a checkpoint.
STREAMS, OPERATORS = ("xleft", "xright"), {name: f"x{name}" for name in NAMES}


@pytest.mark.parametrize(
    "seed",
    [
        *range(IN_MAKE_TEST),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(IN_MAKE_TEST, DRAWS)),
    ],
)
def test_rows_are_right_and_receipts_true_through_random_restarts(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    world = World(spark, tmp_path, tmp_path / "in")
    flow = Flow(
        names=OPERATORS,
        streams=STREAMS,
        how=chance.choice(["inner", "inner", "inner", "left"]),
        within_us=chance.choice([1_000_000, 3_000_000, 9_000_000]),
        size_us=chance.choice([5_000_000, 20_000_000]),
    )
    renames, committed = dict[str, str](), -1
    cuts = sorted(chance.sample(range(2, FILES - 1), RUNS - 1))
    world.add(range(0))
    for run, (first, last) in enumerate(zip([0, *cuts], [*cuts, FILES], strict=True)):
        world.add(range(first, last))
        # Names are those of the newest commit: without one, the same renames must be said again.
        flow, said = changed(chance, flow, may_rename=run > 0 and world.batch > committed)
        renames, committed = said if world.batch > committed else renames, world.batch
        fails_at = world.batch + 1 + chance.randrange(3) if run < RUNS - 1 and chance.random() < 0.5 else None
        with pytest.MonkeyPatch.context() as patch:
            if chance.random() < 0.8:
                leave_out(patch, seed)
            if chance.random() < 0.5:
                patch.setattr(Engine, "settle", lambda engine: None)
            query = world.run(flow, fails_at=fails_at, renames=renames, **settings_of(chance, flow))
        if world.batch >= 0:
            judge(world, query, flow)
            check_names(world, flow)


def changed(chance: random.Random, flow: Flow, may_rename: bool) -> tuple[Flow, dict[str, str]]:
    """The flow of the next run, and the renames that lead to it."""
    streams = flow.streams
    if may_rename and chance.random() < 0.3:
        streams = (f"{streams[0]}x", streams[1])
    queries = (*chance.sample(QUERIES[:2], chance.randrange(3)), *QUERIES[2:])
    later = replace(
        flow,
        streams=streams,
        queries=queries,
        lateness=chance.choice(["400 milliseconds", "1 second", "5 seconds"]),
        max_gap=chance.choice([None, 1, 3, 30, "1 hour"]),
        max_loss=chance.choice([None, None, 0.0, 0.5]),
        priority=chance.choice([1.0, 4.0]),
        files_per_batch=chance.choice([1, 1, 2]),
    )
    return later, {old: new for old, new in zip(flow.streams, streams, strict=True) if old != new}


def settings_of(chance: random.Random, flow: Flow) -> dict[str, Any]:
    found: dict[str, Any] = {
        "seed": chance.randrange(9),
        "instances": chance.randint(1, 3),
        "balance": tg.Balance(strategy=chance.choice(["auto", "fastjoin", "ls_stream", "none"])),
        "watermark": chance.choice(["slowest", "slowest", "own"]),
    }
    if chance.random() < 0.3:
        return found
    repair: Any = chance.choice([None, "idle", "on_stop"]) if flow.how == "inner" else None
    join: Any = chance.choice(["auto", "partial", *(() if repair else ("random_drop", "none"))])
    window: Any = chance.choice(["none", 0.3, 0.7, 1.0])
    shed = tg.Shed(join=join, repair=repair, window=window, sift=chance.choice(["auto", "none"]))
    small = repair is None and chance.random() < 0.2
    return {**found, "goal": tg.Goal(latency="1 hour", max_state="20 KB") if small else GOAL, "shed": shed}


def check_names(world: World, flow: Flow) -> None:
    """Whatever controllers remember, renames find all names in it (`control/identity/translation.py`)."""
    old = [*flow.streams, *OPERATORS.values()]
    both = {name: f"new {number}" for number, name in enumerate(old)}
    names, manifest = Translation(both, both), world.manifest
    plan = Checkpoint(str(world.checkpoint)).plans.read(manifest.batch)
    texts = [encode_exactly(names.manifest(replace(manifest, pieces=(), files=type(manifest.files)())))]
    if plan is not None:
        # Pieces that are merged name their files.
        merges = {name: dict[str, Any]() for name in plan.rewrites.merges}
        plan = replace(plan, rewrites=replace(plan.rewrites, merges=merges))
        texts += [encode_exactly(names.plan(plan))]
    places = ((text, text.find(name.encode())) for name in old for text in texts)
    assert [text[max(0, at - 200) : at + 50] for text, at in places if at >= 0] == []
