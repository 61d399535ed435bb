"""Which Python runs tasks, and how a worker's packages are compared with the driver's."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from tests.unit.messages.expecting import expect

from tidegate.driver import worker_python
from tidegate.driver.worker_python import difference, found_on_workers, is_local, python_of_local

OWN = {"python": "3.11.7", "tidegate": "0.1.0", "pyarrow": "21.0.0", "numpy": "2.3.1"}


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", False),
        ("yarn", False),
    ],
)
def test_a_local_master_runs_tasks_on_this_machine(master: str, local: bool) -> None:
    assert is_local(master) is local


def test_the_python_of_the_script_runs_local_tasks_unless_the_user_chose_one() -> None:
    assert python_of_local({}, None, "/venv/bin/python") == "/venv/bin/python"
    assert python_of_local({}, "/other/python", "/venv/bin/python") == "/other/python"
    assert python_of_local({"PYSPARK_PYTHON": "python3"}, None, "/venv/bin/python") is None
    assert python_of_local({}, None, "") is None


def test_versions_that_fit_are_no_difference() -> None:
    assert difference(OWN, OWN) is None
    assert difference(OWN, OWN | {"python": "3.11.2", "numpy": "2.0.0", "pyarrow": "21.1.0"}) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"python": "3.12.1"}, "python 3.12.1, but 3.11.7 in the driver"),
        ({"tidegate": "0.1.1"}, "tidegate 0.1.1, but 0.1.0 in the driver"),
        ({"pyarrow": "17.0.0"}, "pyarrow 17.0.0, but 21.0.0 in the driver"),
        (
            {"error": "ModuleNotFoundError: No module named 'tidegate'"},
            "ModuleNotFoundError: No module named",
        ),
    ],
)
def test_a_difference_names_the_package(found: dict[str, str], said: str) -> None:
    assert (difference(OWN, OWN | found) or "").startswith(said)


def test_workers_that_cannot_run_python_are_named_with_the_python_they_were_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise Py4JError('Cannot run program "python9": error=2, No such file or directory')

    described: list[str | None] = []
    context = SimpleNamespace(
        defaultParallelism=2,
        pythonExec="python9",
        setJobDescription=described.append,
        parallelize=lambda rows, parts: SimpleNamespace(mapPartitions=fail),
    )
    monkeypatch.setattr(worker_python, "QuietLogs", lambda spark: nullcontext())
    session: Any = SimpleNamespace(sparkContext=context)
    error = expect("WORKERS_WITHOUT_PYTHON", lambda: found_on_workers(session))
    assert "'python9'" in str(error)
    assert described[-1] is None
