#!/usr/bin/env python3
"""The structural lint: keeps the package small, layered and readable. Run `python scripts/house.py`.

Ruff, mypy and import-linter check lines, types and named borders. They cannot express the limits below: how
large a folder, file, function or value may grow, that no two folders import each other, which words are
retired, and how many places may ask for the kind of an operator. Each limit stands at the top of this file.

A violation is one line, `path:line: message [check]`, and any violation makes the exit status 1. Two checks
are budgets (`any-dicts`, `kind-checks`): they allow a number of places. `--verbose` lists these places.

Imports under `if TYPE_CHECKING:` do not count, because they do not run. Imports inside functions do count.
Only the standard library is used, so that the script runs before anything is installed.
"""

from __future__ import annotations

import argparse
import ast
import graphlib
import itertools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "tidegate"

# The bar is 41,000, not yet reached: this number falls, unless a change adds what nothing can be cut for.
LINES_MAX = 62_900
MODULES_PER_FOLDER_MAX = 15  # `__init__.py` does not count
LINES_PER_FILE_MAX = 550
COMPLEXITY_MAX = 15
PARAMETERS_MAX = 8
FIELDS_MAX = 14
ANY_DICTS_MAX = 40
KIND_CHECKS_MAX = 15

# Where tuned numbers stand together in one module, each with its reason: other modules of these folders have
# no numbers but these.
TUNED = {"control/goal": "control_tuning.py"}
PLAIN_NUMBERS = {0, 1, 2}

# The one folder that may import pyspark.
SPARK_FOLDER = "driver"
# The public API starts queries, so it reaches the driver; the driver reads what the API describes.
EXEMPT_IMPORTS = {("api", "driver")}
# The public API's functions take as many keyword arguments as their users need.
PARAMETERS_EXEMPT_FOLDER = "api"
# What makes a numba kernel of a function (tidegate/kernels.py). Kernels are exempt from the limits on
# complexity and parameters: numba compiles plain loops over plain arrays, without objects to group them.
KERNEL_MAKERS = {"kernel", "compiled", "inlined", "njit", "jit", "vectorize", "guvectorize"}

# A retired word, and the word of the field that replaces it. docs/glossary.md defines the words in use.
RETIRED_WORDS = {
    "lonely": "unmatched",
    "told": "metrics, progress or report",
    "telling": "metrics, progress or report",
    "owed": "debt",
    "paying": "repair",
    "forgiven": "written off",
    "looks": "probes",
    "rush": "burst",
    "understood": "expression checks",
    "sendable": "serialisability check",
    "calm": "steady load",
    "headroom": "safety margin",
    "intake": "backpressure",
    "judging": "join predicate",
    "patience": "hysteresis",
    "prospect": "forecast",
}

# Operators, their compiled forms, layouts, work, windows, join conditions and reports. Code outside the
# folders below asks a protocol or a trait, not the class, so that another operator needs no change there.
OPERATOR_CLASSES = {
    *(f"{operator}{part}" for operator in ("Join", "Match", "Window") for part in ("", "Layout", "Batch")),
    *(f"{operator}{part}" for operator in ("Join", "Match", "Window") for part in ("Work", "Node")),
    *("JoinOperator", "MatchOperator", "WindowOperator", "CountWindowOperator"),
    *("WindowSpec", "RowsSpec", "Lifetime", "RowsLifetime"),
    *("OnSets", "OnPairs"),
    *("TaskReport", "MatchReport"),
}
# The values of a field `kind` that name an operator.
OPERATOR_KINDS = {"join", "match", "window"}
OPERATOR_FOLDERS = (
    "driver/operators",
    "worker/join",
    "worker/window",
    "worker/match",
    "window",
    "join",
    "api",
)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Finding:
    """A place and what is wrong there. Line 0 means the whole file or folder."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True)
class Import:
    """One name that a module imports when it runs: a module, or a name inside one."""

    target: str
    line: int


@dataclass(frozen=True)
class Module:
    """A source file of the package, read and parsed once."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def inside(self) -> str:
        """The path below the package, such as `worker/join/task.py`."""
        return self.path.split(f"{PACKAGE}/", 1)[1]

    @property
    def top_folder(self) -> str:
        """The first folder below the package; empty for the modules that lie beside the folders."""
        return self.inside.partition("/")[0] if "/" in self.inside else ""

    @property
    def line_count(self) -> int:
        return self.text.count("\n")

    @cached_property
    def imports(self) -> list[Import]:
        return list(_runtime_imports(self))

    def finding(self, message: str, node: ast.AST | None = None) -> Finding:
        return Finding(self.path, getattr(node, "lineno", 0), message)


