"""The `auto` strategy (ours): measured cost, the least state moved, hot keys split.

FastJoin moves keys between the heaviest and the lightest instance; Ls-Stream moves partitions. This
strategy does both and can also split a key over several instances, which no migration can replace once a
key costs more than a fair share. After each batch:

1. Learn the prices of rows and pairs from the seconds that instances took (`learnt_costs.py`).
2. Compute the cost of every partition, watched key and instance (`work_costs.py`); while windows are still
   filling, the cost that it is going to have (`prices_ahead`).
3. Give split keys that cooled down fewer instances, if the saving is worth the rows it moves.
4. If an instance is heavier than `trigger` fair shares, beyond chance, draw up plans (`moves.py`): one for
   each size of `pieces` that keys may be cut into, and each of the `levels` that instances may be evened
   out to. The plan with the least cost wins:

       likely makespan + reluctance · fair share · rows moved / (rows that a batch brings · batches lasted)
                       + scattering, where any key is split

   The likely makespan includes one standard deviation, so that keys with fluctuating work are split rather
   than moved. The plan is taken only if it beats staying by `gain_least`. So the gain is judged against what
   moves: with a reluctance of 0.2, moving as many rows as half a batch brings must make batches shorter by a
   tenth, or by a twentieth where an instance has been too heavy for two batches in a row. What has lasted is
   expected to last, so no imbalance stays forever because the state is large. Batches of some hundredths of a
   second are better off uneven: Spark copies and labels split rows and stores them in more pieces, however
   few they are. Where splitting no longer pays, keys are merged again (`_joined`).

Before the first batch there are only the counts of its own keys, where they were scanned: `begin`.

Guarantees: without an instance above the trigger nothing moves, except keys that cool down. A plan that is
taken shortens the likely makespan, by the costs of the last batch. The decision is a function of the loads so
far; the memory is plain JSON of constant size, plus one number per key with a place of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.errors import FlowError
from tidegate.route.assignment import Assignment
from tidegate.route.auto.lasting import observe, too_heavy
from tidegate.route.auto.learnt_costs import learn, prices_in
from tidegate.route.auto.moves import level_out, shift_pieces, split
from tidegate.route.auto.plan import BalancePlan, plan_of
from tidegate.route.auto.splitting import grid_needed
from tidegate.route.auto.work_costs import (
    COUNTED,
    STORE,
    SplitGrid,
    counts_per_instance,
    prices_ahead,
    stored_rows,
)
from tidegate.route.hash_routing import first_table
from tidegate.route.load import Load
from tidegate.route.resizing import evened_table
from tidegate.route.strategy import Memory

#: A key that cooled down returns to its partition if that moves at most this part of the state.
#: So at most 1 / _NEGLIGIBLE keys keep a place that they no longer need.
_NEGLIGIBLE = 1e-4
#: Seconds per pair, which scale the counted prices, before anything was measured (on Spark: 0.07
#: microseconds a pair where keys are skewed, 0.8 a row where they are not).
_PAIR_SECONDS = 6e-8


@dataclass(frozen=True)
class Auto:
    """A lower trigger balances better and moves more; so does less reluctance."""

    #: Plan when an instance costs more than this many fair shares.
    trigger: float = 1.08
    #: The candidate plans level down to these many fair shares. A coarse one moves few rows.
    levels: tuple[float, ...] = (1.03, 1.07, 1.2)
    gain_least: float = 0.03
    #: Price of moving as many rows as a batch brings, in batches of perfect balance.
    reluctance: float = 0.2
    #: Seconds that a batch takes longer where any key is split (measured: 0.04 to 0.1 on two instances).
    scattering: float = 0.05
    #: Plans cut keys into pieces of at most this many fair shares.
    pieces: tuple[float, ...] = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1)
    #: A key needs at least this part of a fair share to get a place of its own.
    alone: float = 0.02
    #: Batches for which a key must be cool before it loses its places.
    batches: int = 3

    def __post_init__(self) -> None:
        good = (
            1 <= min(self.levels, default=0) <= self.trigger
            and 0 <= self.gain_least < 1
            and min(self.reluctance, self.scattering) >= 0
        )
        if not (good and self.pieces and all(0 < piece <= 1 for piece in self.pieces) and self.batches >= 1):
            raise FlowError(
                "A setting of the strategy auto is out of range",
                code="BALANCE_SETTING_INVALID",
                got=self,
                do="Give levels from 1 on with the least up to its trigger, gain_least in [0, 1), "
                "reluctance and scattering of at least 0, pieces in (0, 1] and batches of at least 1; the "
                "defaults suit most joins",
            )

    @property
    def name(self) -> str:
        return "auto"

    def first(self, partitions: int, instances: int) -> Assignment:
        return Assignment(instances, first_table(partitions, instances))

    def begin(self, load: Load, first: Assignment) -> Assignment:
        """The assignment of the first batch, where the initial skew scan counted its keys.

        Nothing has to move for it. So only the cost of scattering is weighed against the makespan, and an
        instance need not be too heavy beyond chance.
        """
        stay = plan_of(load, first, _PAIR_SECONDS * COUNTED, min(self.alone, *self.pieces) / 2)
        if not stay.makespan > self.trigger * stay.fair:
            return first
        return replace(self, reluctance=0.0)._best(stay, 1).assignment(first)

    def decide(self, load: Load, current: Assignment, memory: Memory) -> tuple[Assignment, Memory]:
        counts = counts_per_instance(load, current)
        learnt = learn(memory.get("costs", {}), counts, load.seconds)
        stored, new = stored_rows(load, current), float(counts[STORE].sum())
        before = float(memory.get("stored", 0.0))
        prices = prices_ahead(prices_in(learnt), stored=stored, before=before, new=new)
        stay = plan_of(load, current, prices, min(self.alone, *self.pieces) / 2)
        if not stay.fair > 0:
            return current, {**memory, "costs": learnt}
        cool = self._cool_down(stay, memory.get("cool", {}))
        recent = observe(memory.get("recent", {}), stay.loads / stay.fair)
        (best, idle), lasted = self._joined(stay, int(memory.get("idle", 0))), 0
        heavy = too_heavy(recent, stay.loads / stay.fair, stay.noise() / stay.fair, self.trigger)
        if heavy and best is stay:
            lasted = int(memory.get("lasted", 0)) + 1
            best = self._best(stay, lasted)
        after = best.assignment(current)
        remembered = {
            "costs": learnt,
            "stored": stored,
            "cool": {code: batches for code, batches in cool.items() if int(code) in after.keys},
            # Loads from before a migration do not predict those after it.
            "recent": recent if after is current else {},
            "lasted": lasted if after is current else 0,
            "idle": idle if after is current else 0,
        }
        return after, remembered

    def resize(self, load: Load, current: Assignment, instances: int) -> Assignment:
        evened = evened_table(current.table, instances)
        plan = plan_of(load, current, prices_in({}))
        if not plan.fair > 0:
            return Assignment(instances, evened)
        resized = plan.resized(instances)
        level_out(resized, math.inf, self.alone)  # place the unplaced items and nothing else
        best = min([resized, *self._plans(resized, self.pieces)], key=lambda plan: self._price(plan, resized))
        return best.assignment(current)

    def _best(self, stay: BalancePlan, lasted: int) -> BalancePlan:
        """The plan to take after an instance has been too heavy for `lasted` batches in a row."""
        # Also without splits: where scattering costs too much, moving whole keys may still help.
        plans = self._plans(stay, (math.inf, *self.pieces))
        best = min([stay, *plans], key=lambda plan: self._price(plan, stay, lasted))
        enough = (1 - self.gain_least) * self._price(stay, stay)
        return best if self._price(best, stay, lasted) <= enough else stay

    def _joined(self, stay: BalancePlan, idle: int) -> tuple[BalancePlan, int]:
        """Merge split keys where that would have been better for some batches; and the number of these."""
        if not stay.scatters:
            return stay, 0
        plans = [stay.copy() for _ in self.levels]
        for plan, level in zip(plans, self.levels, strict=True):
            for key in [key for key, grid in plan.own.items() if len(grid.places) > 1]:
                plan.put(key, None)
            level_out(plan, level, self.alone)
        best = min(plans, key=lambda plan: self._price(plan, stay, self.batches))
        if self._price(best, stay, self.batches) > (1 - self.gain_least) * self._price(stay, stay):
            return stay, 0
        return (best, 0) if idle + 1 >= self.batches else (stay, idle + 1)

    def _plans(self, stay: BalancePlan, pieces: Sequence[float]) -> list[BalancePlan]:
        plans = []
        for level in self.levels:
            tried: list[dict[int, SplitGrid]] = []
            for piece in pieces:
                plan = stay.copy()
                split(plan, piece, level)
                if plan.own not in tried:
                    tried.append(dict(plan.own))
                    shift_pieces(plan, level)
                    level_out(plan, level, self.alone)
                    plans.append(plan)
        return plans

    def _price(self, plan: BalancePlan, stay: BalancePlan, lasted: int = 1) -> float:
        moving = self._moving(stay) * (plan.moved_rows - stay.moved_rows) / lasted
        return plan.likely_makespan() + moving + self.scattering * plan.scatters

    def _moving(self, plan: BalancePlan) -> float:
        """The price of moving a row."""
        return self.reluctance * plan.fair / max(plan.new_rows, 1.0)

    def _cool_down(self, plan: BalancePlan, before: Mapping[str, Any]) -> dict[str, int]:
        """Withdraw places from keys that have been cool long enough; return the cool batches of each key."""
        rows, columns = grid_needed(plan.keys, plan.fair, min(self.pieces), plan.instances)
        moving = self._moving(plan)
        cool: dict[str, int] = {}
        for key, (places, was) in list(plan.own.items()):
            fewer = int(rows[key] * columns[key])
            light = (
                plan.keys.whole[key] < self.alone * plan.fair
                if len(places) == 1
                else 2 * fewer <= len(places)
            )
            if not light:
                continue
            code = str(int(plan.load.codes[key]))
            cool[code] = int(before.get(code, 0)) + 1
            fewer_columns, fewer_rows = was - int(columns[key]), len(places) // was - int(rows[key])
            saved = fewer_columns * float(plan.keys.left[key]) + fewer_rows * float(plan.keys.right[key])
            moved = float(plan.keys.rows[key]) * (1 - fewer / len(places) if fewer > 1 else 1)
            worth = moved * moving <= saved or moved <= _NEGLIGIBLE * plan.state_rows
            if cool[code] >= self.batches and worth:
                keep = sorted(places, key=lambda one: (plan.loads[one], one))[:fewer]
                plan.put(key, SplitGrid(tuple(keep), int(columns[key])) if fewer > 1 else None)
        return cool
