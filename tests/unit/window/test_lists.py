from __future__ import annotations

import numpy as np

from tidegate.window.closing import Stretches
from tidegate.window.lists import Lists, concatenate, distinct

#: Four lists: [0, 1, 2], [], [3], [4, 5].
OFFSETS = np.array([0, 3, 3, 4, 6])
ORDER = np.array([3, 1, 0, 2])


def of(lists: Lists) -> list[list[int]]:
    return [
        lists.items[begin:end].tolist()
        for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)
    ]


def stretches(*pairs: tuple[int, int]) -> Stretches:
    begin, end = np.array(pairs, np.int64).reshape(-1, 2).T
    return Stretches(np.arange(len(pairs)), begin.copy(), end.copy())


def test_the_list_of_a_window_has_the_items_of_its_rows_in_merged_order() -> None:
    found = concatenate(OFFSETS, ORDER, stretches((0, 3), (1, 2), (2, 4)))
    assert of(found) == [[4, 5, 0, 1, 2], [], [0, 1, 2, 3]]


def test_without_windows_there_are_no_lists() -> None:
    assert of(concatenate(OFFSETS, ORDER, stretches())) == []


def test_a_set_keeps_the_first_of_equal_items_in_each_list() -> None:
    numbers = np.array([7, 8, 7, 8, 7, 9])
    found = distinct(concatenate(OFFSETS, ORDER, stretches((0, 3), (1, 2), (2, 4))), numbers)
    assert of(found) == [[4, 5, 1], [], [0, 1]]


def test_no_items_make_no_set() -> None:
    nothing = np.zeros(0, np.int64)
    assert of(distinct(Lists(np.zeros(3, np.int64), nothing), nothing)) == [[], []]
