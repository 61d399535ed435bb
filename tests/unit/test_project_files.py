"""The files around the code agree with it: versions, commands, and the paths that texts name."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidegate

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_lab_and_the_citation_have_the_version_of_the_package() -> None:
    assert tomllib.loads(text("lab/pyproject.toml"))["project"]["version"] == tidegate.__version__
    assert re.findall(r"^version: (.+)$", text("CITATION.cff"), re.MULTILINE) == [tidegate.__version__]


def test_what_make_lint_runs_is_a_hook_before_each_commit() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), re.MULTILINE)
    assert recipe
    commands = [line.strip().removeprefix("$(BIN)/") for line in recipe[1].splitlines()]
    assert "ruff check ." in commands
    hooks = re.findall(r"^ +entry: \.venv/bin/(.+)$", text(".pre-commit-config.yaml"), re.MULTILINE)
    assert [command for command in commands if command not in hooks] == []


TARGETS = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
TEXTS = ["CONTRIBUTING.md", "docs/releasing.md", ".github/PULL_REQUEST_TEMPLATE.md"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_names_targets_that_make_has(name: str) -> None:
    named = re.findall(r"(?:^|`)make ([a-z -]+?)(?:`| *#|$)", text(name), re.MULTILINE)
    assert named
    assert {target for targets in named for target in targets.split()} - TARGETS == set()


@pytest.mark.parametrize("name", [*TEXTS, "README.md", "BENCHMARKS.md", "CHANGELOG.md"])
def test_a_text_names_files_that_exist(name: str) -> None:
    paths = re.findall(r"(?:^|[`( ])((?:src|tests|lab|docs|scripts)/[\w./-]*\w)", text(name), re.MULTILINE)
    assert [path for path in paths if not (ROOT / path).exists()] == []


PATH = re.compile(r"[\w*-]+(?:/[\w.*-]+)+/?|\w+/|\w+\.(?:py|md|toml)")


def named(line: str, drawn: bool) -> Iterator[list[str]]:
    """The paths of a line, those of each cell of a table apart; in a drawing, whatever looks like one."""
    for cell in line.split("|"):
        words = re.findall(r"[^\s():,]+", cell) if drawn else re.findall(r"`([^`]+)`|\]\(([^)]+)\)", cell)
        plain = [word if isinstance(word, str) else "".join(word) for word in words]
        yield [word for word in plain if PATH.fullmatch(word)]


def found(path: str, folder: Path | None) -> Path | None:
    """The file or folder of a path; of `folder/module.Name.name` the module, if it defines these names."""
    alone = path.endswith(".py") and "/" not in path
    places = [folder] if alone and folder is not None else [ROOT / "src/tidegate", ROOT]
    for place in places:
        for file in place.glob(path.rstrip("/")):
            return file
        parent, _, last = path.rpartition("/")
        module, *names = last.split(".")
        file = place / parent / f"{module}.py"
        if names and file.exists() and defines(ast.parse(file.read_text(encoding="utf-8")), names):
            return file
    return None


def defines(scope: ast.AST, names: list[str]) -> bool:
    for node in ast.iter_child_nodes(scope) if names else ():
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        known = {getattr(node, "name", None), *(getattr(target, "id", None) for target in targets)}
        if names[0] in known and defines(node, names[1:]):
            return True
    return not names


def missing(lines: list[str]) -> list[str]:
    """Paths that do not exist. A file name alone lies in the folder that its cell named before."""
    absent, drawn = [], False
    for line in lines:
        drawn ^= line.startswith("```")
        for paths in named(line, drawn):
            folder: Path | None = None
            for path in paths:
                file = found(path, folder)
                if file is None:
                    absent.append(path)
                else:
                    folder = file if file.is_dir() else file.parent
    return absent


PAGES = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))
PAPERS = [name for name in PAGES if name.startswith("docs/papers/")]


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", *PAPERS])
def test_a_map_of_the_tree_names_paths_classes_and_functions_that_exist(name: str) -> None:
    assert missing(re.sub(r"\[[^]]*\]\([^)]*\)", "", text(name)).splitlines()) == []


@pytest.mark.parametrize("name", [*sorted(path.name for path in ROOT.glob("*.md")), *PAGES])
def test_a_link_leads_to_a_file(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"```.*?```", "", text(name), flags=re.DOTALL))
    folder = (ROOT / name).parent
    assert [link for link in links if ":" not in link and not (folder / link).exists()] == []


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_of_a_paper_is_short(name: str) -> None:
    assert len(text(name).split()) <= 600


@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ("`join/probe/probe.py`, `order.py`, `tests/oracle/`, `tests/spark/test_join_*.py`", []),
        ("`model/plan.Plan`, `driver/frames/passes.Pass.run`, `model/codec.FORMAT`", []),
        ("| `join/probe/probe.py` | `order.py` |", ["order.py"]),
        ("`join/probe/`, `greedy_fit.py`", ["greedy_fit.py"]),
        (
            "`spark/join.py`, `papers/`, `model/plan.Nothing`",
            ["spark/join.py", "papers/", "model/plan.Nothing"],
        ),
        ("`driver/frames/passes.Pass.fly`", ["driver/frames/passes.Pass.fly"]),
    ],
)
def test_a_path_that_does_not_exist_is_noticed(line: str, absent: list[str]) -> None:
    assert missing([line]) == absent


PACKAGES = sorted((ROOT / "src/tidegate").glob("*/**/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.parent.relative_to(ROOT / "src")))
def test_the_docstring_of_a_folder_lists_all_that_is_in_it_and_nothing_else(package: Path) -> None:
    says = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    listed = {*re.findall(r"(?<![\w/])\w+\.py\b", says), *re.findall(r"^ *(\w+/) ", says, re.MULTILINE)}
    modules = {path.name for path in package.parent.glob("*.py")} - {"__init__.py"}
    assert listed == modules | {f"{path.parent.name}/" for path in package.parent.glob("*/__init__.py")}


def test_the_architecture_is_short() -> None:
    prose = re.sub(r"```.*?```", "", text("ARCHITECTURE.md"), flags=re.DOTALL)
    assert len(prose.split()) <= 2_500


def test_the_first_change_that_contributing_shows_fits_the_code() -> None:
    contributing = text("CONTRIBUTING.md")
    assert '"tib": 2**40,' in contributing
    assert '"tib": 2**40,' in text("src/tidegate/quantities.py")
    assert '("2 TiB", 1 << 41)' in text("tests/unit/test_sizes.py")
