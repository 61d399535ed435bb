"""Spark's log beside ours: which Spark batch is in which commit, and whether it is still the same batch.

    Spark's batches    6    7         8      offsets/8 is written before Spark asks us for batch 8
    our commits        6    7    8    9      manifest 9 says that Spark batch 8 is the last one in it
                                 └── settles: it has no Spark batch

Commits have numbers of their own, because some of them have no Spark batch, and some batches of Spark have no
commit: in an idle one only the heartbeat has moved and nothing is due. Spark asks for its last batch again
when it died before it wrote its own commit:

    our last manifest has Spark batch   … 7     Spark asks for 8: it becomes the next commit, or is idle
                                        … 8     Spark asks for 8: done, it is skipped
                                        … 5     Spark asks for 8: 6 and 7 were idle, if the log says that the
                                                streams were read as far at the end of 7 as of 5

Anything else means that files of one of the two are gone. Continuing would silently join against the wrong
state or skip rows. So would another batch under a known number: a log that was lost and begun again counts
from 0, like the first. Therefore plans and manifests hold a checksum of the batch's entry in Spark's log.

Guarantee: every Spark batch with rows is in exactly one commit, whatever is killed, and commits have no gaps.
"""

from __future__ import annotations

import json
import re
from functools import cached_property

from tidegate.errors import StateError
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.model.plan import Plan
from tidegate.state.manifest_log import FOLDER as MANIFESTS
from tidegate.state.plan_log import PlanLog
from tidegate.state.store.paths import batch_path, missing
from tidegate.state.store.sealed import checksum
from tidegate.state.store.store import Store

FOLDER, DONE_FOLDER = "offsets", "commits"
#: Where Spark keeps the id of the query, which it makes at its first start.
_METADATA = "metadata"
#: The name of the heartbeat where Spark knows sources by name, and the version of that log.
HEARTBEAT, _BY_NAME = "tidegate_heartbeat", b"v2"
#: Where a source of files keeps its list, and how an offset refers to it.
SOURCES, COMPACT = "sources", ".compact"
_LOG_OFFSET = re.compile(r'\{"logOffset":(\d+)\}')


