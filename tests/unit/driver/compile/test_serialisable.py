from __future__ import annotations

from threading import Lock

import pytest

from tidegate.driver.compile.expression_checks import check_serialisable
from tidegate.errors import FlowError


def test_a_function_that_cannot_be_pickled_is_told_with_its_owner() -> None:
    lock = Lock()
    check_serialisable("The pairwise function 'near'", lambda left, right: left == right)
    with pytest.raises(
        FlowError,
        match=r"FUNCTION_NOT_SERIALISABLE.*The pairwise function 'near' cannot be sent to the workers.*lock",
    ):
        check_serialisable("The pairwise function 'near'", lambda left, right: lock.locked())
