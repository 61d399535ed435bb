from __future__ import annotations

import numpy as np

from tidegate.window.aggregate.closing import Stretches
from tidegate.window.aggregate.lists import Lists, by_number, by_time, concatenate, distinct

#: Four lists: [0, 1], [], [2, 3, 4], [5].
OFFSETS = np.array([0, 2, 2, 5, 6])


def of(lists: Lists) -> list[list[int]]:
    return [
        lists.items[begin:end].tolist()
        for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)
    ]


def stretches(*pairs: tuple[int, int]) -> Stretches:
    begin, end = np.array(pairs, np.int64).reshape(-1, 2).T
    return Stretches(np.arange(len(pairs)), begin.copy(), end.copy())


def test_the_list_of_a_window_has_the_items_of_its_rows_in_merged_order() -> None:
    found = concatenate(OFFSETS, stretches((0, 3), (1, 2), (2, 4)))
    assert of(found) == [[0, 1, 2, 3, 4], [], [2, 3, 4, 5]]


def test_without_windows_there_are_no_lists() -> None:
    assert of(concatenate(OFFSETS, stretches())) == []


def test_a_set_keeps_the_first_of_equal_items_in_each_list() -> None:
    numbers = np.array([7, 9, 7, 8, 7, 9])
    found = distinct(concatenate(OFFSETS, stretches((0, 3), (1, 2), (2, 4))), numbers)
    assert of(found) == [[0, 1, 3], [], [2, 3, 5]]
    assert of(by_number(found, numbers)) == [[0, 3, 1], [], [2, 3, 5]]


def test_no_items_make_no_set() -> None:
    nothing = np.zeros(0, np.int64)
    assert of(distinct(Lists(np.zeros(3, np.int64), nothing), nothing)) == [[], []]


def test_items_are_ordered_by_time_and_tie_within_their_group() -> None:
    group = np.array([0, 0, 0, 1])
    ties = np.array([5, 4, 0, 0, 0, 0])
    assert by_time(OFFSETS, group, np.array([1, 1, 2, 2, 3, 0]), np.zeros(6, np.int64)) is None
    order = by_time(OFFSETS, group, np.array([1, 1, 9, 2, 3, 0]), ties)
    assert order is not None
    assert order.tolist() == [1, 0, 3, 4, 2, 5]