def read_package(root: Path) -> list[Module]:
    """All modules of `src/tidegate` below the root, sorted by path."""
    source = root / "src"
    return [_read(path, root, source) for path in sorted((source / PACKAGE).rglob("*.py"))]


def _read(path: Path, root: Path, source: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(source).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path.relative_to(root).as_posix(), text, ast.parse(text, str(path)))


# -------------------------------------------------------------------------------------------------- syntax


def _runtime_imports(module: Module) -> Iterator[Import]:
    for node in _running_nodes(module.tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            yield Import(base, node.lineno)
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)


def _running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Like `ast.walk`, without the bodies of `if TYPE_CHECKING:`."""
    yield node
    if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
        children: Iterable[ast.AST] = node.orelse
    else:
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from _running_nodes(child)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    """The module that `from … import` names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _last_name(node: ast.AST) -> str:
    """`Join` for both `Join` and `nodes.Join`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _functions(module: Module) -> Iterator[FunctionNode]:
    """Every function and method, nested ones too, except numba kernels."""
    wrapped = set(_wrapped_kernels(module))
    for node in ast.walk(module.tree):
        if not isinstance(node, FunctionNode) or node.name in wrapped:
            continue
        if not any(_makes_kernel(decorator) for decorator in node.decorator_list):
            yield node


def _wrapped_kernels(module: Module) -> Iterator[str]:
    """The names of functions made kernels by a call: `fast = kernel(types)(slow)`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _makes_kernel(node.func):
            yield from (_last_name(argument) for argument in node.args)


def _makes_kernel(node: ast.AST) -> bool:
    """Whether this is `compiled`, `kernel(types)` or `numba.njit(...)`."""
    return _last_name(node.func if isinstance(node, ast.Call) else node) in KERNEL_MAKERS


def _classes(module: Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


# ------------------------------------------------------------------------------------------ size and shape


def total_lines(modules: list[Module]) -> Iterator[Finding]:
    """A package that one person can read stays below a fixed number of lines."""
    lines = sum(module.line_count for module in modules)
    if lines > LINES_MAX:
        yield Finding(f"src/{PACKAGE}", 0, f"{lines:,} lines, at most {LINES_MAX:,}")


def folder_size(modules: list[Module]) -> Iterator[Finding]:
    """A folder stays short enough to be read as a table of contents."""
    sizes = Counter(module.path.rpartition("/")[0] for module in modules if not module.is_package)
    for folder, count in sizes.items():
        if count > MODULES_PER_FOLDER_MAX:
            yield Finding(folder, 0, f"{count} modules, at most {MODULES_PER_FOLDER_MAX}")


def file_length(modules: list[Module]) -> Iterator[Finding]:
    """A file stays short enough to have one subject."""
    for module in modules:
        if module.line_count > LINES_PER_FILE_MAX:
            yield module.finding(f"{module.line_count} lines, at most {LINES_PER_FILE_MAX}")


def complexity(modules: list[Module]) -> Iterator[Finding]:
    """A function has few paths, so that its tests can cover all of them."""
    for module in modules:
        for function in _functions(module):
            if (paths := _cyclomatic(function)) > COMPLEXITY_MAX:
                message = f"{function.name} has complexity {paths}, at most {COMPLEXITY_MAX}"
                yield module.finding(message, function)


def _cyclomatic(function: FunctionNode) -> int:
    """One, plus one for each branch, loop, handler, case, `for` of a comprehension and further operand."""
    branches = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.match_case)
    nodes = list(ast.walk(function))
    operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + operands + sum(isinstance(node, branches) for node in nodes)


def parameters(modules: list[Module]) -> Iterator[Finding]:
    """A function that needs many arguments is missing a value that groups them."""
    for module in modules:
        if module.top_folder == PARAMETERS_EXEMPT_FOLDER:
            continue
        for function in _functions(module):
            if (count := _parameter_count(function)) > PARAMETERS_MAX:
                message = f"{function.name} takes {count} parameters, at most {PARAMETERS_MAX}"
                yield module.finding(message, function)


def _parameter_count(function: FunctionNode) -> int:
    positional = [argument.arg for argument in function.args.posonlyargs + function.args.args]
    bound = positional[:1] in (["self"], ["cls"])
    return len(positional) - bound + len(function.args.kwonlyargs)


def fields(modules: list[Module]) -> Iterator[Finding]:
    """A class with many annotated fields holds several values that want names of their own."""
    for module in modules:
        for node in _classes(module):
            count = sum(isinstance(statement, ast.AnnAssign) for statement in node.body)
            if count > FIELDS_MAX:
                yield module.finding(f"{node.name} has {count} fields, at most {FIELDS_MAX}", node)


# ------------------------------------------------------------------------------------------------- imports


