"""Any damage to any file of a checkpoint is an error of ours that names the file, or does no harm."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from tests.unit.state.mutations import Mutation, Seen, SparkFails, make, mutate, play

from tidegate.errors import TidegateError

#: Seconds after which a run counts as hung.
HUNG_SECONDS = 5


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound") / "ck"
    make(root)
    return root


@pytest.fixture(scope="module")
def right(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What a run sees without damage."""
    copied = tmp_path_factory.mktemp("right") / "ck"
    shutil.copytree(sound, copied)
    return play(copied)


@contextmanager
def in_time() -> Iterator[None]:
    def hung(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"It takes longer than {HUNG_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, HUNG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def complaint(root: Path, mutation: Mutation, right: Seen) -> str | None:
    """What is wrong with how a run takes the damage; None if nothing is."""
    try:
        with in_time():
            seen = play(root)
    except TidegateError as error:
        named = mutation.forged or names(str(error), mutation)
        return None if named else f"the file is not named: {error}"
    except SparkFails:
        return None
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None if mutation.forged else wrong(seen, right)


def names(said: str, mutation: Mutation) -> bool:
    """Whether an error names a damaged file, or the folder where one is missing."""
    tails = {"/".join(file.split("/")[-2:]).removeprefix("tidegate/") for file in mutation.files}
    folders = {tail.partition("/")[0].removesuffix("s") for tail in tails} | {"Spark"}
    lost = "missing" in said or "CHECKPOINT_SPARK" in said
    return any(tail in said for tail in tails) or (lost and any(folder in said for folder in folders))


def wrong(seen: Seen, right: Seen) -> str | None:
    """What differs although no error was raised. Reports may lack what is damaged, with a warning."""
    # Spark's log alone says what a batch reads that is not committed.
    after = replace(seen.after, spark_batch=right.after.spark_batch)
    if (seen.state, after) != (right.state, right.after):
        return f"another state: {seen.state.batch} → {seen.after.batch}"
    if (seen.rows, seen.rows_after) != (right.rows, right.rows_after):
        return "other rows"
    if any(report not in (None, right.telemetry.get(batch)) for batch, report in seen.telemetry.items()):
        return "other telemetry"
    if any(line not in right.receipts for line in seen.receipts):
        return f"other receipts: {seen.receipts}"
    if len(seen.receipts) > len(right.receipts):
        return "receipts count twice"
    if seen.receipts != right.receipts and not seen.warned:
        return "receipts are gone, and no warning"
    return None


def complaints(sound: Path, right: Seen, folder: Path, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        root = folder / "ck"
        shutil.copytree(sound, root)
        mutation = mutate(root, random.Random(seed))
        said = complaint(root, mutation, right)
        if said is not None:
            found.append(f"{seed}: {mutation.kind} of {', '.join(mutation.files)}: {said}")
        shutil.rmtree(root)
    return found


def test_any_damage_is_an_error_with_the_file_or_harmless(sound: Path, right: Seen, tmp_path: Path) -> None:
    assert complaints(sound, right, tmp_path, range(300)) == []


@pytest.mark.soak
def test_much_more_damage(sound: Path, right: Seen, tmp_path: Path) -> None:
    assert complaints(sound, right, tmp_path, range(10_000)) == []
