"""The command `tidegate`: finds the subcommand, runs it, and prints a known error as one line.

Each command is a module with `add_arguments(parser)` and `run(arguments) -> exit code`; its docstring is its
description. Other packages add commands through the entry point group `tidegate.commands`, as the lab does.
Only the requested command is imported, so `tidegate --help` is fast.

Exit codes: 0 success; 1 finished with a wrong outcome; 2 wrong usage or a known error, printed in one line
without a traceback; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points

from tidegate import __version__
from tidegate.errors import TidegateError

ENTRY_POINTS = "tidegate.commands"
BUILT_IN = {
    "demo": "tidegate.cli.demo.command",
    "sift": "tidegate.cli.sift",
    "inspect": "tidegate.cli.inspect",
    "checkpoint": "tidegate.cli.checkpoint",
}
COMMANDS = {
    "demo": "join two streams of a synthetic city on an embedded Spark, with live progress",
    "sift": "a sifter on an edge node, without Spark: rows in, the rows worth carrying out",
    "inspect": "what is in a checkpoint: batches, plans, routing, segments, receipts, debts",
    "checkpoint": "copy a checkpoint, also of a running query: checkpoint copy FROM TO",
}
#: Commands of the lab, which is a separate package: without it, the error says how to install it.
LAB_COMMANDS = {
    "bench": "speed next to other engines, in one run",
    "reproduce": "a paper's figures again: what it said, what we measured, and plots",
}

WRONG_USE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; argparse exits with 2 on wrong arguments and 0 on --help."""
    given = list(sys.argv[1:] if argv is None else argv)
    asked = _asked(given)
    added = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    if asked in LAB_COMMANDS and asked not in added:
        print(_without_lab(asked), file=sys.stderr)
        return WRONG_USE
    arguments = _parser(asked, added).parse_args(given)
    try:
        return int(arguments.run(arguments))
    except TidegateError as error:
        print(f"tidegate {arguments.command}: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"tidegate {arguments.command}: stopped", file=sys.stderr)
        return INTERRUPTED


def _asked(given: Sequence[str]) -> str | None:
    """The first plain word, because no option before the command takes a value."""
    return next((word for word in given if not word.startswith("-")), None)


def _without_lab(command: str) -> str:
    return (
        f"tidegate {command}: needs the lab (package tidegate-lab), which is not installed. "
        "Clone the project and run `make install`, or `pip install ./lab` in the clone."
    )


def _parser(asked: str | None, added: Mapping[str, str]) -> argparse.ArgumentParser:
    """All commands by name, with the arguments of the requested one. `added`: commands of other packages."""
    parser = argparse.ArgumentParser(
        prog="tidegate",
        description="Windowed stream joins, window aggregates and continuous queries for PySpark.",
    )
    parser.add_argument("--version", action="version", version=f"tidegate {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {**BUILT_IN, **added}
    for name, module_name in modules.items():
        does = COMMANDS.get(name) or LAB_COMMANDS.get(name, f"from {module_name.partition('.')[0]}")
        command = commands.add_parser(name, help=does, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == asked:
            module = import_module(module_name)
            command.description = module.__doc__
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
