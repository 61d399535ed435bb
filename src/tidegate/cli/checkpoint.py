"""Copy a checkpoint, also that of a running query, into an empty folder: a backup.

The copy holds the state after the newest committed batch. Every segment is verified against its checksums. A
query that is started on the copy reads on from that batch; the files of its outputs are not part of it.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    copy = actions.add_parser("copy", help="copy a checkpoint", description=__doc__)
    copy.add_argument("source", metavar="FROM", help="the directory or URL given to tidegate.start")
    copy.add_argument("target", metavar="TO", help="an empty or new directory, or a URL")


def run(arguments: argparse.Namespace) -> int:
    from tidegate.redaction import without_secrets
    from tidegate.state.copying import copy_checkpoint
    from tidegate.state.recovery import referenced

    manifest = copy_checkpoint(arguments.source, arguments.target)
    files = len(referenced(manifest.pieces))
    rows = sum(piece.rows for piece in manifest.pieces)
    print(
        f"copied the state after batch {manifest.batch} ({rows:,} rows in {files:,} files) "
        f"to {without_secrets(arguments.target)}"
    )
    return 0
