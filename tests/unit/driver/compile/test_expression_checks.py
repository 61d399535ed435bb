from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from tidegate.driver.compile.expression_checks import spark_errors_as
from tidegate.errors import FlowError


@pytest.mark.parametrize(
    ("error", "got"),
    [
        (AnalysisException("No `x`. Did you mean [`k`, `_tidegate_time`]? 42703;\n'Filter"), "[`k`]? 42703"),
        (AnalysisException("Did you mean [`_tidegate_time`, `k`]?"), "[`k`]?"),
        (ParseException("\n[PARSE_SYNTAX_ERROR] near end of input.\n\n== SQL =="), "near end of input."),
        (PySparkException(""), "Got: PySparkException."),
    ],
)
def test_the_line_that_matters_is_told_without_columns_of_our_own(error: PySparkException, got: str) -> None:
    with pytest.raises(FlowError) as caught, spark_errors_as("It does not fit", do="Mend it"):
        raise error
    said = str(caught.value)
    assert said.startswith("[EXPRESSION_INVALID] It does not fit. Got: ")
    assert said.endswith(" Mend it.")
    assert got in said
    assert "_tidegate" not in said
    assert "\n" not in said
    assert caught.value.__cause__ is error


def test_other_errors_are_left_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), spark_errors_as("It does not fit"):
        raise ZeroDivisionError
