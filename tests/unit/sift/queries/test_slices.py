from __future__ import annotations

from tidegate.sift.queries.axes import END, FIRST, NULL
from tidegate.sift.queries.slices import Set, Sliced, boxes_in, combined, count, from_edges, merged


def below(axis: int, edge: int) -> Set:
    return from_edges(axis, [FIRST, edge])


def above(axis: int, edge: int) -> Set:
    return from_edges(axis, [edge, END])


def test_edges_that_leave_nothing_out_or_nothing_in_are_no_slices() -> None:
    assert from_edges(0, [FIRST, END]) is True
    assert from_edges(0, []) is False


def test_two_slices_that_have_become_the_same_are_one() -> None:
    assert combined(below(0, 4), above(0, 4), union=True) is True
    assert combined(below(0, 4), above(0, 4), union=False) is False
    assert combined(below(0, 4), from_edges(0, [4, NULL]), union=True) == below(0, NULL)


def test_a_set_has_one_form_whatever_the_order_of_its_parts() -> None:
    assert combined(below(1, 5), below(0, 4), union=True) == Sliced(0, ((4, True), (END, below(1, 5))))
    assert combined(below(0, 4), below(1, 5), union=True) == Sliced(0, ((4, True), (END, below(1, 5))))


def test_boxes_of_a_union_do_not_overlap() -> None:
    found = combined(below(0, 4), below(1, 5), union=True)
    assert count(found) == 2
    assert boxes_in(found) == [{0: (FIRST, 4)}, {0: (4, END), 1: (FIRST, 5)}]


def test_what_neighbouring_slices_share_is_put_together_again() -> None:
    left = combined(below(0, 4), below(1, 5), union=False)
    right = combined(above(0, 4), from_edges(1, [FIRST, 5, 9, END]), union=False)
    found = combined(left, right, union=True)
    assert count(found) == 3
    assert boxes_in(found) == [{1: (FIRST, 5)}, {0: (4, END), 1: (9, END)}]


def test_merging_goes_on_until_no_neighbours_are_left() -> None:
    # The left half is in two pieces along axis 1: only as one piece it fits the right half along axis 0.
    left, right = [{0: (0, 1), 1: (0, 1)}, {0: (0, 1), 1: (1, 2)}], {0: (1, 2), 1: (0, 2)}
    assert merged([*left, right]) == [{0: (0, 2), 1: (0, 2)}]
