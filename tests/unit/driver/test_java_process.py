"""Whether Spark's Java process is there: of a program that started it, and of one that it started."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from tidegate.driver.failures import failure_of
from tidegate.driver.java_process import is_lost, unless_lost


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """What stands for the Java process that this program has started."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=started))
        yield started
        started.kill()


def test_without_a_session_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert not is_lost()


def test_a_process_that_has_ended_is_lost(process: subprocess.Popen[bytes]) -> None:
    assert not is_lost(ValueError())
    process.kill()
    process.wait()
    assert is_lost()


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError()]
)
def test_a_process_whose_connections_break_is_waited_for(
    process: subprocess.Popen[bytes], error: Exception
) -> None:
    dying = threading.Timer(0.3, process.kill)
    dying.start()
    assert is_lost(error)
    dying.join()


def test_a_process_that_started_python_is_known_by_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, port = server.getsockname()
        gateway = SimpleNamespace(gateway_parameters=SimpleNamespace(address=address, port=port))
        monkeypatch.setattr(SparkContext, "_gateway", gateway)
        assert not is_lost(Py4JError("no such method"))
    assert is_lost()


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), Py4JError("o1.status")])
def test_any_error_of_a_batch_without_java_is_one_of_ours(
    process: subprocess.Popen[bytes], error: Exception
) -> None:
    assert failure_of(error, 7, output="near").code == "SINK_FAILED"
    process.kill()
    process.wait()
    found = failure_of(error, 7, output="near")
    assert found.code == "JAVA_PROCESS_LOST"
    assert "Batch 7 failed: Spark's Java process has ended" in str(found)


def test_clearing_up_in_java_fails_only_while_it_is_there(process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(OSError, match="refused"), unless_lost():
        raise ConnectionRefusedError(111, "refused")
    process.kill()
    process.wait()
    with unless_lost():
        raise ConnectionRefusedError(111, "refused")
