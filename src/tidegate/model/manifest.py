"""What a batch left behind: clocks of streams, stored pieces, routing, debts, files, what control learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.model.debts import Debt
from tidegate.model.pieces import Piece
from tidegate.model.routing import Routing


@dataclass(frozen=True)
class StreamClock:
    """What the engine knows of one source stream's time after a batch."""

    #: Highest event time seen; BEGINNING_US before the first row.
    seen_us: int
    #: Rows below this are late from the next batch on.
    watermark_us: int
    #: Wall clock of the last batch that brought rows of this stream.
    heard_us: int


@dataclass(frozen=True)
class SparkBatch:
    """A batch of Spark, by the log in which Spark writes what a batch reads."""

    #: Spark's own number; -1 before the first batch.
    number: int = -1
    #: Of its entry in that log; "" where there is none, as in a batch run.
    checksum: str = ""
    #: Of the part of the entry that says how far the streams were read; "" where that is not known.
    input: str = ""


#: Before the first batch.
NO_BATCH_YET = SparkBatch()


@dataclass(frozen=True)
class Draft:
    """Files of one output that a commit has taken, and that publishing gives their names."""

    output: str
    batch: int
    #: The folder of the output, with its scheme, and the hidden one in it where the files lie.
    folder: str
    draft: str
    #: Name below `draft` → name below `folder`.
    files: Mapping[str, str]
    bytes: int


@dataclass(frozen=True)
class OutputFiles:
    """What outputs of files have, and what of it is not published yet."""

    #: By output, also of earlier runs: the folder that it has written to last.
    folders: Mapping[str, str] = field(default_factory=dict)
    #: As they were written; published after the commit, unless `commit_every` holds them back.
    drafts: tuple[Draft, ...] = ()


#: Of a query without outputs of files.
NO_FILES = OutputFiles()


@dataclass(frozen=True)
class Manifest:
    """What commit `batch` left behind; with its predecessor's pieces gone unless listed here."""

    #: The engine's own number: some commits have no Spark batch (`state/spark_log.py`).
    batch: int
    #: Fingerprint of the flow (schemas, keys, windows): a restart with another flow is refused.
    flow: Mapping[str, Any]
    clocks: Mapping[str, StreamClock]
    #: Per operator: rows that are settled already; see Plan.settle_us.
    settled_us: Mapping[str, int]
    routing: Mapping[str, Routing]
    pieces: tuple[Piece, ...] = ()
    #: What the controllers have learnt, in their own format.
    control: Mapping[str, Any] = field(default_factory=dict)
    #: Debts of joins, oldest first, and what was written off in this batch.
    debts: tuple[Debt, ...] = ()
    written_off: tuple[Debt, ...] = ()
    #: The first batch whose receipts are kept: by the batch, by the minute, by the hour.
    receipts_from: tuple[int, int, int] = (0, 0, 0)
    #: The last Spark batch whose rows are in the state.
    spark_batch: SparkBatch = NO_BATCH_YET
    #: Per operator: the watermark by which rows of the next batch are late.
    late_us: Mapping[str, int] = field(default_factory=dict)
    #: Per window that was added to a running flow: its windows that begin before this lack rows and are not
    #: emitted.
    begins_us: Mapping[str, int] = field(default_factory=dict)
    #: Files that outputs have written.
    files: OutputFiles = NO_FILES

    def late_before_us(self, operator: str) -> int:
        """No row that enters the operator in the next batch is older than this."""
        return self.late_us.get(operator, self.settled_us[operator])
