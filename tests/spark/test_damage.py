"""A checkpoint that is damaged, used by another run, or CHECKPOINT_FLOW_CHANGED: a clear error, no wrong row.

One run over the first batches makes a checkpoint; each test restarts from a copy of it, with more input
waiting.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.crash_flow import source
from tests.spark.crash_input import SCHEMA, WITHIN_US, Case, expected, prepare, written
from tests.unit.state.mutations import KINDS, Mutation, mutate
from tests.unit.state.test_mutations import names

import tidegate as tg
from tidegate.driver.engine.engine import Engine
from tidegate.errors import CheckpointInUse, StateError, TidegateError
from tidegate.model.codec import to_plain
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.routing import together
from tidegate.route.assignment import Assignment
from tidegate.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASE = Case("left", None, seed=5)
#: Batches that the first run takes; the next one is batch 3.
FIRST = 3


@dataclass
class Home:
    """A copy of the first run's checkpoint and output; the input is shared."""

    spark: SparkSession
    input: Path
    folder: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def state(self) -> Path:
        return self.checkpoint / "tidegate"

    def flow(self, **changed: Any) -> tg.Stream:
        schema = changed.pop("schema", None)
        given = {"on": "k", "within": f"{WITHIN_US} microseconds", "how": CASE.how, **changed}
        left = source(self.spark, self.input, "left", schema)
        return left.join(source(self.spark, self.input, "right"), **given)

    def start(self, **changed: Any) -> Any:
        return tg.start(
            self.flow(**changed).write_to("parquet", str(self.folder / "out"), name="out"),
            checkpoint=str(self.checkpoint),
            available_now=True,
            partitions=4,
        )

    def run(self, **changed: Any) -> None:
        self.start(**changed).await_termination()

    def newest_piece(self, matched: bool = False) -> Piece:
        """Rows that the next batch must look at."""
        manifest = Checkpoint(str(self.checkpoint)).manifests.load_latest()
        assert manifest is not None
        assert manifest.batch == FIRST - 1
        pieces = [piece for piece in manifest.pieces if not piece.keyless and bool(piece.matched) >= matched]
        return max(pieces, key=lambda piece: (piece.last_us, piece.rows))

    def check_nothing_wrong_was_written(self, rows_before: list[Any]) -> None:
        assert written(self.folder) == rows_before
        assert set(rows_before) <= set(expected(self.input, CASE))


@pytest.fixture(scope="module")
def first_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A run that has taken the first batches, with two more waiting for the next run.

    It ends before it settles, so each of its commits has a batch of Spark.
    """
    home = tmp_path_factory.mktemp("damage")
    made = Home(spark, home / "input", home / "first")
    prepare(home / "all", CASE.seed)
    for side in ("left", "right"):
        (home / "input" / side).mkdir(parents=True)
    _deliver(home, range(FIRST))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "settle", lambda engine: None)
        made.run()
    assert len(written(made.folder)) > 500
    _deliver(home, range(FIRST, FIRST + 2))
    return made


def _deliver(home: Path, batches: range) -> None:
    for side in ("left", "right"):
        for batch in batches:
            (home / "all" / side / f"{batch}.parquet").rename(home / "input" / side / f"{batch}.parquet")


@pytest.fixture
def home(first_run: Home, tmp_path: Path) -> Home:
    shutil.copytree(first_run.folder, tmp_path / "copy")
    return Home(first_run.spark, first_run.input, tmp_path / "copy")


def flip(path: Path, at: int = 40) -> None:
    """Alter one byte in place, as a failing disk would."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def truncate(path: Path, at: int = 40) -> None:
    with path.open("r+b") as file:
        file.truncate(at)


def remove(path: Path, at: int = 0) -> None:
    path.unlink()


DAMAGES = (flip, truncate, remove)


def test_without_damage_a_restart_goes_on(home: Home) -> None:
    before = set(written(home.folder))
    home.run()
    after = written(home.folder)
    assert before < set(after) <= set(expected(home.input, CASE))
    assert len(after) == len(set(after))


