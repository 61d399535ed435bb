"""Side-by-side measurements in one run; `tidegate bench NAME --help` says what each compares and how."""

from __future__ import annotations

import argparse
from importlib import import_module

NAMES = {
    "join": "speed of the join: this engine, Spark's own, and others on the same rows",
    "skew": "a join over skewed streams: how even each balancing strategy keeps its instances",
    "sift": "sifters and the query index: rows a second by themselves and on Spark",
    "windows": "window aggregates: this engine and Spark's own streaming aggregation on the same rows",
    "nexmark": "the Nexmark queries: this engine, Spark's own and Flink on the same events",
    "overload": "a join that gets more than the machine can take, for a day: what is found, and how late",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, does in NAMES.items():
        module = import_module(f"tidegate_lab.commands.bench_{name}")
        command = names.add_parser(
            name, help=does, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.set_defaults(measure=module.run)
        module.add_arguments(command)


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.measure(arguments))
