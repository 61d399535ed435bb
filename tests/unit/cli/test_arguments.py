from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from tidegate.cli.arguments import positive_int, positive_number, whole_number


def test_good_numbers_come_back_as_numbers() -> None:
    assert (positive_int("3"), whole_number("0"), positive_number("2.5")) == (3, 0, 2.5)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", ""])
def test_a_count_must_be_whole_and_at_least_one(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"Got: {text}"):
        positive_int(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x"])
def test_a_rate_must_be_finite_and_above_zero(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"Got: {text}"):
        positive_number(text)
