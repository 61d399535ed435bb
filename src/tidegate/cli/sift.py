"""Runs a sifter on an edge node, without Spark: reads rows and writes those that pass.

Rows are newline JSON, CSV with a header, or an Arrow stream. The output has the same format, and lines are
unchanged byte for byte. The counts of offered, kept and dropped rows go to standard error at the end.

    sensor | tidegate sift --filter pickups.json | send
    tidegate sift --follow /shared/pickups --node east-3 --mark sampled --in rows.csv --out kept.csv
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tidegate.errors import FlowError, TidegateError

if TYPE_CHECKING:
    from tidegate.edge.node import Node
    from tidegate.edge.node_counts import NodeCounts
    from tidegate.edge.sifter_folder import SifterFolder
    from tidegate.edge.source import EdgeSource, Sink
    from tidegate.sift.filter.sifter import Sifter

FORMATS = ("json", "csv", "arrow")
ENDINGS = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
}
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--filter", metavar="FILE", help="the sifter, as JSON or in its binary form")
    add("--follow", metavar="DIR", help="take newer sifters from this folder, and write counts beside them")
    add("--in", dest="input", metavar="FILE", help="rows to read (standard input)")
    add("--out", dest="output", metavar="FILE", help="where kept rows go (standard output)")
    add(
        "--format",
        choices=FORMATS,
        help="of rows in and out (default: by the file's ending or first bytes)",
    )
    add("--mark", metavar="COLUMN", default="", help="add a boolean column that tells samples")
    add("--keep-bad", action="store_true", help="pass lines that are no rows, instead of dropping them")
    add("--allow-missing", action="store_true", help="go on if rows lack a column that the sifter decides by")
    add("--counts", metavar="FILE", help="write counts, also those of each region, as JSON at the end")
    add("--node", metavar="NAME", help="the name under which this node counts (host name and process)")


def run(arguments: argparse.Namespace) -> int:
    from tidegate.edge.node import Node
    from tidegate.edge.sifter_folder import SifterFolder
    from tidegate.edge.source import EdgeSource, Stopping

    name = _node_name(arguments.node)
    folder = None if arguments.follow is None else SifterFolder(arguments.follow, _say)
    node = Node(name, _first_sifter(arguments, folder), folder, report=_say)
    with Stopping() as stopping:
        try:
            with _files(arguments) as (rows, sink):
                _carry(arguments, EdgeSource(rows, stopping, idle=node.tick), sink, node)
        except BrokenPipeError:
            _say("the reader of the output has closed it")
        except (OSError, TidegateError) as error:
            # The counts up to here are valid.
            if node.counts().offered:
                _tell(node.close(), arguments.counts)
            if isinstance(error, TidegateError):
                raise
            raise FlowError(
                "The rows cannot be read or written",
                code="SIFT_IO_FAILED",
                got=error,
                do="Check the paths of --in and --out, their permissions and the free space",
            ) from error
        _tell(node.close(), arguments.counts)
        return INTERRUPTED if stopping.asked == signal.SIGINT else 0


def _carry(arguments: argparse.Namespace, source: EdgeSource, sink: Sink, node: Node) -> None:
    from tidegate.edge.line_rows import LineRows, Wishes

    node.tick()
    wishes = Wishes(arguments.mark, arguments.keep_bad, arguments.allow_missing)
    form = arguments.format or format_of(arguments.input, source.peek())
    if form == "arrow":
        from tidegate.edge.arrow_rows import carry_batches

        carry_batches(source, sink, node, wishes)
    else:
        LineRows(node, sink, wishes, _say).carry(source, form)


def format_of(file: str | None, first: bytes) -> str:
    """The format by the ending of a file's name, else by the first bytes."""
    by_name = ENDINGS.get(os.path.splitext(file or "")[1].lower())
    if by_name is not None:
        return by_name
    if first.startswith(b"\xff\xff\xff\xff"):
        return "arrow"
    if first.lstrip()[:1] == b"{":
        return "json"
    if first.startswith(b"ARROW1") or first[:1] == b"[" or b"\0" in first[:1024]:
        raise FlowError(
            "The format of the rows is unknown",
            code="SIFT_INPUT_FORMAT_UNKNOWN",
            got=repr(first[:16]),
            why="The first bytes are not those of JSON lines, CSV or an Arrow stream",
            do="Pass --format; convert an Arrow file or a JSON array to a stream or to lines first",
        )
    return "csv"


def _first_sifter(arguments: argparse.Namespace, folder: SifterFolder | None) -> Sifter:
    from tidegate.sift.filter.sifter import Sifter

    if arguments.filter is not None:
        try:
            with open(arguments.filter, "rb") as file:
                return Sifter.read(file.read())
        except (OSError, FlowError) as error:
            raise FlowError(
                f"The file of --filter cannot be read: {arguments.filter}",
                code="SIFT_FILTER_UNREADABLE",
                got=error,
                do="Pass a sifter that match(…, publish_to=…) has written",
            ) from error
    found = None if folder is None else folder.newest()
    if found is None:
        raise FlowError(
            "There is no sifter to start with",
            code="SIFT_FILTER_MISSING",
            got=f"no --filter, and {'no --follow' if folder is None else 'nothing in ' + arguments.follow}",
            do="Pass --filter FILE, or --follow DIR with a file such as sifter-1790000000000000-1.json in it",
        )
    return found


def _node_name(given: str | None) -> str:
    name = given if given is not None else f"{socket.gethostname()}-{os.getpid()}"
    if not name or "/" in name or name.startswith("."):
        raise FlowError(
            "The name of a node cannot be used in a file name",
            code="SIFT_NODE_NAME_INVALID",
            got=repr(name),
            do="Pass a --node without slashes that does not begin with a dot",
        )
    return name


@contextmanager
def _files(arguments: argparse.Namespace) -> Iterator[tuple[int, Sink]]:
    from tidegate.edge.source import Sink

    given, wanted = arguments.input, arguments.output
    with ExitStack() as opened:
        if given and wanted and os.path.exists(wanted) and os.path.samefile(given, wanted):
            raise FlowError(
                "--in and --out are the same file",
                code="SIFT_OUTPUT_IS_INPUT",
                got=given,
                do="Pass another file to --out",
            )
        rows = opened.enter_context(open(given, "rb")) if given else sys.stdin
        kept = opened.enter_context(open(wanted, "wb")) if wanted else sys.stdout
        yield rows.fileno(), Sink(kept.fileno())


def _tell(counts: NodeCounts, file: str | None) -> None:
    share = f" ({counts.dropped / counts.offered:.1%})" if counts.offered else ""
    _say(
        f"offered {counts.offered}, kept {counts.kept}, dropped {counts.dropped}{share}, "
        f"sampled {counts.sampled}, bad lines {counts.bad}; "
        f"sifter version {counts.version}"
    )
    if file:
        from tidegate.model.codec import to_plain

        with open(file, "w", encoding="utf-8") as out:
            json.dump(to_plain(counts), out, indent=1)
            out.write("\n")


def _say(text: str) -> None:
    print(f"tidegate sift: {text}", file=sys.stderr, flush=True)
