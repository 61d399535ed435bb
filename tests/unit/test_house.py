"""The structural lint: every check fails on a planted violation and passes on the clean tree."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import house

SCRIPT = Path(house.__file__)
DOC = '"""What this module decides."""\n'


class Tree:
    """A small project with one clean module in each of several folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("", "api/", "control/", "driver/", "driver/operators/", "join/", "worker/join/"):
            self.put(f"{folder}__init__.py", "")
        self.put("errors.py", "class TidegateError(Exception): ...\n")
        self.put("join/probe.py", "def probe(left: int, right: int) -> int:\n    return left + right\n")
        self.put("control/plan.py", "from tidegate.join.probe import probe\n\nanswer = probe(1, 2)\n")
        self.put("driver/engine.py", "import pyspark\n\nfrom tidegate.control.plan import answer\n")

    def put(self, name: str, text: str) -> None:
        path = self.root / "src" / "tidegate" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name.endswith("__init__.py") else DOC + text, encoding="utf-8")

    def violated(self) -> list[str]:
        return sorted({check for check, _ in house.violations(self.root)})

    def messages(self) -> list[str]:
        return [str(finding) for _, finding in house.violations(self.root)]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_clean_tree_violates_nothing(tree: Tree) -> None:
    assert tree.messages() == []


def arguments(count: int) -> str:
    return ", ".join(f"a{n}: int" for n in range(count))


def branches(count: int) -> str:
    return "def f(x: int) -> None:\n" + "    if x: ...\n" * count


def annotated(count: int) -> str:
    return "class Value:\n" + "".join(f"    f{n}: int\n" for n in range(count))


# ------------------------------------------------------------------------------------------ size and shape


