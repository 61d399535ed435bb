"""The command `tidegate`: finds the command asked for, runs it, and turns a known error into one line.

Each command is a module of this folder with `add_arguments(parser)` and `run(arguments) -> exit code`; its
docstring is its description. Only the one asked for is imported, so `tidegate --help` answers at once.

Exit codes: 0 done; 1 done, but the outcome is not what it must be; 2 wrong use or a known error, said in
one line without a traceback; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from tidegate import __version__
from tidegate.errors import TidegateError

COMMANDS = {
    "demo": "join two streams of a made-up city on an embedded Spark, with live progress",
    "bench": "speed next to other engines, in one run",
    "reproduce": "a paper's figures again: what it said, what we measured, and plots",
    "sift": "a sifter on an edge node, without Spark: rows in, the rows worth carrying out",
    "inspect": "what is in a checkpoint: batches, plans, routing, segments, receipts, debts",
}

WRONG_USE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; argparse itself leaves with code 2 on wrong arguments and 0 on --help."""
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(given).parse_args(given)
    try:
        return int(arguments.run(arguments))
    except TidegateError as error:
        print(f"tidegate {arguments.command}: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"tidegate {arguments.command}: stopped", file=sys.stderr)
        return INTERRUPTED


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name; the arguments of the one asked for."""
    # No option before the command takes a value, so the first plain word is the command.
    asked = next((word for word in given if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(
        prog="tidegate",
        description="Windowed stream joins, window aggregates and continuous queries for PySpark.",
    )
    parser.add_argument("--version", action="version", version=f"tidegate {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == asked:
            module = import_module(f"tidegate.cli.{name}")
            command.description = module.__doc__
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
