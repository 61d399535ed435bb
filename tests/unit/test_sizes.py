from __future__ import annotations

import pytest

from tidegate.errors import FlowError
from tidegate.quantities import size_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("1 GB", 10**9), ("1.5MiB", 3 << 19), (" 512 kb ", 512_000), ("2 TiB", 1 << 41)],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert size_bytes(text, "limit") == size


def test_nothing_is_no_size() -> None:
    with pytest.raises(FlowError, match=r"SIZE_ZERO.*limit"):
        size_bytes("0 B", "limit")


@pytest.mark.parametrize("text", ["", "1", "GB", "-1 GB", "1 parsec", "1 GB 2 MB", None])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(FlowError, match=r"SIZE_INVALID.*limit is not a size"):
        size_bytes(text, "limit")
