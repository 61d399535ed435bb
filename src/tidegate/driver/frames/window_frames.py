"""Turns rows into pane partials by partial aggregation in Spark, so that overlapping windows cost no more.

With about as many groups as rows, partial aggregation is left to the tasks. Columns that tasks can compute
are not shuffled (`worker/window/received.py`). Rows of windows of rows are never aggregated: each carries its
time and a hash of the row, which give its position.

Rows that no kept window needs are dropped and counted in front of the user's steps. Late rows, rows without a
usable time and rows that sampling left out are aggregated in separate groups without a key, so the same pass
counts them and no window contains them. TAG holds the outcome of a row. Without partial aggregation, rows
that were left out do not reach the shuffle: Spark counts them, and finds their newest time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.driver.compile.join_columns import visible
from tidegate.driver.compile.keys import quoted
from tidegate.driver.frames.drop_frames import in_gap
from tidegate.driver.frames.frame_cache import FrameCache, Selection
from tidegate.driver.frames.routing_frames import at_instances, instance_of
from tidegate.driver.frames.sample_frames import left_out_sql, share_sql
from tidegate.driver.frames.stream_rows import FrontDrop
from tidegate.driver.sql_text import data, distinguished
from tidegate.model.times import BEGINNING_US
from tidegate.window.panes import Panes
from tidegate.window.spec import WindowSpec
from tidegate.worker.runtime.layout import (
    CHECK,
    CODE,
    MARKER,
    PANE,
    ROW,
    ROWS,
    SEEN,
    SHARE,
    TAG,
    TIME,
    WEIGHT,
)
from tidegate.worker.window.work import DROPPED, LATE, ON_TIME, REJECTED, WindowWork

if TYPE_CHECKING:
    from tidegate.driver.frames.pass_input import PassInput
    from tidegate.driver.operators.window import WindowOperator

#: Distinguishes the second code of a group from the first.
_SALT = 977


def entering(window: WindowOperator, work: WindowWork, rows: PassInput) -> DataFrame | None:
    """The judged rows, without those that no kept window needs; None in a pass without any.

    Rows that are to be aggregated lie so that each partition aggregates its own: tasks combine what several
    partitions have of a group, so that no shuffle is needed for it.
    """
    front = dropped_in_front(window, work)

    def judge(frame: DataFrame) -> DataFrame:
        return _judged(frame, window, work, rows.cache)

    if window.tap is None:
        taken = rows.upstream(window.node.parent, front=front)
    elif _single(work) or work.layout.makes_states or rows.one_task:
        taken = rows.port(window.tap.entry, () if front is None else (front,))
    else:
        return rows.grouped(window.tap.entry, () if front is None else (front,), judge)
    return None if taken is None else judge(taken)


def partials(judged: DataFrame, window: WindowOperator, work: WindowWork, rows: PassInput) -> DataFrame:
    """The partials of judged rows at their instances, with a marker for every instance."""
    single = _single(work)
    # In one partition, Spark aggregates without a shuffle.
    judged = judged.coalesce(1) if rows.one_task else judged
    made = (_of_rows if single else _added_up)(judged, window, work, rows.cache)
    return routed_partials(made, window, work, rows, "rows" if single else "panes")


def routed_partials(
    made: DataFrame, window: WindowOperator, work: WindowWork, rows: PassInput, kind: str
) -> DataFrame:
    """Partials (or rows) at their instances; `kind` distinguishes those with other columns."""
    shape, cache = (work.layout.operator, kind), rows.cache
    placed = cache.get(("codes", *shape), lambda: Selection(["*", *_codes(made, window)])).of(made)
    instances = work.state.routing.instances
    if not rows.one_task or window.tap is None or not rows.reads(window.tap.entry):
        placed = placed.unionByName(
            cache.get(("markers", *shape, instances), lambda: _markers(placed, instances))
        )
    return _at_instances(placed, work, rows)


def only_markers(window: WindowOperator, work: WindowWork, rows: PassInput) -> DataFrame:
    """The input of a pass without rows, which only closes windows."""
    kinds = {TAG: T.ShortType(), CODE: T.LongType(), ROWS: T.LongType(), CHECK: T.LongType()}
    instances = work.state.routing.instances

    def made() -> DataFrame:
        empty = rows.spark.createDataFrame([], T.StructType([T.StructField(*one) for one in kinds.items()]))
        return _markers(empty, instances)

    shape = ("only markers", work.layout.operator, instances)
    return _at_instances(rows.cache.get(shape, made), work, rows)


def _at_instances(placed: DataFrame, work: WindowWork, rows: PassInput) -> DataFrame:
    routing = work.state.routing
    return at_instances(placed, instance_of(routing, work.layout.partitions), routing, rows.one_task)


def dropped_in_front(window: WindowOperator, work: WindowWork) -> FrontDrop | None:
    """Rows that no kept window needs; None: there are none.

    They are dropped before the user's steps, unless these make the columns by which groups are told apart.
    """
    if work.gaps is None or not any(work.gaps.cells):
        return None
    usable = f"{TIME} != {BEGINNING_US}L AND {TIME} <= {data(work.newest_us, 'bigint')}"
    on_time = f"{usable} AND {TIME} >= {data(work.late_before_us, 'bigint')}"
    dropped = f"({on_time} AND {in_gap(work.gaps, group=window.group_code)})"
    behind = work.gaps.by_cohort and not window.groups_pass
    return FrontDrop(_front_count(work), dropped, f"({usable})", behind=behind)


def drop_counts(window: WindowOperator, work: WindowWork) -> list[str]:
    """The names under which Spark counts rows of a window aggregate that reach no task."""
    in_front = [] if dropped_in_front(window, work) is None else [_front_count(work)]
    return [*in_front, *([_sampling_count(work)] if _drops_sampled(work) else [])]


def _front_count(work: WindowWork) -> str:
    return f"dropped in front of {work.layout.operator}"


def _sampling_count(work: WindowWork) -> str:
    return f"not sampled by {work.layout.operator}"


def _drops_sampled(work: WindowWork) -> bool:
    """Whether rows that sampling leaves out are dropped here, because nothing aggregates them."""
    return _single(work) and work.shares is not None


def _of_rows(judged: DataFrame, window: WindowOperator, work: WindowWork, cache: FrameCache) -> DataFrame:
    """Rows without partial aggregation, which does not pay with as many groups as rows."""

    def made() -> Selection:
        taken = window.taken
        place = [ROW] if work.layout.spec.counts_rows else []
        sent = [(name, text) for name, text in taken.of_rows if taken.carried[name] == name]
        columns = [F.expr(text).cast(taken.types[name]).alias(name) for name, text in sent]
        return Selection([TAG, *place, *map(quoted, work.layout.by), *columns, F.col(TIME).alias(SEEN)])

    return cache.get(("of rows", work.layout.operator), made).of(judged)


def _added_up(judged: DataFrame, window: WindowOperator, work: WindowWork, cache: FrameCache) -> DataFrame:
    """A partial per group and pane."""

    def made() -> list[Column]:
        # The type of single rows: nullability may differ, and stored partials have one type.
        kinds = window.taken.types
        sums = [F.expr(text).cast(kinds[name]).alias(name) for name, text in window.taken.partials]
        return [*sums, F.count(F.lit(1)).alias(ROWS), F.max(TIME).alias(SEEN)]

    name = work.layout.operator
    # All rows of a group have the same weight, so grouping by it splits no group.
    weight = [] if work.shares is None else [WEIGHT]
    named = [TAG, PANE, *map(quoted, work.layout.by), *weight]
    keys = cache.get(("keys", name), lambda: [F.col(one) for one in named])
    sums = judged.groupBy(*keys).agg(*cache.get(("added up", name), made))
    return sums.drop(*weight) if weight else sums


def _judged(rows: DataFrame, window: WindowOperator, work: WindowWork, cache: FrameCache) -> DataFrame:
    """Rows with their outcome, pane or hash, key, and the arguments of all aggregates."""
    fate = (
        f"CASE WHEN {TIME} = {BEGINNING_US}L OR {TIME} > {data(work.newest_us, 'bigint')} THEN {REJECTED} "
        f"WHEN {TIME} < {data(work.late_before_us, 'bigint')} THEN {LATE} "
    )
    if work.shares is not None:
        code = group_code([rows.schema[name] for name in work.layout.by])
        rows = rows.withColumn(SHARE, F.expr(share_sql(work.shares, code)))
        fate += f"WHEN {left_out_sql(rows, work.seed, work.state.batch)} THEN {DROPPED} "
    fate += f"ELSE {ON_TIME} END"
    judged = rows.withColumn(TAG, F.expr(f"cast({fate} as short)"))
    if _drops_sampled(work):
        dropped = FrontDrop(_sampling_count(work), f"{TAG} = {DROPPED}", f"{TAG} != {REJECTED}")
        judged = dropped.of(judged)
    single, weighed = _single(work), work.shares is not None
    shape = ("needed", work.layout.operator, single)
    needed = cache.get(shape, lambda: Selection([TAG, TIME, *_needed(rows, window, single, weighed)]))
    return needed.of(judged)


def _needed(rows: DataFrame, window: WindowOperator, single: bool, weighed: bool) -> list[Column]:
    """Pane or hash, key, weight, and the arguments of all aggregates."""
    used = F.col(TAG) == F.lit(ON_TIME)
    spec = window.layout.spec
    keys = [(name, F.expr(_canonical(rows.schema[name]))) for name in window.layout.by]
    made = [F.expr(row_sql(rows)).alias(ROW)] if spec.counts_rows else []
    if not single and not spec.counts_rows:
        # Rows that no window contains are aggregated together.
        keys = [(name, F.when(used, key)) for name, key in keys]
        made = [F.when(used, F.expr(pane_sql(window.layout.time_spec))).alias(PANE)]
    if weighed:
        made.append(F.when(used, 1 / F.col(SHARE)).alias(WEIGHT))
    named = [*keys, *window.taken.arguments]
    return [*made, *(column.alias(name) for name, column in named)]


def _single(work: WindowWork) -> bool:
    """Whether rows are sent without partial aggregation."""
    return work.by_row or work.layout.spec.counts_rows


def _canonical(field: T.StructField) -> str:
    """-0.0 becomes 0.0, as in Spark's own grouping."""
    column, kind = quoted(field.name), field.dataType
    if not isinstance(kind, (T.FloatType, T.DoubleType)):
        return column
    return f"{column} + CAST(0 AS {kind.simpleString()})"


