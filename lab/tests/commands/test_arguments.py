from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from tidegate.cli.arguments import positive_int
from tidegate.cli.main import main
from tidegate_lab.commands.arguments import listed, name_among


def test_a_list_has_commas_and_parts_of_a_kind() -> None:
    assert listed(positive_int)("16,100") == [16, 100]
    with pytest.raises(ArgumentTypeError, match="Got: x"):
        listed(positive_int)("16,x")


@pytest.mark.parametrize("text", ["city", "zipf-0", "zipf-1.5"])
def test_a_name_is_known_or_has_a_number_behind(text: str) -> None:
    assert name_among("zipf-", "city")(text) == text


@pytest.mark.parametrize("text", ["", "town", "city-1", "zipf", "zipf-", "zipf-x", "zipf-1.5.2"])
def test_other_names_are_refused_with_those_that_are_known(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"Got: {text}. Choose among zipf-N, city"):
        name_among("zipf-", "city")(text)


@pytest.mark.parametrize(
    "given",
    [
        "windows --contenders nobody",
        "windows --scenarios ratio-x",
        "windows --scenarios ratio-0.5",
        "windows --scenarios ratio-0",
        "skew --strategies best",
        "skew --workloads town",
        "sift --regions 16,x",
        "sift --queries 0",
        "sift --sift best",
        "overload --contenders nobody",
        "overload --policies best",
    ],
)
def test_benchmarks_refuse_what_they_do_not_know_before_anything_slow(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["bench", *given.split()])
    assert f"Got: {given.rpartition(' ')[2].rpartition(',')[2]}" in capsys.readouterr().err
