"""Drafts become published files: each row once, whatever died or was halted on the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.messages.expecting import a_stream, expect

import tidegate as tg
from tidegate.driver.io import publishing
from tidegate.driver.io.folders import LocalFolder
from tidegate.driver.io.publishing import Publisher, check_commit_every
from tidegate.errors import CheckpointInUse
from tidegate.model.codec import decode, encode
from tidegate.model.manifest import NO_FILES, OutputFiles


class Held:
    """A checkpoint that this run holds, or has lost."""

    def __init__(self, token: str, lost: bool = False) -> None:
        self.token, self.lost = token, lost

    def check(self) -> None:
        if self.lost:
            raise CheckpointInUse("taken over", code="CHECKPOINT_IN_USE")


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def opened(path: str) -> LocalFolder:
    return LocalFolder(path.removeprefix("file:"))


class Died(Exception):
    """The process ended here."""


def an_output(folder: Path, name: str = "near", **more: Any) -> tg.Output:
    return a_stream().write_to("parquet", str(folder), name=name, **more)


def a_publisher(
    *outputs: tg.Output,
    token: str = "this",
    files: OutputFiles = NO_FILES,
    clock: Clock | None = None,
    fence: Held | None = None,
) -> Publisher:
    """A run that starts on what a manifest says."""
    made = Publisher(outputs, fence or Held(token), opened, clock or Clock())
    made.recover(files)
    return made


def staged(folder: Path, *texts: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    files = [folder / f"{number}.parquet" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.unlink(missing_ok=True)  # It may have a link by now.
        file.write_text(text)
    return [str(file) for file in files]


def committed(run: Publisher, batch: int, ends: bool = False) -> OutputFiles:
    """What the manifest of a batch says; read back, as another run does."""
    session: Any = None
    run.conclude(session, batch, ends)
    return decode(OutputFiles, encode(run.files))


def shown(folder: Path) -> dict[str, str]:
    """What a reader finds: the text of each file by its name."""
    return {path.name: path.read_text() for path in sorted(folder.glob("[!.]*"))}


def hidden(folder: Path) -> Iterable[str]:
    return sorted(path.name for path in folder.glob(".tidegate/*"))


def test_files_are_seen_only_after_the_commit_flat_and_named_by_batch(tmp_path: Path) -> None:
    output = an_output(tmp_path / "out")
    run = a_publisher(output)
    assert run.link(output, staged(tmp_path / "in", "a", "b"), 12)
    committed(run, 12)
    assert shown(tmp_path / "out") == {}
    run.publish()
    assert shown(tmp_path / "out") == {
        "part-0000000012-00000.parquet": "a",
        "part-0000000012-00001.parquet": "b",
    }
    assert hidden(tmp_path / "out") == []
    assert run.files.drafts == ()


def test_published_files_outlive_the_staged_ones(tmp_path: Path) -> None:
    output = an_output(tmp_path / "out")
    run = a_publisher(output)
    files = staged(tmp_path / "in", "a")
    run.link(output, files, 0)
    os.remove(files[0])
    committed(run, 0)
    run.publish()
    assert list(shown(tmp_path / "out").values()) == ["a"]


@pytest.mark.parametrize("published", [0, 1, 2])
def test_what_a_dead_run_committed_is_published_once_by_the_next(tmp_path: Path, published: int) -> None:
    output = an_output(tmp_path / "out")
    dead = a_publisher(output, token="dead")
    dead.link(output, staged(tmp_path / "in", "a", "b"), 3)
    manifest = committed(dead, 3)

    def die_behind() -> None:
        if len(shown(tmp_path / "out")) == published:
            raise Died

    if published:
        with pytest.raises(Died):
            dead.publish(die_behind)
    assert len(shown(tmp_path / "out")) == published
    for _ in range(2):
        a_publisher(output, token="heir", files=manifest)
        assert sorted(shown(tmp_path / "out").values()) == ["a", "b"]
        assert hidden(tmp_path / "out") == []


def test_a_published_file_that_was_taken_away_does_not_come_again(tmp_path: Path) -> None:
    output = an_output(tmp_path / "out")
    run = a_publisher(output)
    run.link(output, staged(tmp_path / "in", "a"), 0)
    manifest = committed(run, 0)
    run.publish()
    (tmp_path / "out/part-0000000000-00000.parquet").unlink()
    a_publisher(output, token="next", files=manifest)
    assert shown(tmp_path / "out") == {}


def test_what_no_manifest_names_is_deleted(tmp_path: Path) -> None:
    output = an_output(tmp_path / "out")
    dead = a_publisher(output, token="dead")
    dead.link(output, staged(tmp_path / "in", "half"), 0)
    heir = a_publisher(output, token="heir")
    assert hidden(tmp_path / "out") == []
    heir.link(output, staged(tmp_path / "in", "whole"), 0)
    committed(heir, 0)
    heir.publish()
    assert list(shown(tmp_path / "out").values()) == ["whole"]


def test_a_run_that_was_halted_behind_its_commit_changes_nothing_when_it_wakes_up(tmp_path: Path) -> None:
    output, fence = an_output(tmp_path / "out"), Held("zombie")
    zombie = a_publisher(output, fence=fence)
    zombie.link(output, staged(tmp_path / "in", "a"), 1)
    manifest = committed(zombie, 1)
    heir = a_publisher(output, token="heir", files=manifest)
    heir.link(output, staged(tmp_path / "in", "b"), 2)
    before = shown(tmp_path / "out"), hidden(tmp_path / "out")
    fence.lost = True
    with pytest.raises(CheckpointInUse):
        zombie.publish()
    fence.lost = False  # It was halted just behind the check.
    zombie.publish()
    assert (shown(tmp_path / "out"), hidden(tmp_path / "out")) == before


def test_files_in_folders_of_partitions_stay_in_them(tmp_path: Path) -> None:
    home = tmp_path / "out/.tidegate/0000000004-this/k=1/_batch=2"
    home.mkdir(parents=True)
    (home / "part-00003-ab.c000.snappy.parquet").write_text("a")
    (home / ".part-00003-ab.c000.snappy.parquet.crc").write_text("sum")
    output = an_output(tmp_path / "out", partition_by=["k", "_batch"])
    run = Publisher([output], Held("this"), opened, Clock())
    run._add(run._drafted("near", ".tidegate/0000000004-this", 4))
    committed(run, 4)
    run.publish()
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    name = "k=1/_batch=2/part-0000000004-00000.c000.snappy.parquet"
    assert [str(path.relative_to(tmp_path / "out")) for path in found] == [name]


def test_a_disk_that_cannot_link_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    output = an_output(tmp_path / "out")
    run = a_publisher(output)
    assert not run.link(output, staged(tmp_path / "in", "a"), 0)
    assert committed(run, 0).drafts == ()
    assert (shown(tmp_path / "out"), hidden(tmp_path / "out")) == ({}, [])


def test_a_disk_that_refuses_to_publish_is_an_error_with_output_and_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(13, "Permission denied", target)

    output = an_output(tmp_path / "out")
    run = a_publisher(output)
    run.link(output, staged(tmp_path / "in", "a"), 5)
    manifest = committed(run, 5)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(tg.TidegateError, match=r"OUTPUT_NOT_PUBLISHED.*Permission denied") as raised:
            a_publisher(output, token="next", files=manifest)
    assert (raised.value.details["output"], raised.value.details["batch_id"]) == ("near", 5)
    a_publisher(output, token="next", files=manifest)
    assert list(shown(tmp_path / "out").values()) == ["a"]


def test_a_draft_without_rows_is_dropped(tmp_path: Path) -> None:
    output = an_output(tmp_path / "out")
    run = a_publisher(output)
    run.link(output, staged(tmp_path / "in", ""), 7)
    run.drop(output, 7)
    assert committed(run, 7).drafts == ()
    assert (shown(tmp_path / "out"), hidden(tmp_path / "out")) == ({}, [])


# -- foreign files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["part-00000-ab.parquet", "day=1/x.csv", "_spark_metadata/0"])
def test_a_folder_with_files_is_refused_by_a_new_checkpoint(tmp_path: Path, name: str) -> None:
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True)
    file.write_text("")
    error = expect("OUTPUT_DIRECTORY_IN_USE", lambda: a_publisher(an_output(tmp_path / "out")))
    assert "'near'" in str(error)
    assert f"{tmp_path / 'out'} holds {name}" in str(error)


@pytest.mark.parametrize(
    "name", [".tidegate/0000000000-dead/part-0.parquet", ".gitkeep", "_checkpoint/tidegate/lock", "_SUCCESS"]
)
def test_files_that_readers_ignore_are_not_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True)
    file.write_text("")
    a_publisher(an_output(tmp_path / "out"))
    assert file.exists() != name.startswith(".tidegate")


def test_a_new_output_of_an_old_checkpoint_is_refused_on_a_folder_with_files(tmp_path: Path) -> None:
    near, far = an_output(tmp_path / "near"), an_output(tmp_path / "far", name="far")
    run = a_publisher(near)
    run.link(near, staged(tmp_path / "in", "a"), 0)
    manifest = committed(run, 0)
    run.publish()
    # Our own files are known, also where the output has another name now, or its folder another place.
    a_publisher(an_output(tmp_path / "near", name="renamed"), token="next", files=manifest)
    shutil.copytree(tmp_path / "near", tmp_path / "moved")
    a_publisher(an_output(tmp_path / "moved"), token="next", files=manifest)
    (tmp_path / "moved/part-00001-ab.parquet").write_text("of Spark")
    moved = an_output(tmp_path / "moved")
    error = expect("OUTPUT_DIRECTORY_IN_USE", lambda: a_publisher(moved, token="next", files=manifest))
    assert "part-00001-ab.parquet" in str(error)
    staged(tmp_path / "far", "foreign")
    expect("OUTPUT_DIRECTORY_IN_USE", lambda: a_publisher(near, far, token="third", files=manifest))


def test_an_output_in_another_format_needs_another_folder(tmp_path: Path) -> None:
    near = an_output(tmp_path / "near")
    run = a_publisher(near)
    run.link(near, staged(tmp_path / "in", "a"), 0)
    manifest = committed(run, 0)
    run.publish()
    other = replace(near, format="json")
    error = expect("OUTPUT_DIRECTORY_IN_USE", lambda: a_publisher(other, token="next", files=manifest))
    assert "part-0000000000-00000" in str(error)
    a_publisher(replace(other, path=str(tmp_path / "elsewhere")), token="third", files=manifest)


# -- commit_every ---------------------------------------------------------------------------------------


def waiting(tmp_path: Path, clock: Clock) -> tuple[tg.Output, Publisher]:
    """A run that has written two batches, and published neither."""
    output = a_stream().write_to("json", str(tmp_path / "out"), name="near", commit_every="30 seconds")
    run = a_publisher(output, clock=clock)
    for batch in range(2):
        clock.seconds += 10
        run.link(output, staged(tmp_path / "in", f"{batch}"), batch)
        assert len(committed(run, batch).drafts) == batch + 1
        assert run.holds_back
        run.publish()
    assert shown(tmp_path / "out") == {}
    return output, run


def test_files_wait_until_their_time_has_come_also_without_new_rows(tmp_path: Path) -> None:
    clock = Clock()
    _, run = waiting(tmp_path, clock)
    assert not run.is_overdue
    clock.seconds += 10
    assert run.is_overdue
    committed(run, 2)
    assert not run.holds_back
    run.publish()
    assert list(shown(tmp_path / "out").values()) == ["0", "1"]
    clock.seconds += 29
    assert not run.is_overdue


@pytest.mark.parametrize("how", ["stop", "the end of the input", "the next start"])
def test_files_that_wait_are_published_by(tmp_path: Path, how: str) -> None:
    output, run = waiting(tmp_path, Clock())
    if how == "stop":
        run.publish_all()
    elif how == "the end of the input":
        committed(run, 2, ends=True)
        run.publish()
    else:
        a_publisher(output, token="next", files=decode(OutputFiles, encode(run.files)))
    assert list(shown(tmp_path / "out").values()) == ["0", "1"]
    assert hidden(tmp_path / "out") == []


def test_files_of_an_output_that_was_removed_or_moved_are_published_where_they_lie(tmp_path: Path) -> None:
    _, run = waiting(tmp_path, Clock())
    a_publisher(an_output(tmp_path / "moved"), token="next", files=run.files)
    assert list(shown(tmp_path / "out").values()) == ["0", "1"]


def test_a_goal_that_ends_before_files_are_published_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "writes_files", lambda spark, output: output.format == "json")
    session: Any = None
    slow = [a_stream().write_to("json", "out", commit_every="30 seconds")]
    check_commit_every(session, slow, tg.Goal("30 seconds"))
    error = expect(
        "GOAL_LATENCY_BELOW_COMMIT_EVERY", lambda: check_commit_every(session, slow, tg.Goal("29 seconds"))
    )
    assert "commit_every of 30 s, a latency of 29 s" in str(error)
    table = [a_stream().write_to("delta", "out", commit_every="30 seconds")]
    expect("OUTPUT_COMMIT_EVERY_WITHOUT_FILES", lambda: check_commit_every(session, table, None))
