"""Where real data lie, which may not come with Tidegate: what commands that replay them ask for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tidegate.errors import FlowError

#: The folder with real data, where --real does not name one.
DATA_VARIABLE = "TIDEGATE_DATA"


def add_real_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """`--real FOLDER`, or `--real` alone; None where it is not given."""
    said = f"{what} from this folder (from the environment variable {DATA_VARIABLE})"
    parser.add_argument("--real", nargs="?", const="", metavar="FOLDER", help=said)


def data_folder(given: str | None) -> Path:
    """The folder that --real names, or else the environment."""
    folder = given or os.environ.get(DATA_VARIABLE, "")
    if not folder:
        raise FlowError(
            "Real data do not come with Tidegate, and no folder was given",
            code="LAB_REAL_DATA_MISSING",
            do=f"Give --real FOLDER or set {DATA_VARIABLE}; or use a workload that is generated",
        )
    return Path(folder)
