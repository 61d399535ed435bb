"""The engine without Spark: the same steps of a batch over the same tasks, planner and state, in one process.

A batch is a dict from stream to rows. Instances run one after the other, each on the rows that the routing
table gives it. Between two batches anything may be changed that must not change results: the routing table
(`reroute`), and a batch may be run several times before it counts (`attempts`).
After every batch all files that the manifest does not name are deleted, so a forgotten one is soon missed.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray
from tests.oracle.plain_join import Cell, PlainJoin
from tests.oracle.plain_routing import copies

from tidegate.control import merging, planning
from tidegate.control.balance import balancing
from tidegate.control.balance.balancing import BalanceSettings
from tidegate.control.balance.rerouting import first_routing, rerouted
from tidegate.control.outcome import manifest_after, newest_seen
from tidegate.control.repair import repair
from tidegate.control.watermarks import ClockSettings
from tidegate.driver.operators.join import join_work, read_everywhere
from tidegate.driver.operators.protocol import state_order
from tidegate.model.codec import decode, encode_exactly
from tidegate.model.debts import DebtRepair
from tidegate.model.graph import LateRule, OperatorTraits
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.model.plan import Plan, PlanDecisions, RepairPlan, ShedPlan
from tidegate.model.reports import TaskReport, reports_in
from tidegate.model.routing import Cut, Routing
from tidegate.model.skip_plan import Skipping
from tidegate.route.assignment import Assignment
from tidegate.route.hash_routing import first_table
from tidegate.state.store import memory
from tidegate.state.store.memory import MemoryStore
from tidegate.worker.join import pair_finder, predicates
from tidegate.worker.join import task as join_task
from tidegate.worker.join.residual import SettleInstance
from tidegate.worker.join.task import JoinInstance
from tidegate.worker.runtime import memory as memory_of_tasks
from tidegate.worker.runtime import portions, worker_cache
from tidegate.worker.runtime.layout import CODE, OK, REPORT, ROLE, ROW, TAG, TIME
from tidegate.worker.runtime.state_order import StateOrder, for_instance
from tidegate.worker.window import task as window_task

#: (time, key, number, value); a row without a time is rejected.
Row = tuple[int | None, Cell, int, int]
#: (k, columns of the joined row …, time).
Joined = tuple[Cell, ...]


@contextmanager
def small_rooms() -> Iterator[None]:
    """Tasks hold a few rows at a time."""
    with ExitStack() as patches:
        for module in (join_task, window_task, portions, memory_of_tasks):
            patches.enter_context(patch.object(module, "room_bytes", lambda: 200))
        patches.enter_context(patch.object(window_task, "ROWS_AT_ONCE", 4))
        yield


@contextmanager
def small_steps() -> Iterator[None]:
    """Merges with few pieces and chunks of few pairs: a short story then goes through all of it."""
    with (
        patch.object(merging, "TIER", 2),
        patch.object(merging, "CLOSED_MIN", 2),
        patch.object(pair_finder, "PAIRS_PER_CHUNK", 3),
        patch.object(join_task, "PAIRS_PER_CHUNK", 3),
        patch.object(predicates, "CANDIDATES_PER_CALL", 3),
    ):
        yield


class PlainEngine:
    """Runs joins batch by batch; see the module docstring."""

    def __init__(
        self,
        joins: Sequence[PlainJoin],
        lateness: Mapping[str, int],
        *,
        partitions: int = 4,
        instances: int = 2,
        first: Sequence[Assignment] | None = None,
        balance: BalanceSettings | None = None,
        idle_timeout: Mapping[str, int | None] | None = None,
        others: Mapping[str, OperatorTraits] | None = None,
        rule: LateRule = "own",
    ):
        self.joins, self.partitions = list(joins), partitions
        idle = idle_timeout or {}
        self.settings = {name: ClockSettings(late, idle.get(name)) for name, late in lateness.items()}
        #: Joins, and what a subclass runs besides.
        operators = {**{join.name: join.operator() for join in joins}, **(others or {})}
        # All streams meet somewhere, unless each is judged by itself.
        group = () if rule == "own" else tuple(lateness)
        self.operators = {name: replace(one, rule=rule, group=group) for name, one in operators.items()}
        #: By batch with rows: below which times rows of each side of each operator were late.
        self.edges: list[Mapping[str, tuple[int, int]]] = []
        self.store = MemoryStore(f"plain-{uuid.uuid4().hex}")
        names = list(self.operators)
        wanted = first or [Assignment(instances, first_table(partitions, instances))]
        routing = dict.fromkeys(names, first_routing(wanted))
        self.manifest = planning.first_manifest({}, list(lateness), routing, 0)
        #: Who moves what by itself; None: only `assign` does. May change between two runs.
        self.balance: BalanceSettings | None = balance
        #: The plan of the last batch.
        self.plan: Plan | None = None
        self._routing: dict[str, Routing] = {}
        self._cuts: dict[str, tuple[Cut, ...]] = {}
        #: Everything that each join has emitted so far, and what its tasks have reported.
        self.emitted: dict[str, Counter[Joined]] = {name: Counter() for name in names}
        self.reports: list[TaskReport] = []
        self._layouts = {join.name: join.layout(partitions, lateness) for join in joins}

    def reroute(self, name: str, instances: int, table: Sequence[int]) -> None:
        """From the next batch on, partitions of a join belong to other instances."""
        self.assign(name, Assignment(instances, tuple(table)))

    def assign(self, name: str, *wanted: Assignment) -> None:
        """From the next batch on, a join lies as is wanted: both sides together, or each by its own."""
        changed, cuts = rerouted(self.manifest.routing[name], wanted, name, self.manifest.pieces)
        self._routing[name], self._cuts[name] = changed, cuts

    def run(
        self,
        rows: Mapping[str, Sequence[Any]],
        *,
        now_us: int = 0,
        flush: bool = False,
        settle_after: bool = False,
        attempts: int = 1,
        skipping: Mapping[str, Skipping] | None = None,
        repair_bytes: int | None = None,
        repairs: Mapping[str, tuple[DebtRepair, ...]] | None = None,
        repair_all: bool = False,
    ) -> None:
        """One batch, from plan to manifest; `settle_after`: and a commit that settles, if it has to."""
        self._commit(
            PlanDecisions(
                flush=flush,
                shed=ShedPlan(skipping=skipping or {}),
                repair=RepairPlan(bytes_max=repair_bytes, repairs=repairs or {}, repair_all=repair_all),
                spark_batch=SparkBatch(self.manifest.spark_batch.number + 1),
            ),
            rows,
            now_us,
            attempts,
        )
        if settle_after and planning.releases(self.manifest, self.operators):
            settling = PlanDecisions(spark_batch=None, repair=RepairPlan(bytes_max=repair_bytes))
            self._commit(settling, {}, now_us, attempts)

    def _commit(
        self, decided: PlanDecisions, rows: Mapping[str, Sequence[Any]], now_us: int, attempts: int
    ) -> None:
        wanted: dict[str, Any] = {}
        if self.balance is not None:
            loads = balancing.measured(self.balance, (), self.manifest)
            self._routing, self._cuts, wanted = balancing.reroute(self.balance, self.manifest, None, loads)
        routing = {**self.manifest.routing, **self._routing}
        decided = replace(decided, routing=routing, cuts=self._cuts, balance=wanted)
        batch = self.manifest.batch + 1
        plan = planning.next_plan(batch, self.manifest, self.operators, now_us, decided)
        self._routing, self._cuts = {}, {}
        # As a replay would read it.
        plan = self.plan = decode(Plan, encode_exactly(plan))
        if not plan.settles:
            self.edges.append(plan.late.inputs)
        tried = [self._attempt(plan, rows) for _ in range(attempts)]
        emitted, reports, after = tried[-1]
        for other, _, _ in tried:
            assert other == emitted, "a batch that runs again under its plan emits other rows"
        for name, joined in emitted.items():
            self.emitted[name] += joined
        self.reports += reports
        self.manifest = after
        if self.balance is not None:
            loads = balancing.measured(self.balance, reports, after)
            learnt = balancing.learn(self.balance, plan, loads, after)
            self.manifest = replace(after, control={**after.control, balancing.CONTROL: learnt})
        self._sweep()

    def close(self) -> None:
        """Forget the state: examples by the thousand share one process."""
        memory._DISK.pop(self.store.name, None)
        for place in [place for place in worker_cache._caches if place[0] == self.store.url]:
            del worker_cache._caches[place]

    def _attempt(
        self, plan: Plan, rows: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Counter[Joined]], list[TaskReport], Manifest]:
        emitted: dict[str, Counter[Joined]] = {name: Counter() for name in self.operators}
        reports = self._pass(plan, self.manifest, rows, emitted)
        after = self._after(self.manifest, plan, reports)
        for _ in self.operators if plan.settles else ():
            again = planning.settle_plan(plan, after, self.operators)
            if again is None:
                break
            more = self._pass(again, after, {}, emitted)
            after = self._after(after, again, more)
            reports += more
        if plan.repair.repair_all and after.debts:
            paying = planning.repair_plan(plan, after, repair.everything(after.debts))
            more = self._pass(paying, after, {}, emitted)
            after = self._after(after, paying, more)
            reports += more
        return emitted, reports, after

    def _pass(
        self,
        plan: Plan,
        before: Manifest,
        rows: Mapping[str, Sequence[Any]],
        emitted: dict[str, Counter[Joined]],
    ) -> list[TaskReport]:
        reports: list[TaskReport] = []
        results: dict[str, list[pa.RecordBatch]] = {}
        for join in self.joins:
            received = [self._input(join, side, rows, results) for side in (0, 1)]
            table = pa.Table.from_batches(received)
            results[join.name] = []
            for instance, mine in self._routed(join, table, plan.routing[join.name]):
                for batch in self._task(join, plan, before, instance, mine):
                    texts = batch.column(REPORT)
                    if texts.null_count < len(texts):
                        reports += reports_in(texts.drop_null().to_pylist())[0]
                        continue
                    results[join.name].append(batch)
                    columns = [column.to_pylist() for column in batch.columns[:-1]]
                    emitted[join.name].update(zip(*columns, strict=True))
        return reports

    def _input(
        self,
        join: PlainJoin,
        side: int,
        rows: Mapping[str, Sequence[Any]],
        results: Mapping[str, list[pa.RecordBatch]],
    ) -> pa.RecordBatch:
        name = (join.left, join.right)[side]
        if name in self.operators:
            batches = [batch.to_pydict() for batch in results[name]]
            columns = (join.left_columns, join.right_columns)[side]
            gathered = {c: [v for b in batches for v in b[c]] for c in ("k", *columns)}
            return join.rows(side, gathered, [t for b in batches for t in b[TIME]])
        given = rows.get(name, ())
        cells: dict[str, list[Cell]] = {
            "k": [row[1] for row in given],
            f"{name}_n": [row[2] for row in given],
            f"{name}_v": [row[3] for row in given],
        }
        return join.rows(side, cells, [row[0] for row in given])

    def _routed(
        self, join: PlainJoin, table: pa.Table, routing: Routing
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        codes = table.column(CODE).to_numpy().view(np.uint64)
        if not join.spread:
            table, targets = self._copied(join, table, codes, routing)
        for instance in range(routing.instances):
            mine = table if join.spread else table.filter(pa.array(targets == instance))
            # Small batches: a task must not depend on how its rows were cut on the way.
            yield instance, mine.to_batches(max_chunksize=3)

    def _copied(
        self, join: PlainJoin, table: pa.Table, codes: NDArray[np.uint64], routing: Routing
    ) -> tuple[pa.Table, NDArray[np.int64]]:
        """A row per instance that needs it, with its role and identity, and the instance of each."""
        lots = np.array([_identity(row) for row in table.to_pylist()], np.int64)
        tags = table.column(TAG).to_numpy()
        parts = []
        for side in (0, 1):
            for keyless in (False, True):
                rows = np.flatnonzero(tags == 2 * side + keyless)
                made = copies(
                    codes[rows],
                    lots[rows],
                    side,
                    routing,
                    self.partitions,
                    keyless=keyless,
                    semi=join.how == "left_semi",
                )
                parts.append((rows[made.rows], made.instances, made.roles))
        rows, instances, roles = (np.concatenate(column) for column in zip(*parts, strict=True))
        copied = table.take(pa.array(rows)).append_column(ROLE, pa.array(roles, pa.int8()))
        if any(self._layouts[join.name].tracked) and routing.scattered:
            copied = copied.append_column(ROW, pa.array(lots[rows], pa.int64()))
        return copied, instances

    def _task(
        self, join: PlainJoin, plan: Plan, before: Manifest, instance: int, rows: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        layout = self._layouts[join.name]
        order = state_order(join.name, plan, before, self.store.url)
        order = self._sent(join.name, replace(order, everywhere=read_everywhere(layout, plan)))
        work = join_work(layout, plan, before, order)
        work = for_instance(replace(work, watch_keys=self.balance is not None), instance)
        if join.where is None:
            yield from JoinInstance(work, instance, uuid.uuid4().hex[:12]).run(iter(rows))
            return
        pair_finder = replace(work, layout=join.candidates(layout))
        *found, last = JoinInstance(pair_finder, instance, uuid.uuid4().hex[:12]).run(iter(rows))
        settling = SettleInstance(work, instance, uuid.uuid4().hex[:12])
        pairs = (_judged(join, batch) for batch in found)
        yield from settling.run(pairs, lambda: str(last.column(REPORT)[0].as_py()))

    def _sent(self, name: str, order: StateOrder) -> StateOrder:
        """The order as a task gets it: with all pieces in it, and in every other batch in a file."""
        if order.batch % 2:
            return order
        return order.in_file(self.store, f"segments/{name}/{uuid.uuid4().hex}.pieces")

    def _after(self, before: Manifest, plan: Plan, reports: Sequence[TaskReport]) -> Manifest:
        newest = newest_seen(reports, self.operators)
        return manifest_after(before, plan, reports, newest, self.settings, self.operators)

    def _sweep(self) -> None:
        named = {piece.data.file for piece in self.manifest.pieces}
        named |= {blob.file for piece in self.manifest.pieces for blob in piece.matched.values()}
        for path in self.store.list():
            if path not in named:
                self.store.delete(path)


def _identity(row: Mapping[str, object]) -> int:
    """A hash of all columns of a row."""
    text = repr([row[name] for name in sorted(row) if name != TAG])
    return xxhash.xxh64_intdigest(text.encode()) >> 1


def _judged(join: PlainJoin, batch: pa.RecordBatch) -> pa.RecordBatch:
    """What Catalyst does between the two steps: a verdict for each candidate pair."""
    verdicts = [join.where is not None and join.where(row) for row in batch.to_pylist()]
    return batch.append_column(OK, pa.array(verdicts, pa.bool_()))
