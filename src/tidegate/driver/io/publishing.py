"""Publishing: the files of a batch lie in a hidden folder of their output until its manifest is put.

    out/.tidegate/0000000012-5e1f…/part-00000-….parquet     a draft: step 6 of a batch; readers ignore it
    out/part-0000000012-00000.parquet                       published: step 8, after the put

A draft has the token of its run in its name, and the manifest says which drafts are taken and what their
files will be called. So a run that died, or that another one replaced while it was halted, leaves nothing
that counts: its drafts are in no manifest. Publishing renames file by file and may be repeated: a start
first publishes what the last manifest names, and then deletes all other drafts. Every row is published
exactly once. Readers may see a part of a batch for a moment, as with Spark's file sink read without its log.

With `commit_every`, the manifest names the drafts of several batches. When the time has come, they are
merged into one draft before the put (Parquet and ORC), or published as they are.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from tidegate.api.goal import Goal
from tidegate.api.nodes import Output
from tidegate.api.outputs import FILE_FORMATS, commit_every_us
from tidegate.driver.failures import reason
from tidegate.driver.io.folders import Folder, LocalFolder, folder_at, is_shown
from tidegate.errors import BatchFailed, FlowError
from tidegate.model.manifest import NO_FILES, Draft, OutputFiles

#: The hidden folder of an output, with a folder for each draft.
DRAFTS = ".tidegate"
#: What a published file is called.
_PUBLISHED = re.compile(r"(^|/)part-\d{10,}-\d{5,}\.[^/]*$")
#: Formats that Spark reads as it wrote them.
_MERGED = ("parquet", "orc")
#: Files that are merged grow to about this size.
_FILE_BYTES = 128 << 20


class Fence(Protocol):
    """Tells whether this run still holds its checkpoint."""

    @property
    def token(self) -> str:
        """No other run has it."""

    def check(self) -> None:
        """CheckpointInUse if another run has taken over."""


def writes_files(spark: SparkSession, output: Output) -> bool:
    """Whether an output writes files below its path, and nothing else."""
    if output.path is None or output.format is None or spark._jvm is None:
        return False
    if output.format.lower() in FILE_FORMATS:
        return True
    jvm: Any = spark._jvm
    package = "org.apache.spark.sql.execution.datasources"
    lookup = jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource
    found = lookup(output.format, spark._jsparkSession.sessionState().conf())
    kinds = ("FileFormat", "v2.FileDataSourceV2")
    return any(jvm.java.lang.Class.forName(f"{package}.{kind}").isAssignableFrom(found) for kind in kinds)


def check_commit_every(spark: SparkSession, outputs: Iterable[Output], goal: Goal | None) -> None:
    """FlowError for a `commit_every` of an output that has no files to hold back, or that breaks the goal."""
    for output in outputs:
        if output.commit_every_us is None:
            continue
        label = f"output {output.name!r}"
        seconds = output.commit_every_us / 1e6
        commit_every_us(timedelta(seconds=seconds), label, writes_files=writes_files(spark, output))
        if goal is not None and goal.latency_us < output.commit_every_us:
            raise FlowError(
                f"The goal cannot be met: {label} is published further apart than results may take",
                code="GOAL_LATENCY_BELOW_COMMIT_EVERY",
                got=f"commit_every of {seconds:g} s, a latency of {goal.latency_us / 1e6:g} s",
                why="The latency of a row ends when the file that has it is published",
                do="Give a shorter commit_every, or leave it out and let another job compact the files",
            )


class Publisher:
    """The files of all outputs of a query, from draft to published."""

    def __init__(
        self,
        outputs: Iterable[Output],
        fence: Fence,
        open_folder: Callable[[str], Folder],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._fence, self._open_folder, self._clock = fence, open_folder, clock
        self._outputs = {output.name: output for output in outputs}
        self._folders = {name: open_folder(str(output.path)) for name, output in self._outputs.items()}
        self._published_at = dict.fromkeys(self._outputs, clock())
        #: Between two commits: as the last manifest has it. Then the drafts of the running batch join it.
        self._files = NO_FILES
        #: Outputs that the next commit publishes, and drafts that were merged into others.
        self._due: set[str] = set()
        self._merged: list[Draft] = []

    @classmethod
    def of(cls, spark: SparkSession, outputs: Iterable[Output], fence: Fence) -> Publisher:
        """For those of the outputs that write files."""
        return cls([one for one in outputs if writes_files(spark, one)], fence, partial(folder_at, spark))

    def recover(self, files: OutputFiles) -> None:
        """Publish what the last manifest names, and delete what dead runs left; only while this run holds
        the checkpoint. FlowError for a folder with files of others."""
        for name, folder in self._folders.items():
            if folder.url not in files.folders.values():
                # An output that has moved may have taken its files along.
                _refuse_foreign_files(name, folder, has_written=name in files.folders)
            _refuse_other_format(self._outputs[name], folder)
        urls = {name: folder.url for name, folder in self._folders.items()}
        self._files = replace(files, folders={**files.folders, **urls})
        self.publish_all()
        for folder in self._folders.values():
            folder.delete(DRAFTS)

    @property
    def files(self) -> OutputFiles:
        """What the next manifest says."""
        return self._files

    def takes(self, output: Output) -> bool:
        """Whether an output writes files."""
        return output.name in self._outputs

    # -- drafts ---------------------------------------------------------------------------------------

    def write(self, output: Output, frame: DataFrame, batch: int) -> None:
        """Let Spark write the rows of a batch as a draft."""
        writer = frame.write.format(str(output.format)).options(**output.options)
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        draft = self._draft_of(batch)
        writer.mode("overwrite").save(f"{self._folders[output.name].url}/{draft}")
        self._add(self._drafted(output.name, draft, batch))

    def link(self, output: Output, files: Sequence[str], batch: int) -> bool:
        """Make a draft of the staged files of tasks; False if the disk cannot link them."""
        folder, draft = self._folders[output.name], self._draft_of(batch)
        if not isinstance(folder, LocalFolder):
            return False
        home = os.path.join(folder.path, draft)
        os.makedirs(home)
        names = [_final(batch, number, file) for number, file in enumerate(files)]
        try:
            for file, name in zip(files, names, strict=True):
                os.link(file, os.path.join(home, name))
        except OSError:
            folder.delete(draft)
            return False
        size = sum(os.path.getsize(file) for file in files)
        self._add(Draft(output.name, batch, folder.url, draft, {name: name for name in names}, size))
        return True

    def drop(self, output: Output, batch: int) -> None:
        """Forget the draft of a batch that turned out to have no rows."""
        draft = self._draft_of(batch)
        kept = [one for one in self._files.drafts if (one.output, one.draft) != (output.name, draft)]
        self._files = replace(self._files, drafts=tuple(kept))
        self._folders[output.name].delete(draft)

    def _draft_of(self, batch: int) -> str:
        return f"{DRAFTS}/{batch:010d}-{self._fence.token}"

    def _drafted(self, output: str, draft: str, batch: int) -> Draft:
        folder = self._folders[output]
        found = sorted(one for one in folder.sizes(draft) if is_shown(one[0]))
        files = {name: _final(batch, number, name) for number, (name, _) in enumerate(found)}
        return Draft(output, batch, folder.url, draft, files, sum(size for _, size in found))

    def _add(self, draft: Draft) -> None:
        if draft.files:
            self._files = replace(self._files, drafts=(*self._files.drafts, draft))

    # -- before the commit ----------------------------------------------------------------------------

    def conclude(self, session: SparkSession, batch: int, ends: bool) -> None:
        """Decide which outputs this commit publishes, and merge what several batches have written for them.

        `ends`: no batch may follow.
        """
        self._due = {name for name in self._outputs if ends or self._is_due(name)}
        for name in self._due:
            drafts = [one for one in self._files.drafts if one.output == name]
            if len(drafts) > 1 and str(self._outputs[name].format).lower() in _MERGED:
                merged = self._merge(session, self._outputs[name], drafts, batch)
                self._merged += drafts
                kept = [one for one in self._files.drafts if one.output != name]
                self._files = replace(self._files, drafts=(*kept, merged))

    def _is_due(self, output: str) -> bool:
        every_us = self._outputs[output].commit_every_us
        return every_us is None or self._clock() - self._published_at[output] >= every_us / 1e6

    @property
    def is_overdue(self) -> bool:
        """Whether drafts wait whose time has come, so that even a batch without rows should commit."""
        return any(self._is_due(draft.output) for draft in self._files.drafts)

    @property
    def holds_back(self) -> bool:
        """Whether the next commit leaves drafts unpublished."""
        return any(draft.output not in self._due for draft in self._files.drafts)

    def _merge(self, session: SparkSession, output: Output, drafts: Sequence[Draft], batch: int) -> Draft:
        folder, kind = self._folders[output.name], str(output.format)
        reader, columns = session.read.format(kind), list(output.partition_by)
        if columns:
            # Spark would read values in names of folders as numbers and dates, and write them otherwise.
            first = f"{drafts[0].folder}/{drafts[0].draft}/{next(iter(drafts[0].files))}"
            of_path = [T.StructField(name, T.StringType()) for name in columns]
            schema = T.StructType([*reader.load(first).schema.fields, *of_path])
            parts = [reader.schema(schema).load(f"{one.folder}/{one.draft}") for one in drafts]
        else:
            paths = [f"{one.folder}/{one.draft}/{name}" for one in drafts for name in one.files]
            parts = [reader.load(paths)]
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionAll(part)
        files = 1 + sum(one.bytes for one in drafts) // _FILE_BYTES
        writer = rows.coalesce(files).write.format(kind).options(**output.options)
        draft = f"{self._draft_of(batch)}-merged"
        (writer.partitionBy(*columns) if columns else writer).save(f"{folder.url}/{draft}")
        return self._drafted(output.name, draft, batch)

    # -- after the commit -----------------------------------------------------------------------------

    def publish(self, on_file: Callable[[], None] = lambda: None) -> None:
        """Give the files of the last manifest their names, but for those that wait for their time.

        `on_file`: called behind each file.
        """
        self._publish(self._due, on_file)

    def publish_all(self) -> None:
        """Publish also what waits for its time; only between two batches."""
        self._publish({draft.output for draft in self._files.drafts}, lambda: None)

    def _publish(self, outputs: Collection[str], on_file: Callable[[], None]) -> None:
        due = [draft for draft in self._files.drafts if draft.output in outputs]
        if due or self._merged:
            self._fence.check()
        for draft in due:
            with _publishing(draft):
                folder = self._folder(draft)
                for name, final in draft.files.items():
                    folder.move(f"{draft.draft}/{name}", final)
                    on_file()
                folder.delete(draft.draft)
        for draft in self._merged:
            self._folder(draft).delete(draft.draft)
        self._merged = []
        kept = tuple(draft for draft in self._files.drafts if draft.output not in outputs)
        self._files = replace(self._files, drafts=kept)
        self._published_at.update(dict.fromkeys(outputs, self._clock()))

    def _folder(self, draft: Draft) -> Folder:
        """The folder of a draft; that of an output may be another one since it was written."""
        known = self._folders.get(draft.output)
        return known if known and known.url == draft.folder else self._open_folder(draft.folder)


@contextmanager
def _publishing(draft: Draft) -> Iterator[None]:
    try:
        yield
    except (OSError, Py4JError, PySparkException) as error:
        raise BatchFailed(
            f"The files of output {draft.output!r} could not be published",
            code="OUTPUT_NOT_PUBLISHED",
            got=f"batch {draft.batch}, {draft.folder}: {reason(str(error))}",
            why="They are committed, but readers do not see all of them",
            do="Check the rights and the space; a start with the same checkpoint then publishes them",
            details={"output": draft.output, "batch_id": draft.batch},
        ) from error


def _final(batch: int, number: int, file: str) -> str:
    """What a file is called when it is published; folders of partitions stay."""
    folder, _, name = file.rpartition("/")
    published = f"part-{batch:010d}-{number:05d}.{name.partition('.')[2]}"
    return f"{folder}/{published}" if folder and not folder.startswith("/") else published


def _refuse_other_format(output: Output, folder: Folder) -> None:
    """Readers take all files of a folder for files of one format."""
    ends = {"text": "txt"}.get(str(output.format).lower(), str(output.format).lower())
    found = next((name for name, _ in folder.sizes() if is_shown(name) and _PUBLISHED.search(name)), None)
    if found is not None and ends not in found.rpartition("/")[2].split(".")[1:]:
        raise FlowError(
            f"Output {output.name!r} would mix files of two formats",
            code="OUTPUT_DIRECTORY_IN_USE",
            got=f"{folder.url} holds {found}; the format is {output.format}",
            why="Nothing could read the directory as a whole",
            do="Write to another directory: the query goes on with it where it was",
        )


def _refuse_foreign_files(output: str, folder: Folder, has_written: bool) -> None:
    # Spark reads a folder with this log by the log alone, so it would not see our files.
    log = "_spark_metadata/"
    seen = (name for name, _ in folder.sizes() if is_shown(name) or name.startswith(log))
    found = next((name for name in seen if not (has_written and _PUBLISHED.search(name))), None)
    if found is None:
        return
    raise FlowError(
        f"Output {output!r} would mix with files of another run",
        code="OUTPUT_DIRECTORY_IN_USE",
        got=f"{folder.url} holds {found}, which this checkpoint has not written",
        why="Rows would be read twice, or not at all: with `_spark_metadata` Spark reads only what it lists",
        do="Pass the checkpoint of that run, or write to another directory",
    )
