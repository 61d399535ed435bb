"""What a plan asks of the tasks of every operator: one value each, which travels to the workers."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import Broadcast

from tidegate.control.actuators.sampling import left_out
from tidegate.driver.compile.compiled import Compiled, CompiledJoin, CompiledMatch, CompiledWindow
from tidegate.driver.compile.lineage import feeding
from tidegate.driver.frames.drop_frames import Passing
from tidegate.driver.io.staging import Staging
from tidegate.driver.operators.join import join_batch
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.times import BEGINNING_US, END_US
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.index.query_index import QueryIndex
from tidegate.window.estimate.strata import NOTHING_LEFT_OUT
from tidegate.worker.join.work import JoinBatch
from tidegate.worker.match.task import MatchBatch, Queries
from tidegate.worker.window.work import WindowBatch


class Tasks:
    """What stays the same for the life of a run, and makes a batch's work out of a plan."""

    def __init__(self, compiled: Compiled, store_url: str, staging: Staging):
        self._compiled, self._store_url, self._staging = compiled, store_url, staging
        #: Tells this run from an earlier one on the same checkpoint, for workers that outlive both.
        self._run = uuid.uuid4().hex[:12]
        # Once for the life of the query: workers keep what was broadcast to them.
        self._queries = {match.layout.operator: self._sent(match) for match in compiled.matches}

    def works(
        self, plan: Plan, before: Manifest, passing: Passing, watch_keys: bool
    ) -> dict[str, JoinBatch | MatchBatch | WindowBatch]:
        """By operator: what its tasks have to do under this plan."""
        compiled = self._compiled
        return {
            **{
                join.layout.operator: self._joining(join, plan, before, passing, watch_keys)
                for join in compiled.joins
            },
            **{match.layout.operator: self._matching(match, plan) for match in compiled.matches},
            **{
                window.layout.operator: self._closing(window, plan, before, passing)
                for window in compiled.windows
            },
        }

    def close(self) -> None:
        """Give back what was broadcast; no batch may follow."""
        for sent in self._queries.values():
            # Where Spark itself has been stopped there is nothing left to give back.
            with suppress(Py4JError):
                sent.destroy()

    def _closing(self, window: CompiledWindow, plan: Plan, before: Manifest, passing: Passing) -> WindowBatch:
        name, stream = window.layout.operator, window.layout.stream
        late_before_us = BEGINNING_US if stream is None else plan.watermarks_us[stream]
        sampling = plan.estimating.get(name)
        return WindowBatch(
            layout=window.layout,
            store_url=self._store_url,
            batch=plan.batch,
            settle_us=plan.settle_us[name],
            settled_us=before.settled_us[name],
            routing=plan.routing[name],
            pieces=tuple(piece for piece in before.pieces if piece.operator == name),
            merges=tuple(plan.merges.get(name, {}).items()),
            cuts=plan.cuts.get(name, ()),
            flush=plan.flush,
            late_before_us=late_before_us,
            newest_us=self._newest_us(stream, plan),
            by_row=name in plan.by_row,
            gaps=passing.into(feeding(self._compiled, window.node.parent), name, late_before_us),
            kept=passing.out_of(name),
            shares=None if sampling is None else tuple(sampling["shares"]),
            seed=plan.seed,
            left_out=NOTHING_LEFT_OUT if sampling is None else left_out(sampling),
            run=self._run,
            **self._staged(name),
        )

    def _joining(
        self, join: CompiledJoin, plan: Plan, before: Manifest, passing: Passing, watch_keys: bool
    ) -> JoinBatch:
        left, right = (self._newest_us(side.stream, plan) for side in join.layout.sides)
        parents = [feeding(self._compiled, side.node) for side in join.inputs]
        first, second = (passing.along(parent, join.layout.operator) for parent in parents)
        return replace(
            join_batch(join.layout, plan, before, self._store_url),
            newest_us=(left, right),
            run=self._run,
            **self._staged(join.layout.operator),
            watch_keys=watch_keys,
            needed=(first, second),
        )

    def _matching(self, match: CompiledMatch, plan: Plan) -> MatchBatch:
        name, stream = match.layout.operator, match.layout.stream
        planned = plan.sifters.get(name)
        sifter = None if planned is None else Sifter.from_json(planned)
        # A replay with other queries, over other columns: the sifter of the first try knows nothing of them.
        fits = sifter is not None and sifter.axes == match.layout.axes
        return MatchBatch(
            match.layout,
            self._queries[name],
            plan.batch,
            late_before_us=BEGINNING_US if stream is None else plan.watermarks_us[stream],
            newest_us=self._newest_us(stream, plan),
            sifter=sifter if fits else None,
            seed=plan.seed,
            **self._staged(name),
        )

    def _staged(self, operator: str) -> dict[str, Any]:
        """Where its tasks write their results, if they do."""
        if operator not in self._staging.kept_as:
            return {}
        return {"stage_root": self._staging.root, "kept_as": self._staging.kept_as[operator]}

    def _newest_us(self, stream: str | None, plan: Plan) -> int:
        return END_US if stream is None else self._compiled.newest_us(stream, plan.now_us)

    def _sent(self, match: CompiledMatch) -> Broadcast[Queries]:
        queries = Queries(QueryIndex.of(match.queries.boxes), pa.array(match.queries.names, pa.string()))
        return self._compiled.spark.sparkContext.broadcast(queries)
