"""Sends every row to the instances that need it: `route/targets.py` in Spark's language, and one shuffle.

Expressions are built anew for every batch, so they are text (one call into Java instead of one per step),
and tables are literals that Spark reads from JSON: one node to analyse however large they are, and data to
its compiled code, not part of it. As long as every row is needed at one instance only, that is all there
is. Where rows have copies, an `explode` makes them, and each says what its instance does with it (ROLE)
and, where copies must be recognised later, who it is (ROW).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.route.targets import MEET, PROBE, STORE, Tables
from tidegate.routing import Routing
from tidegate.spark.join_batch import JoinBatch
from tidegate.spark.keys import quoted
from tidegate.spark.layout import CODE, INSTANCE, MARKER, ROLE, ROW, TAG, JoinLayout
from tidegate.spark.sql_text import literal, told_apart
from tidegate.values import LEFT, RIGHT

#: Number of a row's place among left and among right rows; where it is stored; one target of it, with its
#: role.
_PLACES, _STORE, _TARGET = ("_tidegate_place_l", "_tidegate_place_r"), "_tidegate_store", "_tidegate_target"
#: A target is an instance and a role in one number: instance * 8 + role.
_SHIFT = 3


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
    owners = literal([one[0] for one in tables.holds], "array<int>")
    return F.expr(f"if({TAG} = {MARKER}, cast({CODE} as int), get({owners}, {_place(tables, partitions)}))")


def _shuffled(copied: DataFrame, routing: Routing) -> DataFrame:
    return copied.repartitionById(routing.instances, F.col(INSTANCE)).drop(INSTANCE)


def _copied(rows: DataFrame, layout: JoinLayout, routing: Routing) -> DataFrame:
    """A row per instance that needs it, with what it is needed for."""
    fields = rows.schema.fields
    tables = [Tables.of(routing, side, layout.partitions) for side in (LEFT, RIGHT)]
    known = [(quoted(field.name), field.dataType) for field in fields if field.name != TAG]
    identity = f"xxhash64({told_apart(known)}) AS {ROW}"
    places = [
        f"{_place(table, layout.partitions)} AS {name}" for table, name in zip(tables, _PLACES, strict=True)
    ]
    apart = routing.apart is not None
    found = rows.selectExpr("*", identity, *(places if apart else places[:1]))
    is_right = f"{TAG} IN ({layout.right.tag}, {layout.right.tag + 1})"
    stores = [_by_lot(_lists(one.stores, 0), side if apart else LEFT) for side, one in enumerate(tables)]
    aimed = found.selectExpr("*", f"{_either(is_right, stores)} AS {_STORE}")
    targets = [_targets(tables, side, layout.how == "left_semi", apart) for side in (LEFT, RIGHT)]
    marked = f"if({TAG} = {MARKER}, array({_target(CODE, 0)}), {_either(is_right, targets)})"
    exploded = aimed.selectExpr("*", f"explode({marked}) AS {_TARGET}")
    role = f"({_TARGET} & 7) | if(shiftright({_TARGET}, {_SHIFT}) = {_STORE}, {STORE}, 0)"
    kept = [f"`{field.name}`" for field in fields] + ([ROW] if any(layout.tracked) else [])
    return exploded.selectExpr(
        *kept, f"cast({role} as tinyint) AS {ROLE}", f"shiftright({_TARGET}, {_SHIFT}) AS {INSTANCE}"
    )


def _targets(tables: Sequence[Tables], side: int, semi: bool, apart: bool) -> str:
    """Where a row of one side goes, and what for; that it is stored at one of these is added later."""
    if not apart:
        if not semi:
            return _at(_lists(tables[LEFT].holds, PROBE), LEFT)
        if side == RIGHT:
            return _at(_lists(tables[LEFT].holds, PROBE | MEET), LEFT)
        return f"array({_target(_STORE, PROBE)})"
    looks = _lists(tables[1 - side].holds, PROBE)
    own = f"array({_target(_STORE, 0)})"
    if not semi:
        return f"concat({own}, {_at(looks, 1 - side)})"
    if side == RIGHT:
        return f"concat({_at(_lists(tables[RIGHT].holds, MEET), RIGHT)}, {_at(looks, LEFT)})"
    return f"concat({own}, array({_by_lot(looks, RIGHT)}))"


def _target(instance: str, role: int) -> str:
    return f"cast({instance} as int) * {1 << _SHIFT} + {role}"


def _lists(instances: Iterable[Sequence[int]], role: int) -> str:
    """Per place: its instances, as targets where they have a role."""
    shift = _SHIFT if role else 0
    return literal([[(one << shift) + role for one in some] for some in instances], "array<array<int>>")


def _at(lists: str, side: int) -> str:
    return f"get({lists}, {_PLACES[side]})"


def _by_lot(lists: str, side: int) -> str:
    """One of the numbers of a row's place."""
    choices = _at(lists, side)
    return f"get({choices}, cast(pmod({ROW}, size({choices})) as int))"


def _either(is_right: str, sides: Sequence[str]) -> str:
    return sides[LEFT] if sides[LEFT] == sides[RIGHT] else f"if({is_right}, {sides[RIGHT]}, {sides[LEFT]})"


def _place(tables: Tables, partitions: int) -> str:
    """The number of a row's place: its base partition, as route/hash.py computes it, or its key's own."""
    base = f"cast(shiftright(shiftrightunsigned({CODE}, 33) * {partitions}, 31) as int)"
    if not tables.codes:
        return base
    lists: list[list[int]] = [[] for _ in range(partitions)]
    for code in tables.codes:
        lists[((code >> 33) * partitions) >> 31].append(code - (1 << 64) if code >> 63 else code)
    first, count = [], 0
    for codes in lists:
        first.append(partitions + count - 1)
        count += len(codes)
    found = f"array_position(get({literal(lists, 'array<array<bigint>>')}, {base}), {CODE})"
    number = f"get({literal(first, 'array<int>')}, {base}) + cast({found} as int)"
    # A null key has no place of its own, whatever its code looks like: such rows have odd tags.
    return f"if({TAG} % 2 = 0 AND {found} > 0, {number}, {base})"