def _edges(modules: list[Module]) -> Iterator[tuple[Module, Module, int]]:
    """Who imports whom inside the package, and on which line.

    The package's own `__init__` is left out: it gathers the public names from everywhere.
    """
    by_name = {module.name: module for module in modules if module.name != PACKAGE}
    for module in by_name.values():
        for imported in module.imports:
            other = by_name.get(imported.target)
            if other and other is not module and (module.top_folder, other.top_folder) not in EXEMPT_IMPORTS:
                yield module, other, imported.line


def import_cycles(modules: list[Module]) -> Iterator[Finding]:
    """Without cycles, modules can be read, tested and moved one after another."""
    imports: dict[str, set[str]] = defaultdict(set)
    for module, other, _ in _edges(modules):
        imports[module.name].add(other.name)
    paths = {module.name: module.path for module in modules}
    while cycle := _a_cycle(imports):
        for importer, imported in itertools.pairwise(cycle):
            imports[importer].discard(imported)
        yield Finding(paths[cycle[0]], 0, "import cycle: " + " -> ".join(cycle))


def _a_cycle(imports: dict[str, set[str]]) -> list[str]:
    """Modules of which each imports the next and the last is the first again; empty if there are none."""
    ordered = {name: sorted(imports[name]) for name in sorted(imports)}
    try:
        graphlib.TopologicalSorter(ordered).prepare()
    except graphlib.CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]  # graphlib names the imported module first
    return []


def mutual_folders(modules: list[Module]) -> Iterator[Finding]:
    """Top-level folders form layers: of any two, at most one imports the other."""
    examples: dict[tuple[str, str], Finding] = {}
    for module, other, line in _edges(modules):
        here, there = module.top_folder, other.top_folder
        if here and there and here != there:
            examples.setdefault((here, there), Finding(module.path, line, other.name))
    for (here, there), one in sorted(examples.items()):
        if here < there and (back := examples.get((there, here))):
            message = f"{here}/ and {there}/ import each other (the other way: {back.path}:{back.line})"
            yield Finding(one.path, one.line, message)


def spark_border(modules: list[Module]) -> Iterator[Finding]:
    """Only the driver needs a Spark session; everything else is tested without Java."""
    for module in modules:
        if module.top_folder == SPARK_FOLDER:
            continue
        lines = {one.line for one in module.imports if one.target.partition(".")[0] == "pyspark"}
        for line in sorted(lines):
            yield Finding(module.path, line, f"imports pyspark outside {SPARK_FOLDER}/")


# --------------------------------------------------------------------------------------------------- names


def class_names(modules: list[Module]) -> Iterator[Finding]:
    """A public class name means one thing, so that a search for it finds one class."""
    places: dict[str, list[Finding]] = defaultdict(list)
    for module in modules:
        for node in _classes(module):
            if not node.name.startswith("_"):
                places[node.name].append(module.finding(node.name, node))
    for name, found in sorted(places.items()):
        first, *others = found
        for other in others:
            yield Finding(other.path, other.line, f"class {name} also stands in {first.path}:{first.line}")


def retired_words(modules: list[Module]) -> Iterator[Finding]:
    """Code uses the words of the field, which are those of the glossary."""
    for module in modules:
        for line, name in sorted({*_names(module), (0, module.name.rpartition(".")[2])}):
            for word in sorted(set(_words(name)) & RETIRED_WORDS.keys()):
                yield Finding(module.path, line, f"`{word}` in {name}: say {RETIRED_WORDS[word]}")


def _names(module: Module) -> Iterator[tuple[int, str]]:
    """Every name that the module gives: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(module.tree):
        if isinstance(node, FunctionNode | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, _last_name(node)


def _words(name: str) -> list[str]:
    """`owed_rows`, `OwedRows` and `OWED_ROWS` all give `owed` and `rows`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def tuned_numbers(modules: list[Module]) -> Iterator[Finding]:
    """Numbers of the control loop that are not in its tuning."""
    for module in modules:
        folder, _, name = module.inside.rpartition("/")
        if folder not in TUNED or name == TUNED[folder]:
            continue
        for node in ast.walk(module.tree):
            number = node.value if isinstance(node, ast.Constant) else None
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            if is_number and number not in PLAIN_NUMBERS:
                yield module.finding(f"number {number!r} outside of {TUNED[folder]}", node)


def docstrings(modules: list[Module]) -> Iterator[Finding]:
    """A module says what it decides before it says how."""
    for module in modules:
        if not module.is_package and not ast.get_docstring(module.tree):
            yield module.finding("no module docstring")


# ------------------------------------------------------------------------------------------------- budgets


