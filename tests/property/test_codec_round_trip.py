"""What is written into a checkpoint, or sent by a task, comes back equal and writes the same text again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.codec import decode, encode, encode_exactly, from_plain, to_plain
from tidegate.model.debts import Debt, DebtCell, RepairCell
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport, report_text, reports_in
from tidegate.model.routing import Routing
from tidegate.state.store.sealed import seal, unseal

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**64 - 1),
    float: FLOATS,
    str: st.text(max_size=5),
    bool: st.booleans(),
    type(None): st.none(),
    Any: st.recursive(
        st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=4,
    ),
}


def values(kind: Any, around: tuple[Any, ...] = ()) -> st.SearchStrategy[Any]:
    """Any value that the annotations allow; of a kind that is in itself, one in another.

    `around`: the kinds that this one is in.
    """
    if kind in PLAIN:
        return PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    inner = partial(values, around=around)
    if origin is UnionType:
        return st.one_of([inner(one) for one in arguments if around.count(one) < 2])
    if origin is Mapping:
        return st.dictionaries(*map(inner, arguments), max_size=2)
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(inner(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(inner, arguments))
    assert is_dataclass(kind) or kind in (DebtCell, RepairCell), kind
    hints = get_type_hints(kind).items()
    return st.builds(kind, **{name: values(hint, (*around, kind)) for name, hint in hints})


@pytest.mark.parametrize("kind", [Plan, Manifest, TaskReport, Debt, Routing])
@given(data=st.data())
def test_every_value_comes_back_equal(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(values(kind))
    again = decode(kind, encode(value))
    assert again == value
    assert encode(again) == encode(value)
    assert decode(kind, encode_exactly(value)) == value
    assert from_plain(kind, to_plain(value)) == value
    assert unseal(seal("x", 1, value), "x", 1, "f", kind) == value


@given(values(TaskReport))
def test_every_report_of_a_task_comes_back_equal(report: TaskReport) -> None:
    assert reports_in([report_text(report)]) == ([report], [])


@given(values(Debt))
def test_cells_of_debts_are_named_again(debt: Debt) -> None:
    assert all(isinstance(cell, DebtCell) for cell in decode(Debt, encode(debt)).cells)
