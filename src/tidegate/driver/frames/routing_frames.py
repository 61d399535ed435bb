"""Sends every row to the instances that need it: `route/targets.py` in SQL, and one shuffle.

Expressions are rebuilt in every batch, so they are text (one call into Java instead of one per step). Tables
are JSON literals: one node to analyse whatever their size, and data to the compiled code. If rows are needed
at several instances, an `explode` makes copies. Each copy carries what its instance does with it (ROLE) and,
if copies must be recognised later, the identity of the row (ROW).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.driver.compile.keys import quoted
from tidegate.driver.sql_text import distinguished, literal
from tidegate.model.routing import Routing
from tidegate.model.times import LEFT, RIGHT
from tidegate.route.targets import STORE, Tables, TargetGroup
from tidegate.worker.join.work import JoinWork
from tidegate.worker.runtime.layout import CODE, INSTANCE, MARKER, ROLE, ROW, TAG, JoinLayout

#: A row's place among left rows and among right rows, where it is stored, one target with its role.
_PLACES, _STORE, _TARGET = ("_tidegate_place_l", "_tidegate_place_r"), "_tidegate_store", "_tidegate_target"
#: A target is an instance and a role in one number: instance * 8 + role.
_SHIFT = 3


def routed(rows: DataFrame, work: JoinWork, one_task: bool = False) -> DataFrame:
    """The rows at the instances that need them; `one_task`: see `at_instances`."""
    layout, routing = work.layout, work.state.routing
    if layout.spread:
        every = f"sequence(0, {routing.instances - 1})"
        copies = F.expr(f"explode(if({TAG} = {MARKER}, array(cast({CODE} as int)), {every}))")
        return _shuffled(rows.select("*", copies.alias(INSTANCE)), routing, one_task)
    if not routing.scattered:
        return at_instances(rows, instance_of(routing, layout.partitions), routing, one_task)
    return _shuffled(_copied(rows, layout, routing), routing, one_task)


def at_instances(rows: DataFrame, instance: Column, routing: Routing, one_task: bool) -> DataFrame:
    """Each row at this instance.

    `one_task`: they stay together, and INSTANCE says where each belongs (`task_runner.in_one_task`).
    """
    if one_task:
        return rows.coalesce(1).withColumn(INSTANCE, instance)
    return rows.repartitionById(routing.instances, instance)


def instance_of(routing: Routing, partitions: int) -> Column:
    """The one instance that needs a row, if no key or partition is on several."""
    tables = Tables.of(routing, LEFT, partitions)
    owners = literal([one[0] for one in tables.stores], "array<int>")
    place = _place(tables.codes, partitions)
    return F.expr(f"if({TAG} = {MARKER}, cast({CODE} as int), get({owners}, {place}))")


def _shuffled(copied: DataFrame, routing: Routing, one_task: bool) -> DataFrame:
    if one_task:
        return copied.coalesce(1)
    return copied.repartitionById(routing.instances, F.col(INSTANCE)).drop(INSTANCE)


def _copied(rows: DataFrame, layout: JoinLayout, routing: Routing) -> DataFrame:
    """A copy of each row per instance that needs it, with its role there."""
    fields = rows.schema.fields
    semi = layout.how == "left_semi"
    tables = [Tables.of(routing, side, layout.partitions, semi=semi) for side in (LEFT, RIGHT)]
    known = [(quoted(field.name), field.dataType) for field in fields if field.name != TAG]
    identity = f"xxhash64({distinguished(known)}) AS {ROW}"
    places = [
        f"{_place(table.codes, layout.partitions)} AS {name}"
        for table, name in zip(tables, _PLACES, strict=True)
    ]
    apart = routing.apart is not None
    found = rows.selectExpr("*", identity, *(places if apart else places[:1]))
    is_right = f"{TAG} IN ({layout.right.tag}, {layout.right.tag + 1})"
    stores = [_by_lot(_instances(one), _own_place(side, apart)) for side, one in enumerate(tables)]
    aimed = found.selectExpr("*", f"{_either(is_right, stores)} AS {_STORE}")
    targets = [_targets(table, side, apart) for side, table in enumerate(tables)]
    marked = f"if({TAG} = {MARKER}, array(cast({CODE} as int) * {1 << _SHIFT}), {_either(is_right, targets)})"
    exploded = aimed.selectExpr("*", f"explode({marked}) AS {_TARGET}")
    role = f"({_TARGET} & 7) | if(shiftright({_TARGET}, {_SHIFT}) = {_STORE}, {STORE}, 0)"
    kept = [quoted(field.name) for field in fields] + ([ROW] if any(layout.tracked) else [])
    return exploded.selectExpr(
        *kept, f"cast({role} as tinyint) AS {ROLE}", f"shiftright({_TARGET}, {_SHIFT}) AS {INSTANCE}"
    )


def _targets(tables: Tables, side: int, apart: bool) -> str:
    """The targets of a row of one side with their roles; the role of storing is added later."""
    own = _by_lot(_groups(tables.own), _own_place(side, apart))
    return f"concat({own}, {_by_lot(_groups(tables.other), _PLACES[1 - side])})" if apart else own


def _own_place(side: int, apart: bool) -> str:
    """With both sides together, both have the places of the left side."""
    return _PLACES[side if apart else LEFT]


def _instances(tables: Tables) -> str:
    return literal([list(some) for some in tables.stores], "array<array<int>>")


def _groups(places: Iterable[Sequence[TargetGroup]]) -> str:
    """The groups of targets per place."""
    lists = [
        [[(one << _SHIFT) + group.role for one in group.instances] for group in groups] for groups in places
    ]
    return literal(lists, "array<array<array<int>>>")


def _by_lot(lists: str, place: str) -> str:
    """One entry of a row's place, chosen by a hash."""
    choices = f"get({lists}, {place})"
    return f"get({choices}, cast(pmod({ROW}, size({choices})) as int))"


def _either(is_right: str, sides: Sequence[str]) -> str:
    """The side's expression, also if both are equal: other tables must not change the compiled code."""
    return f"if({is_right}, {sides[RIGHT]}, {sides[LEFT]})"


def _place(placed: Sequence[int], partitions: int) -> str:
    """The number of a row's place: its partition as in `route/hash_routing.py`, or its key's own place."""
    base = f"cast(shiftright(shiftrightunsigned({CODE}, 33) * {partitions}, 31) as int)"
    if not placed:
        return base
    lists: list[list[int]] = [[] for _ in range(partitions)]
    for code in placed:
        lists[((code >> 33) * partitions) >> 31].append(code - (1 << 64) if code >> 63 else code)
    first, count = [], 0
    for codes in lists:
        first.append(partitions + count - 1)
        count += len(codes)
    found = f"array_position(get({literal(lists, 'array<array<bigint>>')}, {base}), {CODE})"
    number = f"get({literal(first, 'array<int>')}, {base}) + cast({found} as int)"
    # A null key never has its own place, whatever its code: such rows have odd tags.
    return f"if({TAG} % 2 = 0 AND {found} > 0, {number}, {base})"
