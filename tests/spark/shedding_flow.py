"""One query that leaves out work in every way there is, and plans that nobody can foresee.

    left  ─┬─▶ join ◀─ right      pairs      parts of basic windows are skipped, rows are dropped or stale
           └─▶ match              matched    a sifter stands in front
    right ─┬─▶ window ─▶ window   busy, wide    two deep, with groups; nothing is left out
           └─▶ window             about      estimated from some of the rows

What a plan leaves out is drawn from what the operating system calls random, so no run that decided a batch
anew would leave out the same: a replay that does has read the plan of the first try.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.crash_flow import source
from tests.spark.crash_input import BATCH_US, FIRST_US, LATENESS_US, WITHIN_US

import tidegate as tg
from tidegate.control import planning
from tidegate.model.plan import Plan
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.regions import Regions
from tidegate.state.checkpoint import Checkpoint
from tidegate.window.estimate.strata import STRATA

#: By output: its columns, so that the rows of two runs compare.
OUTPUTS = {
    "pairs": "id, id_right, k, epoch_us(ts), v, epoch_us(ts_right), w",
    "matched": "id, epoch_us(ts), k, v, query_name",
    "busy": "epoch_us(window_start), epoch_us(window_end), k, n, ids, most",
    # Estimates are sums of doubles, whose last digits depend on the order in which they are added up.
    "about": "epoch_us(window_start), epoch_us(window_end), k, n, round(n_low, 6), ids, most",
    "wide": "epoch_us(window_start), epoch_us(window_end), k, n, ids, most",
}
#: Exact answers; of the windows, those that the last row closes. Its own window never is.
ANSWERS = {
    "pairs": f"""select l.id, r.id as id_right, l.k, epoch_us(l.ts), v, epoch_us(r.ts), w
        from lefts l join rights r on l.k = r.k and abs(epoch_us(l.ts) - epoch_us(r.ts)) <= {WITHIN_US}""",
    "matched": """select id, epoch_us(ts), k, v, name from lefts, asked
        where v >= low and v < high and k >= 0 and k < below""",
    "busy": "select start, start + 2000000, k, n, ids, most from busy",
    "about": "select start, start + 2000000, k, n, n, ids, most from busy",
    "wide": """select wide, wide + 6000000, k, sum(n)::bigint, sum(ids)::bigint, max(most)
        from (select *, unnest([start // 3000000 * 3000000, start // 3000000 * 3000000 - 3000000]) as wide
              from busy) group by wide, k""",
}
#: Name, v from and below, k below.
ASKED = [(f"q{i}", round(i / 10, 1), round(i / 10 + 0.3, 1), 4 + 2 * i) for i in range(8)]
#: Never reached: what is left out is what the plans say.
GOAL = tg.Goal(latency="1 hour")

Replan = Callable[[Plan], Plan]


def outputs(spark: SparkSession, home: Path, out: str = "out") -> list[tg.Output]:
    left = source(spark, home, "left")
    right = source(spark, home, "right")
    queries = [
        tg.RangeQuery(name, f"v >= {low} and v < {high} and k >= 0 and k < {below}")
        for name, low, high, below in ASKED
    ]
    told = {"n": F.count("*"), "ids": F.sum("id"), "most": F.max("w")}
    again = {"n": F.sum("n"), "ids": F.sum("ids"), "most": F.max("most")}
    busy = right.window("2 seconds", by="k", name="busy").agg(**told)
    flows = {
        "pairs": left.join(right, on="k", within=f"{WITHIN_US} microseconds", name="pairs"),
        "matched": left.match(queries, name="matched"),
        "busy": busy,
        "about": right.window("2 seconds", by="k", approximate=True, name="about").agg(**told),
        "wide": busy.window("6 seconds", slide="3 seconds", by="k", name="wide").agg(**again),
    }
    return [flow.write_to("parquet", str(home / out / name), name=name) for name, flow in flows.items()]


def unforeseen(plan: Plan, chance: random.Random | None = None) -> Plan:
    """The plan with what it leaves out drawn anew."""
    chance = chance or random.SystemRandom()
    return replace(
        plan,
        shed=replace(
            plan.shed,
            skipping={name: _skipping(chance, one, plan.batch) for name, one in plan.shed.skipping.items()},
            sifters={name: random_sifter(chance, raw, plan.batch) for name, raw in plan.shed.sifters.items()},
            estimating={
                name: {**raw, "shares": _shares(chance)} for name, raw in plan.shed.estimating.items()
            },
        ),
    )


def _shares(chance: random.Random) -> list[float]:
    """Of some strata all rows are kept."""
    return [chance.choice((1.0, 0.1 + 0.9 * chance.random())) for _ in range(STRATA)]


def _skipping(chance: random.Random, whole: Skipping, batch: int) -> Skipping:
    first_us = FIRST_US + batch * BATCH_US
    fresh_us = [chance.choice((BEGINNING_US, first_us - chance.randrange(LATENESS_US))) for _ in range(2)]
    left, right = (tuple(chance.choice((0.0, 1.0, chance.random())) for _ in ages) for ages in whole.shares)
    return replace(
        whole,
        fraction=0.5,
        shares=(left, right),
        explore_share=0.2 * chance.random(),
        explore_depth=0.5,
        keep_share=chance.choice((1.0, 0.9)),
        fresh_us=(fresh_us[0], fresh_us[1]),
    )


def random_sifter(chance: random.Random, raw: Any, batch: int) -> Any:
    """Eight regions, cut one off the other along v and, if queries ask for it, k in turn."""
    passing = Sifter.from_json(raw)
    cuts = np.arange(7)
    axis = (cuts % len(passing.columns)).astype(np.int32)
    at = np.array([chance.random() if passing.columns[one] == "v" else chance.randrange(24) for one in axis])
    children = np.array([[~i, i + 1 if i < 6 else ~7] for i in cuts], np.int32)
    return replace(
        passing,
        regions=Regions(passing.regions.domain, axis, at.astype(np.float64), children),
        thresholds=np.array([chance.random() for _ in range(8)]),
        version=batch + 1,
        z=0.5,
        sample_share=0.1,
    ).to_json()


def replan_with(patch: Callable[[Any, str, Any], None], replan: Replan) -> None:
    """From now on plans are what `replan` makes of them."""
    decided = planning.next_plan
    patch(planning, "next_plan", lambda *given, **named: replan(decided(*given, **named)))


def as_planned(home: Path) -> Replan:
    """What the plans of another run left out is left out again; where rows lie is for this run to say."""
    plans = Checkpoint(str(home / "checkpoint")).plans

    def replan(plan: Plan) -> Plan:
        theirs = plans.read(plan.batch)
        assert theirs is not None
        return replace(
            plan,
            shed=replace(
                plan.shed,
                skipping=theirs.shed.skipping,
                sifters=theirs.shed.sifters,
                estimating=theirs.shed.estimating,
            ),
        )

    return replan


def written(home: Path, name: str, out: str = "out") -> list[tuple[Any, ...]]:
    """All rows of an output that are published or drafts, the batch first."""
    folder = home / out / name
    files = [str(path) for at in ("part-*", ".tidegate/*/part-*") for path in folder.glob(at)]
    if not files:
        return []
    batch = r"regexp_extract(filename, '(/part-|tidegate/)(\d{10})-', 2)::bigint"
    return _rows(f"select {batch}, {OUTPUTS[name]} from read_parquet({files}, filename = true)")


def exact(home: Path, name: str) -> list[tuple[Any, ...]]:
    """What comes out where nothing is left out, by DuckDB."""
    return _rows(
        f"""with lefts as (from '{home}/left/*.parquet' where id >= 0),
            rights as (from '{home}/right/*.parquet' where id >= 0),
            asked(name, low, high, below) as (values {", ".join(map(str, ASKED))}),
            busy as (select epoch_us(ts) // 2000000 * 2000000 as start, k, count(*) as n,
                     sum(id)::bigint as ids, max(w) as most from rights group by start, k)
            {ANSWERS[name]}"""
    )


def _rows(query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.sql(f"from ({query}) order by all").fetchall()
