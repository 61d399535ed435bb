"""The folder of an output, on a local disk or on any file system of Spark.

Python itself reads and changes local folders: a call into Java takes far longer than a rename.

Guarantee of `move`: it may be repeated, also by two runs at once. A file that has left its old place was
moved before, so nothing happens. A file that is in its new place already stays as it is.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


class Folder(ABC):
    """Files below one folder; their names are relative to it, with slashes."""

    #: With its scheme.
    url: str

    @abstractmethod
    def sizes(self, below: str = "") -> Iterator[tuple[str, int]]:
        """All files below a folder in it, relative to that one, with their bytes, in any order."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Move a file; see the module docstring."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file or folder, if it is there."""


class LocalFolder(Folder):
    """A folder on a disk of this machine."""

    def __init__(self, path: str):
        self.path: str = path
        self.url = f"file:{path}"

    def sizes(self, below: str = "") -> Iterator[tuple[str, int]]:
        top = os.path.join(self.path, below) if below else self.path
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                yield os.path.relpath(path, top), os.path.getsize(path)

    def move(self, source: str, target: str) -> None:
        old, new = os.path.join(self.path, source), os.path.join(self.path, target)
        os.makedirs(os.path.dirname(new), exist_ok=True)
        try:
            os.rename(old, new)
        except FileNotFoundError:
            return

    def delete(self, name: str) -> None:
        path = os.path.join(self.path, name)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.exists(path):
            os.remove(path)


class HadoopFolder(Folder):
    """A folder that only Spark's Java side reaches. Object stores copy where others rename."""

    def __init__(self, jvm: Any, system: Any, url: str):
        self._jvm, self._system = jvm, system
        self.url = url

    def sizes(self, below: str = "") -> Iterator[tuple[str, int]]:
        top = self._path(below)
        if not self._system.exists(top):
            return
        start = len(str(top.toString())) + 1
        found = self._system.listFiles(top, True)
        while found.hasNext():
            one = found.next()
            yield str(one.getPath().toString())[start:], int(one.getLen())

    def move(self, source: str, target: str) -> None:
        old, new = self._path(source), self._path(target)
        if not self._system.exists(old):
            return
        if self._system.exists(new):
            # A copy that was made before its source could be deleted.
            self._system.delete(old, False)
            return
        self._system.mkdirs(new.getParent())
        if not self._system.rename(old, new) and self._system.exists(old):
            raise OSError(f"{old} could not be renamed to {new}")

    def delete(self, name: str) -> None:
        self._system.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.url}/{name}" if name else self.url)


def folder_at(spark: SparkSession, path: str) -> Folder:
    """The folder at a path as users write it, or at the url of a folder."""
    jvm: Any = spark._jvm
    given = jvm.org.apache.hadoop.fs.Path(path)
    system = given.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    whole = system.makeQualified(given)
    if system.getUri().getScheme() == "file":
        return LocalFolder(str(whole.toUri().getPath()))
    return HadoopFolder(jvm, system, str(whole.toString()))


def is_shown(name: str) -> bool:
    """Whether readers of data sets see this file: no part of its name begins with a dot or an underscore."""
    return not any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in name.split("/"))