def _refused(home: Home, words: str) -> None:
    rows = written(home.folder)
    with pytest.raises(StateError, match=words):
        home.run()
    home.check_nothing_wrong_was_written(rows)


def _batch_of(place: ByteRange) -> int:
    return int(Path(place.file).name.partition("-")[0])


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_is_an_error_with_file_and_batch(
    home: Home, damage: Callable[[Path, int], None]
) -> None:
    place = home.newest_piece().data
    damage(home.state / place.file, place.offset + 40)
    assert 0 <= _batch_of(place) < FIRST
    # A start looks which files are there, and a batch what is in those that it reads.
    found = "CHECKPOINT_FILE_MISSING" if damage is remove else f"Batch {FIRST} failed"
    _refused(home, rf"{found}.*{place.file}")


def test_damaged_matched_bits_are_an_error_with_file_and_batch(home: Home) -> None:
    place = next(iter(home.newest_piece(matched=True).matched.values()))
    flip(home.state / place.file, place.offset)
    _refused(home, rf"Batch {FIRST} failed.*{place.file} at offset {place.offset}")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_manifest_is_an_error_with_file_and_batch(
    home: Home, damage: Callable[[Path, int], None]
) -> None:
    name = f"manifests/{FIRST - 1:010d}.json"
    damage(home.state / name, 40)
    if damage is remove:
        _refused(home, rf"manifest with Spark batch {FIRST - 1} is missing.*manifests/{FIRST - 2:010d}\.json")
    else:
        _refused(home, rf"(?i)manifest (of batch )?{FIRST - 1}.*{name}")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_a_manifest_that_the_newest_builds_on_is_an_error(
    home: Home, damage: Callable[[Path, int], None]
) -> None:
    name = "manifests/0000000000.json"
    damage(home.state / name, 40)
    _refused(home, rf"Manifest {FIRST - 1} cannot be loaded.*{name}")


def test_a_lost_log_of_spark_is_an_error(home: Home) -> None:
    shutil.rmtree(home.checkpoint / "spark")
    _refused(home, r"CHECKPOINT_SPARK_LOG_OUTDATED.*ends before batch \d+,.*no entry")


@pytest.mark.parametrize("file", ["metadata", f"commits/{FIRST - 1}", f"offsets/{FIRST - 1}"])
def test_a_damaged_file_of_sparks_log_is_an_error_with_its_name(home: Home, file: str) -> None:
    flip(home.checkpoint / "spark" / file, 4)
    _refused(home, rf"CHECKPOINT_SPARK_(LOG_DAMAGED|BATCH_CHANGED).*{file}")


def test_another_version_of_sparks_log_is_refused_by_spark_and_said(home: Home) -> None:
    offsets = home.checkpoint / "spark" / "offsets" / str(FIRST - 1)
    offsets.write_text(offsets.read_text().replace("v1", "v99", 1))
    offsets.with_name(f".{offsets.name}.crc").unlink()
    _refused(home, rf"CHECKPOINT_SPARK_(LOG_DAMAGED|BATCH_CHANGED).*offsets/{FIRST - 1}")


