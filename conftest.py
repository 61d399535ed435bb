"""What all tests share: one Spark session, started when the first test asks for it, and how hard to search.

Everything in a folder named `spark` is marked `spark` here, so that `-m "not spark"` never needs Java.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Deterministic, so that a failure on one machine is a failure on all; no deadline, because the first call of
# a numba kernel compiles it.
settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=True)
# Searches for what `ci` has not found yet: new random examples in every run, many of them.
settings.register_profile(
    "soak", max_examples=5_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# The first failure as it came: making it small can take longer than finding it.
settings.register_profile(
    "raw", deadline=None, database=None, phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "spark":
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of the whole run. Starting it takes seconds, so pyspark is not even imported before."""
    from tidegate.driver.session import embedded_session

    # A short life with many different queries: compile fast rather than well.
    quick = "-XX:TieredStopAtLevel=1"
    session = embedded_session("tidegate-tests", memory="4g", spark_driver_extraJavaOptions=quick)
    yield session
    session.stop()
