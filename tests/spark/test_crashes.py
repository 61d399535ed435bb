"""A run may be killed anywhere and started again: nothing is lost, and nothing comes twice.

A kill after each thing that a batch writes in `make test`; those of a left join around its output, and kills
at seeded places, in `make soak`. A failure of the latter is a seed, and so a command:
TIDEGATE_CRASH_SEED=17 make soak ARGS="-k seeded -s"
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from tests.spark.crash_chain import (
    Kill,
    check_result,
    check_rows,
    halted,
    run,
    run_to_the_end,
    survive,
    unreferenced,
)
from tests.spark.crash_input import BATCHES, WHERE, Case, prepare
from tests.spark.crash_runner import STEPS

from tidegate.state.checkpoint import Checkpoint

#: Twelve chains of four kills each.
SOAK_CHAINS, KILLS_PER_CHAIN = 12, 4
PLACES = (*STEPS, "writing", "spilling", "spark-commit")
FIRST_SEED = int(os.environ.get("TIDEGATE_CRASH_SEED", "1"))


def test_a_join_survives_kills_after_its_plan_its_task_writes_and_its_manifest_while_keys_move(
    tmp_path: Path,
) -> None:
    kills = [Kill("planned", 1), Kill("writing", 2), Kill("committed", 4)]
    survive(tmp_path / "run", Case("left", None, seed=1), kills, "--restless")


@pytest.mark.parametrize(
    ("kills", "settled"),
    [
        # Nothing has begun: the next run has a batch without rows, which releases the same.
        ([Kill("committed", BATCHES - 1)], 0),
        # The commit behind the last batch has no batch of Spark; two starts in a row find it unfinished.
        ([Kill("planned", BATCHES), Kill("sunk", BATCHES)], 1),
    ],
    ids=["before", "within"],
)
def test_a_left_join_survives_kills_around_the_commit_that_settles(
    tmp_path: Path, kills: list[Kill], settled: int
) -> None:
    home = tmp_path / "run"
    survive(home, Case("left", None, seed=6), kills)
    manifest = Checkpoint(str(home / "checkpoint")).manifests.load_latest()
    assert manifest is not None
    assert manifest.batch == manifest.spark_batch.number + settled


@pytest.mark.parametrize(
    ("place", "more"),
    [("sunk", ["--written"]), ("reported", []), ("committed", [])],
    ids=["behind a write", "before the put", "before publishing"],
)
def test_a_driver_that_was_halted_and_replaced_adds_nothing_when_it_wakes_up(
    tmp_path: Path, place: str, more: list[str]
) -> None:
    home, case = tmp_path / "run", Case("inner", None, seed=8)
    prepare(home, case.seed)
    with halted(home, *case.arguments(), *more, "--halt", f"{place}:1") as zombie:
        # The kernel keeps the lock of a driver that is only halted; a lease would have run out.
        (home / "checkpoint/tidegate/lock").unlink()
        run_to_the_end(home, *case.arguments(), *more)
        check_result(home, case)
        code, told = zombie()
    assert code != 0
    assert "CHECKPOINT_IN_USE" in told
    check_result(home, case)
    assert all(path.is_file() for path in (home / "out").glob("[!.]*"))


@pytest.mark.parametrize("more", [[], ["--written"]], ids=["linked", "written"])
def test_kills_around_publishing_lose_nothing_and_double_nothing(tmp_path: Path, more: list[str]) -> None:
    kills = [Kill("spilling", 1), Kill("committed", 2), Kill("publishing", 3)]
    survive(tmp_path / "run", Case("inner", None, seed=9), kills, *more)


def test_files_that_several_batches_hold_back_survive_kills(tmp_path: Path) -> None:
    home, case = tmp_path / "run", Case("inner", None, seed=10)
    prepare(home, case.seed)
    waits = ("--commit-every", "1 hour")
    # With two batches held back; with them published by the start, and two more; while all are merged.
    for kill in (Kill("published", 1), Kill("committed", 3), Kill("publishing", BATCHES)):
        code, told = run(home, *case.arguments(), *waits, *kill.arguments())
        assert code == -signal.SIGKILL, f"{kill} did not happen (exit {code}):\n{told}"
        assert list((home / "out/.tidegate").glob("0*")), kill
    run_to_the_end(home, *case.arguments(), *waits)
    check_result(home, case)
    assert not list((home / "out/.tidegate").glob("0*"))


@pytest.mark.soak
def test_a_left_join_survives_kills_around_its_output_one_of_them_in_a_replay(tmp_path: Path) -> None:
    kills = [Kill("materialised", 1), Kill("sunk", 1), Kill("spark-commit", 4)]
    survive(tmp_path / "run", Case("left", WHERE, seed=2), kills)


def test_owed_work_survives_kills_in_the_rush_and_while_it_is_paid_and_keys_move(tmp_path: Path) -> None:
    home, case = tmp_path / "run", Case("inner", None, seed=4)
    prepare(home, case.seed)
    for kill in (Kill("sunk", 3), Kill("materialised", BATCHES + 1)):
        code, told = run(home, *case.arguments(), "--repair", "--restless", *kill.arguments())
        assert code == -signal.SIGKILL, f"{kill} did not happen (exit {code}):\n{told}"
        manifest = Checkpoint(str(home / "checkpoint")).manifests.load_latest()
        assert manifest is not None
        assert manifest.debts
    code, told = run(home, *case.arguments(), "--repair", "--restless")
    assert code == 0, told
    check_rows(home, case)


@pytest.mark.parametrize(
    "master", ["local[2,4]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.soak)]
)
def test_tasks_that_fail_after_they_have_written_are_retried_and_their_files_swept(
    tmp_path: Path, master: str
) -> None:
    # A left join, because its condition is judged inside the task, behind the step that writes the state.
    # Speculation makes the same two files of one task; Spark allows it only between machines, so see
    # test_attempts.py for that.
    home, case = tmp_path / "run", Case("left", None, seed=3)
    prepare(home, case.seed)
    code, told = run(home, *case.arguments(), "--master", master, "--failing-attempts")
    assert code == 0, told
    check_result(home, Case("left", WHERE, seed=3))
    assert unreferenced(home), "no attempt has left a file behind, so nothing was shown"
    checkpoint = Checkpoint(str(home / "checkpoint"))
    checkpoint.open("test")
    checkpoint.recover()
    checkpoint.close()
    assert not unreferenced(home)


def chain_of(seed: int) -> tuple[Case, list[Kill]]:
    """A case and places to die, in the order of batches; two in one batch: the second hits the replay."""
    chance = random.Random(seed)
    case = Case(chance.choice(("inner", "left")), chance.choice((None, WHERE)), seed)
    kills: list[Kill] = []
    batch = 0
    while len(kills) < KILLS_PER_CHAIN and batch < BATCHES - 1:
        earlier = {kill.step for kill in kills if kill.batch == batch}
        # A batch is planned once, and what a first try left behind cannot appear in the second.
        gone = earlier | {"planning"} if earlier else earlier
        place = chance.choice([place for place in PLACES if place not in gone])
        kills.append(Kill(place, batch, only_driver=chance.random() < 0.25))
        # A batch that is done never comes again; any other may be hit once more.
        done = place in ("committed", "spark-commit")
        batch += 1 if done else chance.choice((0, 1, 1, 2))
    return case, kills


def test_seeded_chains_hold_enough_kills_of_every_kind() -> None:
    kills = [kill for seed in range(1, 1 + SOAK_CHAINS) for kill in chain_of(seed)[1]]
    assert len(kills) >= 40
    assert {kill.step for kill in kills} == set(PLACES)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SOAK_CHAINS))
def test_a_join_survives_a_seeded_chain_of_kills(tmp_path: Path, seed: int) -> None:
    case, kills = chain_of(seed)
    print(f"seed {seed}: {case}, {kills}")
    # In every other chain partitions and keys move all the time.
    survive(tmp_path / "run", case, kills, *(["--restless"] if seed % 2 else []))