def test_a_damaged_plan_of_a_batch_that_was_begun_is_an_error(home: Home) -> None:
    (home.state / f"plans/{FIRST:010d}.json").write_text("{}")
    _refused(home, rf"plan of batch {FIRST} is damaged.*plans/{FIRST:010d}\.json")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"within": "7 seconds"}, r"operators\.\w+\.within\S* 5000000 → 7000000"),
        ({"on": {"k": "id"}}, r'operators\.\w+\.keys\S* "k" → "id"'),
        ({"how": "inner"}, r'operators\.\w+\.how: "left" → "inner"'),
        ({"where": "v > w"}, r'operators\.\w+\.where: null → "v > w"'),
        ({"schema": SCHEMA.replace("v double", "v float")}, r'streams\.left\.schema\.v: "double" → "float"'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_changed_flow_is_refused_with_what_changed(home: Home, changed: dict[str, Any], says: str) -> None:
    rows = written(home.folder)
    with pytest.raises(StateError, match=f"CHECKPOINT_FLOW_CHANGED.*{says}"):
        home.run(**changed)
    home.check_nothing_wrong_was_written(rows)


def test_a_changed_number_of_partitions_is_refused_even_when_only_the_first_batch_was_begun(
    home: Home,
) -> None:
    begun = Checkpoint(str(home.checkpoint)).plans.read(0)
    assert begun is not None
    fresh = Home(home.spark, home.input, home.folder / "fresh")
    routing = {name: together(0, 2, (0, 1) * 3) for name in begun.routing}
    wanted = [to_plain(Assignment(2, (0, 1) * 3))]
    balance = {name: {**known, "wanted": wanted} for name, known in begun.balance.items()}
    assert set(balance) == set(routing)
    Checkpoint(str(fresh.checkpoint)).plans.write(replace(begun, routing=routing, balance=balance))
    with pytest.raises(StateError, match=r"CHECKPOINT_FLOW_CHANGED.*partitions\.\w+: 6 → 4"):
        fresh.run()
    assert not (fresh.folder / "out").exists()


@pytest.fixture
def rival(home: Home) -> Iterator[int]:
    """Another process that runs on the same checkpoint; its pid."""
    holding = f"""
import sys
from tidegate.state.checkpoint import Checkpoint
Checkpoint({str(home.checkpoint)!r}).open("rival")
print("held", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.kill()


def test_a_checkpoint_in_use_by_another_process_is_refused(home: Home, rival: int) -> None:
    rows = written(home.folder)
    with pytest.raises(CheckpointInUse, match=rf"CHECKPOINT_IN_USE.*held by rival, pid {rival}"):
        home.run()
    home.check_nothing_wrong_was_written(rows)


def test_a_second_query_on_a_running_one_is_refused_and_the_first_goes_on(home: Home) -> None:
    first = home.start()
    with pytest.raises(CheckpointInUse, match="CHECKPOINT_IN_USE"):
        home.start()
    first.await_termination()
    after = written(home.folder)
    assert len(after) == len(set(after))
    assert len(after) > 1000


def outcome(home: Home, mutation: Mutation, sound: list[Any]) -> str | None:
    """What is wrong with how a query takes the damage; None if nothing is."""
    began = time.monotonic()
    try:
        home.run()
    except TidegateError as error:
        said = str(error)
        # Spark itself names the file where its own log is damaged.
        of_spark = any(not file.startswith("tidegate/") for file in mutation.files)
        fine = of_spark or names(said, mutation)
        if error.code in ("EXPRESSION_FAILED", "INTERNAL_ERROR"):
            return f"taken for something else: {said}"
        wrong = None if fine else f"the file is not named: {said}"
        return wrong or (None if set(written(home.folder)) <= set(sound) else "rows that are wrong")
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        if time.monotonic() - began > HUNG_SECONDS:
            raise TimeoutError(f"{mutation} takes longer than {HUNG_SECONDS} seconds")
    return None if written(home.folder) == sound else "other rows"


#: Of a whole run, on a machine that is busy.
HUNG_SECONDS = 120
MUTATIONS, ROUNDS = 100, 10


@pytest.mark.soak
@pytest.mark.parametrize("number", range(ROUNDS))
def test_any_damage_is_an_error_with_the_file_or_gives_the_right_rows(
    first_run: Home, tmp_path: Path, number: int
) -> None:
    def copied(name: str) -> Home:
        shutil.copytree(first_run.folder, tmp_path / name)
        return Home(first_run.spark, first_run.input, tmp_path / name)

    whole = copied("sound")
    whole.run()
    found = []
    for seed in range(number, MUTATIONS, ROUNDS):
        home = copied(str(seed))
        kinds = sorted(KINDS.keys() - {"forge"})  # which makes other states, not damaged ones
        mutation = mutate(home.checkpoint, random.Random(seed), kinds)
        said = outcome(home, mutation, written(whole.folder))
        found += [] if said is None else [f"{seed}: {mutation.kind} of {', '.join(mutation.files)}: {said}"]
        shutil.rmtree(home.folder)
    assert found == []
