"""Sends every row to the instances that need it: `route/targets.py` in Spark's language, and one shuffle.

Expressions are built anew for every batch, so they are text (one call into Java instead of one per step),
and tables are array literals: data to Spark's compiled code, not part of it. As long as every row is needed
at one instance only, that is all there is. Where rows have copies, an `explode` makes them, and each says
what its instance does with it (ROLE) and, where copies must be recognised later, who it is (ROW).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidegate.route.targets import MEET, PROBE, STORE, Tables
from tidegate.routing import Routing
from tidegate.spark.join_batch import JoinBatch
from tidegate.spark.layout import CODE, INSTANCE, MARKER, ROLE, ROW, TAG, JoinLayout
from tidegate.values import LEFT, RIGHT

_STORE, _PROBES, _MEETS = "_tidegate_store", "_tidegate_probes", "_tidegate_meets"


def routed(rows: DataFrame, work: JoinBatch) -> DataFrame:
    """The rows at the instances that need them."""
    layout, routing = work.layout, work.routing
    if layout.spread:
        every = f"sequence(0, {routing.instances - 1})"
        copies = F.expr(f"explode(if({TAG} = {MARKER}, array(cast({CODE} as int)), {every}))")
        return _shuffled(rows.select("*", copies.alias(INSTANCE)), routing)
    if not routing.scattered:
        return rows.repartitionById(routing.instances, instance_of(routing, layout.partitions))
    return _shuffled(_copied(rows, layout, routing), routing)


def instance_of(routing: Routing, partitions: int) -> Column:
    """The one instance that needs a row, where no key or partition lies on several."""
    tables = Tables.of(routing, LEFT, partitions)
    owners = _array(one[0] for one in tables.holds)
    return F.expr(f"if({TAG} = {MARKER}, cast({CODE} as int), get({owners}, {_place(tables, partitions)}))")


def _shuffled(copied: DataFrame, routing: Routing) -> DataFrame:
    return copied.repartitionById(routing.instances, F.col(INSTANCE)).drop(INSTANCE)


def _copied(rows: DataFrame, layout: JoinLayout, routing: Routing) -> DataFrame:
    """A row per instance that needs it, with what it is needed for."""
    names = rows.columns
    identity = f"xxhash64({', '.join(_hashable(field) for field in rows.schema.fields if field.name != TAG)})"
    known = rows.selectExpr("*", f"{identity} AS {ROW}")
    semi = layout.how == "left_semi"
    tables = [Tables.of(routing, side, layout.partitions) for side in (LEFT, RIGHT)]
    sides = [_targets(tables, side, layout.partitions, semi, routing.apart is not None) for side in (0, 1)]
    tag = layout.right.tag
    if sides[LEFT] == sides[RIGHT]:
        store, probes, meets = sides[LEFT]
    else:
        is_right = f"{TAG} IN ({tag}, {tag + 1})"
        store, probes, meets = (
            f"if({is_right}, {right}, {left})" for left, right in zip(*sides, strict=True)
        )
    aimed = known.selectExpr("*", f"{store} AS {_STORE}", f"{probes} AS {_PROBES}", f"{meets} AS {_MEETS}")
    everywhere = f"array_distinct(concat(array({_STORE}), {_PROBES}, {_MEETS}))"
    exploded = aimed.selectExpr(
        "*", f"explode(if({TAG} = {MARKER}, array(cast({CODE} as int)), {everywhere})) AS {INSTANCE}"
    )
    role = (
        f"if({INSTANCE} = {_STORE}, {STORE}, 0) | if(array_contains({_PROBES}, {INSTANCE}), {PROBE}, 0)"
        f" | if(array_contains({_MEETS}, {INSTANCE}), {MEET}, 0)"
    )
    kept = [*names, ROW] if any(layout.tracked) else names
    return exploded.selectExpr(
        *[f"`{name}`" for name in kept], f"cast({role} as tinyint) AS {ROLE}", INSTANCE
    )


def _targets(
    tables: Sequence[Tables], side: int, partitions: int, semi: bool, apart: bool
) -> tuple[str, str, str]:
    """Where a row of one side is stored, looks for partners, and meets new ones."""
    mine, other = tables[side], tables[1 - side]
    own = f"get({_nested(mine.stores)}, {_place(mine, partitions)})"
    store = _by_lot(own)
    probes = f"get({_nested(other.holds)}, {_place(other, partitions)})"
    if semi and side == LEFT:
        probes = f"array({_by_lot(probes) if apart else store})"
    meets = "cast(array() as array<int>)"
    if semi and side == RIGHT:
        meets = f"get({_nested(mine.holds)}, {_place(mine, partitions)})"
    return store, probes, meets


def _by_lot(choices: str) -> str:
    return f"get({choices}, cast(pmod({ROW}, size({choices})) as int))"


def _place(tables: Tables, partitions: int) -> str:
    """The number of a row's place: its base partition, as route/hash.py computes it, or its key's own."""
    base = f"cast(shiftright(shiftrightunsigned({CODE}, 33) * {partitions}, 31) as int)"
    if not tables.codes:
        return base
    lists: list[list[int]] = [[] for _ in range(partitions)]
    for code in tables.codes:
        lists[((code >> 33) * partitions) >> 31].append(code)
    first, count = [], 0
    for codes in lists:
        first.append(partitions + count - 1)
        count += len(codes)
    signed = "array(" + ",".join(_longs(codes) for codes in lists) + ")"
    found = f"array_position(get({signed}, {base}), {CODE})"
    # A null key has no place of its own, whatever its code looks like: such rows have odd tags.
    return f"if({TAG} % 2 = 0 AND {found} > 0, get({_array(first)}, {base}) + cast({found} as int), {base})"


def _longs(codes: Iterable[int]) -> str:
    listed = ",".join(f"{code - (1 << 64) if code >> 63 else code}L" for code in codes)
    return f"array({listed})" if listed else "cast(array() as array<bigint>)"


def _array(numbers: Iterable[int]) -> str:
    return f"array({','.join(map(str, numbers))})"


def _nested(lists: Iterable[Sequence[int]]) -> str:
    return f"array({','.join(map(_array, lists))})"


def _hashable(field: T.StructField) -> str:
    """A column as something that Spark can hash: maps, and what contains them, as text."""
    name = f"`{field.name}`"
    return f"to_json(struct({name}))" if _has_map(field.dataType) else name


def _has_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, (T.MapType, T.VariantType))
