"""How kernels are compiled: once, for all kinds of arrays, and not again in the next process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import tidegate
from tidegate.join.kernel_types import NUMBER, kernel
from tidegate.join.probe import matched_bits, meet, order
from tidegate.join.probe import probe as probing
from tidegate.join.selective import content
from tidegate_lab.simulate.join import counted_conditions

KERNELS = [
    value
    for module in (counted_conditions, content, matched_bits, meet, order, probing)
    for value in vars(module).values()
    if isinstance(value, Dispatcher) and value.stats.cache_path
]


def test_one_compiled_version_serves_fresh_and_read_only_arrays() -> None:
    codes, times = np.arange(9, dtype=np.uint64), np.arange(9)
    for _ in range(2):
        found = probing.probe(codes, times, times, codes, times, 0, 9)
        order.sort_by_code_time(codes[::-1], times)
        probing.ProbedPairs(found).chunk(0, 3)
        codes.flags.writeable = times.flags.writeable = False
    assert len(KERNELS) >= 10
    versions = {value.py_func.__name__: len(value.nopython_signatures) for value in KERNELS}
    assert set(versions.values()) == {1}, versions


ONE_KERNEL = """
from tidegate.join.kernel_types import NUMBER, kernel
@kernel(NUMBER)
def twice(number):
    return number + number
assert twice(21) == 42
stats = twice.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def run_one_kernel(script: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(tidegate.__file__).parents[1]), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_the_next_process_does_not_compile_again(tmp_path: Path) -> None:
    script = tmp_path / "one_kernel.py"
    script.write_text(ONE_KERNEL)
    cache = str(tmp_path / "cache")
    hits, misses, place = run_one_kernel(script, NUMBA_CACHE_DIR=cache)
    assert (hits, misses) == ("0", "1")
    assert place.startswith(cache)
    hits, misses, _ = run_one_kernel(script, NUMBA_CACHE_DIR=cache)
    assert (hits, misses) == ("1", "0")
    shutil.rmtree(cache)


@pytest.mark.parametrize(
    "refusal",
    [
        RuntimeError("cannot cache function 'f': no locator available for file 'f.py'"),
        OSError("no such folder"),
    ],
)
def test_a_kernel_works_where_nothing_can_be_cached(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = numba.njit

    def no_place(*arguments: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise refusal
        return real(*arguments, **options)

    monkeypatch.setattr("tidegate.kernels.njit", no_place)

    @kernel(NUMBER)
    def twice(number: int) -> int:
        return number + number

    assert twice(21) == 42