def test_more_lines_than_the_package_may_have(tree: Tree) -> None:
    for number in range(house.LINES_MAX // 499 + 1):
        tree.put(f"part{number % 10}/m{number}.py", "\n" * 499)
    assert tree.violated() == ["total-lines"]


def test_a_folder_with_sixteen_modules(tree: Tree) -> None:
    for number in range(14):
        tree.put(f"control/m{number}.py", "")
    assert tree.messages() == []
    tree.put("control/one_more.py", "")
    assert tree.messages() == ["src/tidegate/control: 16 modules, at most 15"]


def test_a_file_that_is_too_long(tree: Tree) -> None:
    tree.put("control/long.py", "\n" * 549)
    assert tree.messages() == []
    tree.put("control/long.py", "\n" * 550)
    assert tree.messages() == ["src/tidegate/control/long.py: 551 lines, at most 550"]


def test_a_function_with_too_many_paths(tree: Tree) -> None:
    tree.put("control/f.py", branches(14))
    assert tree.messages() == []
    tree.put("control/f.py", branches(15))
    assert tree.messages() == ["src/tidegate/control/f.py:2: f has complexity 16, at most 15"]


def test_operands_loops_handlers_cases_and_comprehensions_are_paths(tree: Tree) -> None:
    paths = """
def f(x):
    for y in x and x or y:
        while y if x else y: ...
    try: ...
    except ValueError: ...
    match x:
        case 1: ...
    return [z for z in x]
"""
    tree.put("control/f.py", paths + "    if x: ...\n" * 6)
    assert tree.messages() == []
    tree.put("control/f.py", paths + "    if x: ...\n" * 7)
    assert tree.violated() == ["complexity"]


def test_a_function_with_too_many_parameters(tree: Tree) -> None:
    tree.put("control/f.py", f"def f({arguments(8)}) -> None: ...\n")
    assert tree.messages() == []
    tree.put("control/f.py", f"def f({arguments(8)}, *, last: int) -> None: ...\n")
    assert tree.messages() == ["src/tidegate/control/f.py:2: f takes 9 parameters, at most 8"]


def test_self_is_no_parameter_and_the_public_api_may_take_many(tree: Tree) -> None:
    tree.put("control/f.py", f"class C:\n    def f(self, {arguments(8)}) -> None: ...\n")
    tree.put("api/f.py", f"def f({arguments(12)}) -> None: ...\n")
    assert tree.messages() == []


@pytest.mark.parametrize(
    "kernel",
    [
        f"@compiled\ndef f({arguments(9)}) -> None:\n" + "    if a0: ...\n" * 20,
        f"@kernel(int, int)\ndef f({arguments(9)}) -> None:\n" + "    if a0: ...\n" * 20,
        f"@numba.njit(nogil=True)\ndef f({arguments(9)}) -> None: ...\n",
        f"def f({arguments(9)}) -> None: ...\n\nfast = kernel(int, int)(f)\n",
    ],
)
def test_kernels_may_be_long_and_take_many_arrays(tree: Tree, kernel: str) -> None:
    tree.put("join/loops.py", kernel)
    assert tree.messages() == []


def test_a_class_with_too_many_fields(tree: Tree) -> None:
    tree.put("control/value.py", annotated(14))
    assert tree.messages() == []
    tree.put("control/value.py", annotated(15))
    assert tree.messages() == ["src/tidegate/control/value.py:2: Value has 15 fields, at most 14"]


# ------------------------------------------------------------------------------------------------- imports


def test_an_import_cycle_is_named_module_by_module(tree: Tree) -> None:
    tree.put("control/a.py", "import tidegate.control.b\n")
    tree.put("control/b.py", "from .c import x\n")
    tree.put("control/c.py", "def f() -> None:\n    from . import a\n")
    assert tree.violated() == ["import-cycles"]
    (message,) = tree.messages()
    cycle = message.split("import cycle: ")[1].split(" -> ")
    assert {name.rpartition(".")[2] for name in cycle} == {"a", "b", "c"}
    assert cycle[0] == cycle[-1]
    following = dict(itertools.pairwise(cycle))
    assert following["tidegate.control.a"] == "tidegate.control.b"


def test_two_cycles_are_two_violations(tree: Tree) -> None:
    for one, other in ("ab", "ba", "cd", "dc"):
        tree.put(f"control/{one}.py", f"import tidegate.control.{other}\n")
    assert len(tree.messages()) == 2


def test_folders_that_import_each_other(tree: Tree) -> None:
    tree.put("join/back.py", "from tidegate.control import goal\n")
    tree.put("control/goal.py", "")
    assert tree.violated() == ["mutual-folders"]
    assert tree.messages() == [
        "src/tidegate/control/plan.py:2: control/ and join/ import each other "
        "(the other way: src/tidegate/join/back.py:2)"
    ]


@pytest.mark.parametrize("guard", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_imports_for_types_do_not_count(tree: Tree, guard: str) -> None:
    tree.put(
        "join/back.py", f"if {guard}:\n    import pyspark\n    from tidegate.control.plan import answer\n"
    )
    assert tree.messages() == []


def test_the_api_may_import_the_driver_that_imports_it(tree: Tree) -> None:
    tree.put("api/start.py", "import tidegate.driver.run\n")
    tree.put("driver/run.py", "import tidegate.api.start\n")
    assert tree.messages() == []


def test_the_package_itself_may_gather_names_from_everywhere(tree: Tree) -> None:
    tree.put("__init__.py", "from tidegate.control.plan import answer\n")
    tree.put("join/version.py", "import tidegate\n")
    assert tree.messages() == []


@pytest.mark.parametrize("line", ["import pyspark.sql", "from pyspark import sql"])
def test_pyspark_outside_the_driver(tree: Tree, line: str) -> None:
    tree.put("control/spark.py", f"def f() -> None:\n    {line}\n")
    assert tree.messages() == ["src/tidegate/control/spark.py:3: imports pyspark outside driver/"]


# --------------------------------------------------------------------------------------------------- names


def test_a_class_name_that_is_used_twice(tree: Tree) -> None:
    tree.put("control/a.py", "class Load: ...\nclass _Part: ...\n")
    tree.put("join/b.py", "class _Part: ...\nclass Load: ...\n")
    assert tree.messages() == [
        "src/tidegate/join/b.py:3: class Load also stands in src/tidegate/control/a.py:2"
    ]


@pytest.mark.parametrize("word", sorted(house.RETIRED_WORDS))
def test_a_retired_word_is_found_in_a_function(tree: Tree, word: str) -> None:
    tree.put("control/names.py", f"def {word}_rows() -> None: ...\n")
    assert tree.violated() == ["retired-words"]


@pytest.mark.parametrize(
    "line",
    [
        "class OwedRows: ...",
        "async def owed() -> None: ...",
        "def rows(owed: int) -> None: ...",
        "OWED_ROWS = 1",
        "rows.owed = 1",
        "class Rows:\n    rows_owed: int",
        "all([owed for owed in ()])",
    ],
)
def test_a_retired_word_is_found_in_every_sort_of_name(tree: Tree, line: str) -> None:
    tree.put("control/names.py", line + "\n")
    assert tree.violated() == ["retired-words"]
    assert tree.messages()[0].endswith("say debt")


def test_a_retired_word_is_found_in_the_name_of_a_module(tree: Tree) -> None:
    tree.put("control/owed_rows.py", "")
    assert tree.messages() == ["src/tidegate/control/owed_rows.py: `owed` in owed_rows: say debt"]


def test_words_that_only_contain_a_retired_word_are_fine(tree: Tree) -> None:
    tree.put("control/names.py", "borrowed = allowed = Lookspace = crushed = 'owed'\nprint(thing.owed)\n")
    assert tree.messages() == []


@pytest.mark.parametrize("line", ["SPARE = 0.85", "def f(x=3):\n    return x", "LEAST = -1.5", "LATE = 1e-9"])
def test_a_number_of_the_control_loop_outside_of_its_tuning(tree: Tree, line: str) -> None:
    tree.put("control/goal/levels.py", f"{line}\n")
    assert tree.violated() == ["tuned-numbers"]


def test_plain_numbers_and_numbers_of_the_tuning_and_of_other_folders_are_fine(tree: Tree) -> None:
    tree.put("control/goal/levels.py", "NONE, ALL, HALF, BACK, YES = 0, 1.0, 1 / 2, -1, True\n")
    tree.put("control/goal/control_tuning.py", "SPARE = 0.85\n")
    tree.put("control/merging.py", "MOST = 7\n")
    assert tree.messages() == []


def test_a_module_without_a_docstring(tree: Tree) -> None:
    (tree.root / "src/tidegate/control/silent.py").write_text("x = 1\n", encoding="utf-8")
    assert tree.messages() == ["src/tidegate/control/silent.py: no module docstring"]


# ------------------------------------------------------------------------------------------------- budgets


def test_too_many_dicts_of_anything(tree: Tree) -> None:
    tree.put("control/values.py", "x: dict[str, Any]\n" * 40)
    assert tree.messages() == []
    tree.put("control/more.py", "def f(x: dict[str, Any]) -> None: ...\n")
    assert tree.messages() == ["src/tidegate: 41 uses of dict[str, Any], at most 40; --verbose lists them"]


KIND_CHECKS = [
    "isinstance(x, Join)",
    "isinstance(x, nodes.Window)",
    "isinstance(x, (Source, MatchOperator))",
    "isinstance(x, WindowSpec | RowsSpec)",
    "issubclass(x, JoinWork)",
    "type(x) is MatchReport",
    "type(x) in (JoinLayout, Source)",
    "x.kind == 'join'",
    "'window' != x.kind",
    "x.kind in ('match', 'source')",
    "match x:\n    case WindowNode(): ...",
    "match x:\n    case [OnSets(), _]: ...",
    "match x.kind:\n    case 'join': ...",
]


def kind_checks(tree: Tree) -> list[str]:
    return [str(place) for check, place in house.budgeted_places(tree.root) if check == "kind-checks"]


@pytest.mark.parametrize("text", KIND_CHECKS)
def test_a_question_for_the_kind_of_an_operator_is_counted_once(tree: Tree, text: str) -> None:
    tree.put("control/asks.py", text + "\n")
    assert len(kind_checks(tree)) == 1


@pytest.mark.parametrize("folder", house.OPERATOR_FOLDERS)
def test_the_own_folders_of_an_operator_may_ask(tree: Tree, folder: str) -> None:
    tree.put(f"{folder}/asks.py", "isinstance(x, Join)\n")
    assert kind_checks(tree) == []


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(x, Source)",
        "isinstance(Join, x)",
        "axis.kind == 'category'",
        "name == 'join'",
        "x is Join",
        "type(x) is int",
        "match x:\n    case Source(): ...",
        "match x.name:\n    case 'join': ...",
    ],
)
def test_other_questions_are_not_counted(tree: Tree, text: str) -> None:
    tree.put("control/asks.py", text + "\n")
    assert kind_checks(tree) == []


