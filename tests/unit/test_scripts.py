"""The scripts behind `make`, run with made-up tools: nothing is installed here, whoever runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
TOOLS = ("sh", "cat", "sed", "grep")


class Machine:
    """A PATH with the plainest tools only; everything else has to be put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            if found is None:
                raise RuntimeError(f"these tests need {tool}")
            (self.bin / tool).symlink_to(found)
        self.put("mkdir", "")  # the real one would touch the real machine
        self.user(1000)

    def put(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def user(self, number: int) -> None:
        self.put("id", f"echo {number}")

    def java(self, version: str, name: str = "java") -> Path:
        settings = {"java.home": f"/jvm/{version}", "java.specification.version": version}
        return self.put(name, "\n".join(f"echo '    {k} = {v}' >&2" for k, v in settings.items()))

    def apt(self, package: str) -> Path:
        """A package manager that has one package and writes down what it is asked to install."""
        asked = self.folder / "asked"
        self.put("apt-cache", f'case "$*" in *" {package}") echo "Version: 1";; *) exit 100;; esac')
        self.put("apt-get", f'case "$1" in install) echo "$*" >> {asked};; esac')
        return asked

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SCRIPTS / script), *arguments],
            cwd=self.folder,
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_a_java_on_the_path_is_used(machine: Machine, version: str) -> None:
    machine.java(version)
    result = machine.run("ensure-java")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"/jvm/{version}\n", "")


def test_java_home_comes_before_the_path(machine: Machine) -> None:
    machine.java("17")
    machine.java("21", "home/bin/java")
    assert machine.run("ensure-java", JAVA_HOME=str(machine.bin / "home")).stdout == "/jvm/21\n"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_home_that_is_too_old_is_passed_over(machine: Machine, version: str) -> None:
    machine.java("17")
    machine.java(version, "home/bin/java")
    assert machine.run("ensure-java", JAVA_HOME=str(machine.bin / "home")).stdout == "/jvm/17\n"


def test_without_a_java_one_message_says_what_to_install(machine: Machine) -> None:
    result = machine.run("ensure-java", JAVA_HOME="/nowhere")
    assert (result.returncode, result.stdout) == (1, "")
    assert "needs Java 17 or newer." in result.stderr
    assert "Got: /nowhere/bin/java does not run; no java on the PATH." in result.stderr
    assert "sudo apt-get install openjdk-17-jre-headless" in result.stderr


def test_an_old_java_is_named_in_the_message(machine: Machine) -> None:
    machine.java("11")
    result = machine.run("ensure-java")
    assert result.returncode == 1
    assert f"Got: {machine.bin}/java is Java 11." in result.stderr


def test_only_root_installs_packages(machine: Machine) -> None:
    asked = machine.apt("openjdk-17-jre-headless")
    result = machine.run("ensure-java")
    assert result.returncode == 1
    assert "Install one and try again" in result.stderr
    assert not asked.exists()


def test_root_installs_the_first_java_that_the_distribution_has(machine: Machine) -> None:
    machine.user(0)
    asked = machine.apt("openjdk-21-jre-headless")
    machine.run("ensure-java")
    assert asked.read_text().split()[-1] == "openjdk-21-jre-headless"


def test_root_without_a_package_manager_gets_the_message(machine: Machine) -> None:
    machine.user(0)
    result = machine.run("ensure-java")
    assert result.returncode == 1
    assert "Install one and try again" in result.stderr


def test_a_missing_python_is_named(machine: Machine) -> None:
    result = machine.run("ensure-venv", "python9", "venv")
    assert result.returncode == 1
    assert "needs Python 3.11 or newer. Got: no command python9." in result.stderr


def test_a_python_that_is_too_old_is_named(machine: Machine) -> None:
    machine.put("python3", 'case "$1" in -V) echo "Python 3.10.4";; *) exit 1;; esac')
    result = machine.run("ensure-venv", "python3", "venv")
    assert result.returncode == 1
    assert "Got: python3 is Python 3.10.4." in result.stderr
    assert "make PYTHON=python3.12" in result.stderr


def without_ensurepip(machine: Machine) -> None:
    """Debian's Python: new enough, but it cannot put pip into a new environment."""
    machine.put("python3", 'case "$*" in *ensurepip*) exit 1;; *print*) echo python3.11-venv;; esac')


def test_a_python_without_ensurepip_names_the_package_to_install(machine: Machine) -> None:
    without_ensurepip(machine)
    result = machine.run("ensure-venv", "python3", "venv")
    assert result.returncode == 1
    assert "sudo apt-get install python3.11-venv" in result.stderr


def test_root_installs_the_missing_part_of_python(machine: Machine) -> None:
    machine.user(0)
    without_ensurepip(machine)
    asked = machine.apt("python3.11-venv")
    machine.run("ensure-venv", "python3", "venv")
    assert asked.read_text().split()[-1] == "python3.11-venv"


def test_the_scripts_can_be_run() -> None:
    assert [s.name for s in SCRIPTS.iterdir() if not os.access(s, os.X_OK)] == []
