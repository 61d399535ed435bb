"""Staged files that become an output: whole or not at all, and the same again on a replay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.driver.io import linked_output
from tidegate.errors import CheckpointInUse


class Held:
    """A checkpoint that this run holds, or has lost."""

    def __init__(self, token: str, lost: bool = False) -> None:
        self.token, self.lost = token, lost

    def check(self) -> None:
        if self.lost:
            raise CheckpointInUse("taken over", code="CHECKPOINT_IN_USE")


FENCE = Held("this")


def staged(folder: Path, *texts: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    files = [folder / f"{number}.parquet" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return [str(file) for file in files]


def shown(folder: Path) -> dict[str, list[str]]:
    """What a reader finds: batch → texts of its files."""
    return {
        batch.name: sorted(file.read_text() for file in batch.glob("*.parquet"))
        for batch in folder.iterdir()
        if not batch.name.startswith(".")
    }


def test_linked_files_outlive_the_staged_ones(tmp_path: Path) -> None:
    files = staged(tmp_path, "a", "b")
    assert linked_output.publish(files, str(tmp_path / "out"), 3, FENCE)
    for file in files:
        os.remove(file)
    assert shown(tmp_path / "out") == {"batch=3": ["a", "b"]}
    assert (tmp_path / "out/batch=3/_SUCCESS").exists()


def test_a_replay_takes_the_place_of_the_first_attempt(tmp_path: Path) -> None:
    linked_output.publish(staged(tmp_path, "a", "b", "c"), str(tmp_path / "out"), 3, FENCE)
    linked_output.publish(staged(tmp_path, "d"), str(tmp_path / "out"), 3, FENCE)
    assert shown(tmp_path / "out") == {"batch=3": ["d"]}


def test_what_died_before_it_was_shown_is_seen_by_nobody_and_goes_with_a_second_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(draft: str, target: str) -> None:
        raise KeyboardInterrupt

    half = staged(tmp_path, "half")
    with monkeypatch.context() as patch:
        patch.setattr(linked_output, "_show", die)
        with pytest.raises(KeyboardInterrupt):
            linked_output.publish(half, str(tmp_path / "out"), 0, FENCE)
    assert shown(tmp_path / "out") == {}
    linked_output.publish(staged(tmp_path, "whole"), str(tmp_path / "out"), 0, FENCE)
    assert shown(tmp_path / "out") == {"batch=0": ["whole"]}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["batch=0"]


def test_a_disk_that_cannot_link_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert not linked_output.publish(staged(tmp_path, "a"), str(tmp_path / "out"), 0, FENCE)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_run_that_lost_its_checkpoint_while_it_linked_shows_nothing(tmp_path: Path) -> None:
    heir, zombie = Held("heir"), Held("zombie", lost=True)
    assert linked_output.publish(staged(tmp_path, "a"), str(tmp_path / "out"), 1, heir)
    with pytest.raises(CheckpointInUse):
        linked_output.publish(staged(tmp_path / "its", "b", "c"), str(tmp_path / "out"), 1, zombie)
    assert shown(tmp_path / "out") == {"batch=1": ["a"]}