def test_a_folder_whose_name_only_begins_like_an_operators_may_not_ask(tree: Tree) -> None:
    tree.put("joinery/asks.py", "isinstance(x, Join)\n")
    tree.put("worker/joins.py", "isinstance(x, Join)\n")
    assert len(kind_checks(tree)) == 2


def test_too_many_questions_for_the_kind_of_an_operator(tree: Tree) -> None:
    tree.put("control/asks.py", "isinstance(x, Join)\n" * 15)
    assert tree.messages() == []
    tree.put("control/asks.py", "isinstance(x, Join)\n" * 16)
    assert tree.messages() == [
        "src/tidegate: 16 checks for an operator's kind, at most 15; --verbose lists them"
    ]


# ------------------------------------------------------------------------------------------------ command


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *options], capture_output=True, text=True, check=False
    )


def test_the_command_succeeds_silently_on_a_clean_tree(tree: Tree) -> None:
    result = run("--root", str(tree.root))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_command_prints_a_line_for_each_violation_and_fails(tree: Tree) -> None:
    tree.put("control/names.py", "import pyspark\n\nowed = 1\n")
    result = run("--root", str(tree.root))
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "src/tidegate/control/names.py:2: imports pyspark outside driver/ [spark-border]",
        "src/tidegate/control/names.py:4: `owed` in owed: say debt [retired-words]",
    ]


def test_verbose_lists_the_places_of_budgets_that_are_kept(tree: Tree) -> None:
    tree.put("control/asks.py", "isinstance(x, Join)\ny: dict[str, Any]\n")
    result = run("--root", str(tree.root), "--verbose")
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        "src/tidegate/control/asks.py:3: dict[str, Any] [counts against any-dicts]",
        "src/tidegate/control/asks.py:2: asks for Join [counts against kind-checks]",
    ]


def test_a_folder_that_is_not_the_project_is_refused(tmp_path: Path) -> None:
    result = run("--root", str(tmp_path))
    assert result.returncode == 2
    assert "Name the folder of the project with --root." in result.stderr