def any_dict_places(modules: list[Module]) -> Iterator[Finding]:
    """Where a `dict[str, Any]` stands for a value that has no class."""
    for module in modules:
        for number, line in enumerate(module.text.splitlines(), start=1):
            for _ in range(line.count("dict[str, Any]")):
                yield Finding(module.path, number, "dict[str, Any]")


def kind_check_places(modules: list[Module]) -> Iterator[Finding]:
    """Where code outside an operator's own folders asks which operator it has."""
    for module in modules:
        if not module.inside.startswith(tuple(f"{folder}/" for folder in OPERATOR_FOLDERS)):
            for node in ast.walk(module.tree):
                yield from (module.finding(f"asks for {kind}", place) for place, kind in _kinds_asked(node))


def _kinds_asked(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The operator classes or kinds that this one piece of syntax asks for, as one entry per question."""
    if isinstance(node, ast.Call) and _last_name(node.func) in ("isinstance", "issubclass"):
        asked = set().union(*(_operator_classes(argument) for argument in node.args[1:]))
    elif isinstance(node, ast.MatchClass):
        asked = _operator_classes(node.cls)
    elif isinstance(node, ast.Compare):
        asked = _compared_kinds([node.left, *node.comparators])
    elif isinstance(node, ast.Match) and _last_name(node.subject) == "kind":
        values = [one for case in node.cases for one in ast.walk(case.pattern)]
        yield from ((one, kind) for one in values for kind in _kind_literals(one, deep=False))
        return
    else:
        return
    if asked:
        yield node, " or ".join(sorted(asked))


def _compared_kinds(operands: list[ast.expr]) -> set[str]:
    """What `type(x) is Join` and `x.kind == "join"` compare with; empty for every other comparison."""
    if any(isinstance(one, ast.Call) and _last_name(one.func) == "type" for one in operands):
        return set().union(*(_operator_classes(one) for one in operands))
    if any(isinstance(one, ast.Attribute) and one.attr == "kind" for one in operands):
        return set().union(*(_operator_classes(one) | set(_kind_literals(one)) for one in operands))
    return set()


def _operator_classes(node: ast.AST) -> set[str]:
    """The operator classes named in `K`, `module.K`, `(K, L)` or `K | L`."""
    return {_last_name(one) for one in ast.walk(node)} & OPERATOR_CLASSES


def _kind_literals(node: ast.AST, deep: bool = True) -> list[str]:
    nodes = ast.walk(node) if deep else [node]
    constants = [one.value for one in nodes if isinstance(one, ast.Constant)]
    return [value for value in constants if value in OPERATOR_KINDS]


Check = Callable[[list[Module]], Iterator[Finding]]


def _budget(places: Check, most: int, what: str) -> Check:
    """A check that allows single places, but only so many."""

    def check(modules: list[Module]) -> Iterator[Finding]:
        count = len(list(places(modules)))
        if count > most:
            yield Finding(f"src/{PACKAGE}", 0, f"{count} {what}, at most {most}; --verbose lists them")

    return check


BUDGETS: dict[str, Check] = {"any-dicts": any_dict_places, "kind-checks": kind_check_places}

CHECKS: dict[str, Check] = {
    "total-lines": total_lines,
    "folder-size": folder_size,
    "file-length": file_length,
    "complexity": complexity,
    "parameters": parameters,
    "fields": fields,
    "import-cycles": import_cycles,
    "mutual-folders": mutual_folders,
    "spark-border": spark_border,
    "class-names": class_names,
    "retired-words": retired_words,
    "docstrings": docstrings,
    "tuned-numbers": tuned_numbers,
    "any-dicts": _budget(any_dict_places, ANY_DICTS_MAX, "uses of dict[str, Any]"),
    "kind-checks": _budget(kind_check_places, KIND_CHECKS_MAX, "checks for an operator's kind"),
}


def violations(root: Path) -> list[tuple[str, Finding]]:
    """Every violation below the root with the name of its check, in the order of the checks."""
    modules = read_package(root)
    return [(name, finding) for name, check in CHECKS.items() for finding in sorted(check(modules))]


def budgeted_places(root: Path) -> list[tuple[str, Finding]]:
    """Every place that counts against a budget, whether the budget is exceeded or not."""
    modules = read_package(root)
    return [(name, finding) for name, places in BUDGETS.items() for finding in sorted(places(modules))]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the structure of src/tidegate.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="the project")
    parser.add_argument("--verbose", action="store_true", help="also list what counts against a budget")
    given = parser.parse_args(arguments)
    if not (given.root / "src" / PACKAGE).is_dir():
        parser.error(f"{given.root} has no src/{PACKAGE}. Name the folder of the project with --root.")
    found = violations(given.root)
    for name, finding in found:
        print(f"{finding} [{name}]")
    if given.verbose:
        for name, place in budgeted_places(given.root):
            print(f"{place} [counts against {name}]")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