class SparkLog:
    """The log in which Spark writes what a batch reads, before it runs; only read here."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def batch(self, number: int) -> SparkBatch:
        """This batch of Spark as the log has it now; a batch without an entry has no checksum."""
        try:
            entry = self.store.read(f"{FOLDER}/{number}")
        except StateError:
            return SparkBatch(number)
        return SparkBatch(number, checksum(entry), _input_of(entry))

    @cached_property
    def query_id(self) -> str:
        """The id of the query, which stays the same across restarts; "" in a batch run, which has none."""
        if not self.store.exists(_METADATA):
            return ""
        try:
            return str(json.loads(self.store.read(_METADATA))["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"The file {_METADATA} of Spark's log is damaged",
                code="CHECKPOINT_FILE_DAMAGED",
                got=str(error),
                why="Tables recognise the batches of a query by the id in it",
                do="Restore the file from a backup, or start with a new checkpoint",
            ) from error

    def last_done(self) -> int:
        """The last batch that Spark has done; -1 before the first."""
        names = (path.rpartition("/")[2] for path in self.store.list(DONE_FOLDER))
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def beats(self) -> int:
        """The heartbeat of the newest batch in the log; 0 if there is none."""
        numbers = [path.rpartition("/")[2] for path in self.store.list(FOLDER)]
        newest = max((int(name) for name in numbers if name.isdecimal()), default=None)
        if newest is None:
            return 0
        lines = self.store.read(f"{FOLDER}/{newest}").split(b"\n")
        name = HEARTBEAT.encode() + b":"
        named = [line.removeprefix(name) for line in lines if line.startswith(name)]
        found = (named or lines)[-1]
        return int(found) if found.isdigit() else 0

    def knows_names(self, number: int) -> bool:
        """Whether Spark knows the sources of this batch by name, not by position."""
        try:
            return self.store.read(f"{FOLDER}/{number}").startswith(_BY_NAME)
        except StateError:
            return False

    def check_whole(self, taken: SparkBatch) -> None:
        """StateError if the log ends before a batch that was taken, or lacks part of a list of source files.

        Both happen to a copy whose parts were copied at different times, and Spark would read files twice, or
        never. Spark purges old entries, and a batch run has none.
        """
        numbers = [int(name) for name in self._names(FOLDER) if name.isdigit()]
        newest = max(numbers, default=-1)
        if newest < taken.number and taken.checksum:
            there = f"{FOLDER}/{newest}" if numbers else "no entry"
            raise _outdated(
                f"Spark's log ends before batch {taken.number}, which the state has",
                f"{there} as the newest, no {FOLDER}/{taken.number}",
            )
        if newest < 0:
            return
        for source, last in _files_read(self.store.read(f"{FOLDER}/{newest}")).items():
            folder = f"{SOURCES}/{source}"
            names = set(self._names(folder))
            # Entries up to a compact one are in it.
            compact = [int(name.removesuffix(COMPACT)) for name in names if name.endswith(COMPACT)]
            gone = [n for n in range(max(compact, default=-1) + 1, last + 1) if str(n) not in names]
            if gone:
                raise missing(self.store.url, f"{folder}/{gone[0]}")

    def _names(self, folder: str) -> list[str]:
        """The files of a folder, without those that are hidden."""
        names = (path.rpartition("/")[2] for path in self.store.list(folder))
        return [name for name in names if name.removesuffix(COMPACT).isdigit()]


def _files_read(entry: bytes) -> dict[str, int]:
    """By source of files, as its folder is named: the last entry of its list of files that a batch reads."""
    version, *lines = entry.decode(errors="replace").split("\n")
    if version.encode() == _BY_NAME:
        read = [line.partition(":")[::2] for line in lines[1:]]
    else:
        read = [(str(number), line) for number, line in enumerate(lines[1:])]
    found = ((source, _LOG_OFFSET.fullmatch(offset)) for source, offset in read)
    return {source: int(match.group(1)) for source, match in found if match}


def _input_of(entry: bytes) -> str:
    """The checksum of how far the streams were read; "" for an entry in another form.

    v1                                      v2: where Spark knows sources by name
    {"batchWatermarkMs":0, …}               {"batchWatermarkMs":0, …}
    {"logOffset":3}                         orders:{"logOffset":3}
    17                                      tidegate_heartbeat:17

    There is a line for each source. In v1 they stand in the order of the plan, and the heartbeat stands last
    (`driver/frames/query_input.py`).
    """
    version, *lines = entry.split(b"\n")
    read, beat = lines[1:-1], version == b"v1"
    if version == _BY_NAME:
        name = HEARTBEAT.encode() + b":"
        read = sorted(line for line in lines[1:] if not line.startswith(name))
        beat = any(line.startswith(name) for line in lines)
    return checksum(b"\n".join(read)) if beat and read else ""


def reads_nothing_new(batch: SparkBatch, since: SparkBatch) -> bool:
    """Whether a batch ends where an earlier one did, as far as the streams are concerned."""
    return batch.input != "" and batch.input == since.input


def refuse_lost(log: SparkLog, newest: Manifest | None) -> None:
    """StateError if Spark has done a batch with rows whose manifest is not there. Asked before anything is
    deleted: with the file restored, the query goes on."""
    done = log.last_done()
    if newest is None and done >= 0:
        raise _manifest_missing(done + 1, "no manifest at all")
    if newest is not None and done > newest.spark_batch.number:
        commit_of(SparkBatch(done + 1), newest, log.batch(done))


def commit_of(wanted: SparkBatch, newest: Manifest, before: SparkBatch | None = None) -> int | None:
    """The number of the commit that takes this Spark batch; None if it is done. StateError when the batch
    does not follow the state, or is another one than was taken under its number.

    `before`: the entry of the batch before it, if that is not the last one that was taken.
    """
    last = newest.spark_batch
    if before is not None and reads_nothing_new(before, last) and last.number < before.number:
        last = before  # all batches between were idle
    found = "no manifest at all"
    if newest.batch >= 0:
        file = batch_path(MANIFESTS, newest.batch)
        found = f"{file} as the newest manifest, with Spark batch {last.number}"
    if wanted.number > last.number + 1:
        raise _manifest_missing(wanted.number, found)
    if wanted.number < last.number:
        raise _outdated(f"Spark asks for batch {wanted.number}, which was committed long ago", found)
    if wanted.number == last.number:
        refuse_other(last, wanted)
        return None
    return newest.batch + 1


def _manifest_missing(wanted: int, found: str) -> StateError:
    return StateError(
        f"Spark batch {wanted} cannot run because the manifest with Spark batch {wanted - 1} is missing",
        code="CHECKPOINT_MANIFEST_MISSING",
        got=found,
        why="Spark has committed that batch, so its state is lost with the file",
        do="Restore the file from a backup, or start with a new checkpoint and new output directories",
    )


def _outdated(wrong: str, found: str) -> StateError:
    return StateError(
        wrong,
        code="CHECKPOINT_SPARK_LOG_OUTDATED",
        got=found,
        why="Spark's own log (the folder `spark` of the checkpoint) is missing or older than the state, "
        "so new rows would be skipped as already processed",
        do="Restore that folder from a backup, or start with a new checkpoint and new output directories",
    )


def unfinished_settling(newest: Manifest, plans: PlanLog) -> Plan | None:
    """The plan of a commit without a Spark batch that an earlier run began and did not finish."""
    plan = plans.read(newest.batch + 1)
    return plan if plan is not None and plan.settles else None


def refuse_other(known: SparkBatch | None, found: SparkBatch | None) -> None:
    """StateError if Spark's log has another batch than a plan or a manifest was made with; None: no batch."""
    if known is None or found is None:
        same = known is found
    else:
        unknown = not known.checksum or not found.checksum
        same = known.number == found.number and (unknown or known.checksum == found.checksum)
    if not same:
        raise StateError(
            f"{_said(found)} is not the one that was taken before",
            code="CHECKPOINT_SPARK_BATCH_CHANGED",
            got=f"{_entry(found)}; the state was made with {_entry(known)}",
            why="Spark's own log (the folder `spark` of the checkpoint) was replaced, so rows would be "
            "skipped or taken twice",
            do="Restore that folder from a backup, or start with a new checkpoint and new output directories",
        )


def _said(batch: SparkBatch | None) -> str:
    return "A commit without a Spark batch" if batch is None else f"Spark batch {batch.number}"


def _entry(batch: SparkBatch | None) -> str:
    if batch is None:
        return "no Spark batch"
    return f"{FOLDER}/{batch.number} with checksum {batch.checksum or 'unknown'}"