def _codes(frame: DataFrame, window: WindowOperator) -> list[Column]:
    """The codes of groups, hashed after Spark has grouped equal keys."""
    by = set(window.layout.by)
    keys = [(quoted(field.name), field.dataType) for field in frame.schema.fields if field.name in by]
    check = f"xxhash64({', '.join([f'{_SALT}', *([distinguished(keys)] if keys else [])])})"
    return [F.expr(_code(keys)).alias(CODE), F.expr(check).alias(CHECK)]


def group_code(by: Sequence[T.StructField]) -> str:
    """The code of a row's group, before Spark has grouped equal keys; for types with one form of a value."""
    return _code([(_canonical(field), field.dataType) for field in by])


def _code(keys: Sequence[tuple[str, T.DataType]]) -> str:
    """The code of a group with these keys."""
    return f"xxhash64({distinguished(keys)})" if keys else "0L"


def _markers(like: DataFrame, instances: int) -> DataFrame:
    """One row per instance that gives its task the instance number, also without other rows."""
    numbers = like.sparkSession.range(0, instances, 1, 1)
    known = {TAG: F.lit(MARKER), CODE: F.col("id"), ROWS: F.lit(0), CHECK: F.lit(0)}
    return numbers.select(
        *[
            known.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in like.schema.fields
        ]
    )


def pane_sql(spec: WindowSpec) -> str:
    """`Panes.of` in SQL, in whole numbers."""
    slide, rest = spec.slide_us, Panes(spec).rest_us
    time = f"({TIME} - {spec.offset_us}L)" if spec.offset_us else TIME
    number = f"({time} - pmod({time}, {slide}L)) div {slide}L"
    return f"{number} * 2 + if(pmod({time}, {slide}L) >= {rest}L, 1, 0)" if rest else number


def row_sql(rows: DataFrame) -> str:
    """A hash of all columns of a row; equal rows have equal hashes."""
    columns = [(quoted(field.name), field.dataType) for field in visible(rows)]
    return f"xxhash64({TIME}, {distinguished(columns)})"
