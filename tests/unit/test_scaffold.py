"""The project keeps its own promises: versions, bounds, docstrings and import contracts."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tidegate

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIREMENTS = [
    Requirement(line)
    for line in PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
]
MODULES = sorted((ROOT / "src" / "tidegate").rglob("*.py"))


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): pin for name, pin in pairs}


def test_the_version_is_the_same_wherever_it_is_written() -> None:
    assert tidegate.__version__ == PROJECT["project"]["version"] == version("tidegate")


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda r: r.name)
def test_a_dependency_has_a_lower_bound_and_a_pin_that_respects_it(requirement: Requirement) -> None:
    lower = [s.version for s in requirement.specifier if s.operator == ">="]
    pin = pins()[requirement.name.lower()]
    assert lower == [pin], "the lower bound is what the tests run with"
    assert requirement.specifier.contains(pin)


def test_pandas_3_is_kept_out_because_pyspark_warns_on_it() -> None:
    pandas = next(r for r in REQUIREMENTS if r.name == "pandas")
    assert not pandas.specifier.contains("3.0.0")


def test_the_pins_name_packages_only() -> None:
    assert "tidegate" not in pins()
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line)]
    assert odd == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_module_says_what_it_decides(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {module.parent for module in MODULES}
    assert [str(f.relative_to(ROOT)) for f in sorted(folders) if not (f / "__init__.py").exists()] == []


NAMED = [
    name
    for page in (ROOT / "docs/papers").glob("*.md")
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("strategy", ["fastjoin", "ls_stream", "auto"])
def test_the_pages_of_the_papers_name_every_algorithm_of_a_strategy(strategy: str) -> None:
    modules = {path.name for path in (ROOT / "src/tidegate/route" / strategy).glob("*.py")} - {"__init__.py"}
    assert modules - {name.rpartition("/")[2] for name in NAMED} == set()


@pytest.mark.parametrize("target", ["demo", "test", "test-fast", "lint", "bench", "reproduce", "soak"])
def test_make_knows_the_target(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", ["make lint", "make test"])
def test_the_check_of_every_change_runs_what_a_person_runs(command: str) -> None:
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


# A contract that cannot fail guards nothing: each is broken on purpose, in a copy.


def lint_imports(copy: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy / 'lab'}"}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project in another place, every module emptied: only the planted import is there to find."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module in [*MODULES, *(ROOT / "lab/tidegate_lab").rglob("*.py")]:
        place = tmp_path / module.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("state/planted.py", "import pyspark.sql", "pyspark is imported only under driver/"),
        ("cli/planted.py", "from pyspark import sql", "pyspark is imported only under driver/"),
        ("worker/planted.py", "import tidegate.control", "neither the driver nor control"),
        ("worker/join/planted.py", "import tidegate.driver.engine", "neither the driver nor control"),
        ("cli/planted.py", "import tidegate_lab", "the package does not import the lab"),
        ("join/planted.py", "import pyarrow", "no Arrow and no pandas in the algorithms"),
        ("sift/planted.py", "import pandas", "no Arrow and no pandas in the algorithms"),
        ("route/planted.py", "import tidegate.join", "the algorithm folders do not import each other"),
        ("window/planted.py", "import tidegate.sift", "the algorithm folders do not import each other"),
        (
            "route/auto/planted.py",
            "import tidegate.route.fastjoin",
            "the balancing strategies do not import each other",
        ),
    ],
)
def test_a_forbidden_import_breaks_its_contract(copy: Path, module: str, line: str, contract: str) -> None:
    (copy / "src" / "tidegate" / module).write_text(line + "\n", encoding="utf-8")
    result = lint_imports(copy)
    assert result.returncode == 1, result.stdout
    assert re.search(re.escape(contract) + r".* BROKEN", result.stdout)
    assert "1 broken" in result.stdout


def test_arrow_in_the_simulation_breaks_its_contract(copy: Path) -> None:
    (copy / "lab/tidegate_lab/simulate/planted.py").write_text("import pyarrow\n", encoding="utf-8")
    result = lint_imports(copy)
    assert re.search(r"no Arrow, no pandas and no Spark in the simulation.* BROKEN", result.stdout)


def test_pyspark_in_the_driver_and_arrow_in_the_state_are_allowed(copy: Path) -> None:
    (copy / "src/tidegate/driver/planted.py").write_text("import pyspark.sql\n", encoding="utf-8")
    (copy / "src/tidegate/state/planted.py").write_text("import pyarrow\n", encoding="utf-8")
    (copy / "src/tidegate/cli/planted.py").write_text("import tidegate.driver.planted\n", encoding="utf-8")
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout
    assert "7 kept, 0 broken" in result.stdout
