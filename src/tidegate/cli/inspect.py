"""What is in a checkpoint: batches, plans, routing, segments, debts, sifters, windows, telemetry, receipts.

Reads only and takes no lock, so it can inspect a running query. Files that the query purges meanwhile are
left out. Damaged files are an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tidegate.cli.arguments import whole_number
from tidegate.errors import StateError
from tidegate.redaction import without_secrets

if TYPE_CHECKING:
    from tidegate.model.manifest import Manifest
    from tidegate.model.receipts import ReceiptPeriod
    from tidegate.observe.checkpoint_contents import Contents
    from tidegate.state.checkpoint import Checkpoint

#: Attempts to read a manifest while the query purges old ones.
TRIES = 5
T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="the directory or URL given to tidegate.start"
    )
    parser.add_argument("--json", action="store_true", help="JSON on standard output instead of tables")
    parser.add_argument(
        "--last",
        type=whole_number,
        default=10,
        metavar="N",
        help="telemetry and receipts of that many batches (%(default)s)",
    )
    parser.add_argument(
        "--by", choices=("hour", "total"), default="total", help="receipts and load by hour, or in total"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only batches that began then or later: 2026-11-18T14:00:00Z"
    )


def run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from tidegate.observe.checkpoint_contents import all_rows
    from tidegate.observe.checkpoint_tables import print_contents
    from tidegate.observe.json_frame import Frame, write_frame

    contents = read_contents(arguments.checkpoint, arguments.last, arguments.by, arguments.since)
    if arguments.json:
        seed = contents.plans[-1].seed if contents.plans else None
        write_frame(Frame("inspect", seed, rows=all_rows(contents)), "-")
    else:
        print_contents(Console(file=sys.stdout, highlight=False), contents)
    return 0


def read_contents(url: str, last: int, by: ReceiptPeriod = "total", since: str | None = None) -> Contents:
    """Read everything but the stored rows; telemetry only of the `last` batches.

    `by`, `since`: the period that receipts are added up by, and when it begins.
    """
    from tidegate.observe.checkpoint_contents import Contents, last_of
    from tidegate.observe.receipts.receipt_tables import range_of
    from tidegate.state.checkpoint import Checkpoint
    from tidegate.state.plan_log import FOLDER as PLANS
    from tidegate.state.store.paths import batch_of

    checkpoint = Checkpoint(url)
    if not checkpoint.store.list():
        raise StateError(
            "There is no Tidegate checkpoint here",
            code="CHECKPOINT_NOT_FOUND",
            got=url,
            why="A checkpoint has a folder `tidegate` with manifests and plans",
            do="Pass the directory that tg.start(…, checkpoint=…) was given",
        )
    planned = sorted(b for b in map(batch_of, checkpoint.store.list(PLANS)) if b is not None)
    plans = [_if_still_there(checkpoint.plans.read, batch) for batch in planned]
    reported = last_of(checkpoint.telemetry.batches(), last)
    telemetry = {batch: _if_still_there(checkpoint.telemetry.read, batch) for batch in reported}
    manifest = _newest_manifest(checkpoint)
    read = checkpoint.receipts.read
    return Contents(
        url=without_secrets(url),
        manifest=manifest,
        kept=tuple(checkpoint.manifests.batches()),
        plans=tuple(plan for plan in plans if plan is not None),
        telemetry={batch: record for batch, record in telemetry.items() if record is not None},
        receipts=tuple(read(range_of("batch", last=last))),
        summed=tuple(read(range_of(by, since), manifest)),
        by=by,
    )


def _if_still_there(read: Callable[[int], T | None], batch: int) -> T | None:
    try:
        return read(batch)
    except StateError:
        # If the file was purged between listing and reading, a second read finds nothing; damage fails again.
        return read(batch)


def _newest_manifest(checkpoint: Checkpoint) -> Manifest | None:
    for _ in range(TRIES):
        batch = checkpoint.manifests.latest_batch()
        if batch is None:
            return None
        try:
            return checkpoint.manifests.load(batch)
        except StateError:
            if checkpoint.manifests.latest_batch() == batch:
                raise
    raise StateError(
        "The checkpoint changes faster than it can be read",
        code="CHECKPOINT_CHANGING",
        got=f"{TRIES} manifests that were deleted while they were read",
        do="Try again, or stop the query first",
    )
