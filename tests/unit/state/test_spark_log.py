from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.state.samples import a_manifest, a_plan

from tidegate.errors import StateError
from tidegate.model.manifest import Manifest, SparkBatch
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.plan_log import PlanLog
from tidegate.state.spark_log import (
    SparkLog,
    commit_of,
    reads_nothing_new,
    refuse_other,
    unfinished_settling,
)
from tidegate.state.store.local import LocalStore
from tidegate.state.store.store import Store


def after(commit: int, spark_batch: int, checksum: str = "") -> Manifest:
    return replace(a_manifest(commit), spark_batch=SparkBatch(spark_batch, checksum))


# -- which commit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("commit", "spark_batch"), [(-1, -1), (0, 0), (9, 7)])
def test_the_next_batch_of_spark_gets_the_next_commit(commit: int, spark_batch: int) -> None:
    assert commit_of(SparkBatch(spark_batch + 1), after(commit, spark_batch)) == commit + 1


@pytest.mark.parametrize("commit", [7, 9])
def test_the_last_batch_of_spark_is_done_also_behind_commits_without_one(commit: int) -> None:
    assert commit_of(SparkBatch(7), after(commit, 7)) is None


def test_a_gap_names_the_newest_manifest() -> None:
    with pytest.raises(
        StateError,
        match=r"CHECKPOINT_MANIFEST_MISSING.*Spark batch 8 is missing.*0000000009\.json.*Spark batch 7",
    ):
        commit_of(SparkBatch(9), after(9, 7))


def test_a_gap_without_any_manifest_is_refused_too() -> None:
    with pytest.raises(
        StateError, match=r"CHECKPOINT_MANIFEST_MISSING.*batch 2 is missing.*Got: no manifest at all"
    ):
        commit_of(SparkBatch(3), after(-1, -1))


def test_a_batch_from_long_ago_means_that_sparks_log_is_gone() -> None:
    with pytest.raises(StateError, match=r"CHECKPOINT_SPARK_LOG_OUTDATED.*batch 0,.*folder `spark`"):
        commit_of(SparkBatch(0), after(9, 7))


def test_the_id_of_the_query_is_that_of_spark_and_a_batch_run_has_none(tmp_path: Path) -> None:
    assert SparkLog(LocalStore(str(tmp_path))).query_id == ""
    (tmp_path / "metadata").write_text('{"id":"b7e1-4"}')
    assert SparkLog(LocalStore(str(tmp_path))).query_id == "b7e1-4"
    (tmp_path / "metadata").write_text('{"id')
    with pytest.raises(StateError, match=r"CHECKPOINT_FILE_DAMAGED.*metadata"):
        _ = SparkLog(LocalStore(str(tmp_path))).query_id


# -- idle batches --------------------------------------------------------------------------------------------


def entry(streams: str, heartbeat: int, at_ms: int = 0) -> bytes:
    return f'v1\n{{"batchTimestampMs":{at_ms}}}\n{streams}\n{heartbeat}'.encode()


def test_a_batch_reads_nothing_new_where_only_heartbeat_and_clock_have_moved(store: Store) -> None:
    log = SparkLog(store)
    for number, written in enumerate(
        [entry('{"logOffset":3}\n-', 7), entry('{"logOffset":3}\n-', 8, 5), entry('{"logOffset":4}\n-', 9)]
    ):
        store.write_atomic(f"offsets/{number}", written)
    first, idle, more = (log.batch(number) for number in range(3))
    assert reads_nothing_new(idle, first)
    assert not reads_nothing_new(more, idle)
    assert idle.checksum != first.checksum


def test_where_spark_knows_sources_by_name_their_lines_count_and_not_their_order(store: Store) -> None:
    log = SparkLog(store)
    for number, lines in enumerate(
        [
            'a:{"logOffset":3}\nb:-\ntidegate_heartbeat:7',
            'tidegate_heartbeat:8\nb:-\na:{"logOffset":3}',
            'a:{"logOffset":4}\nb:-\ntidegate_heartbeat:9',
        ]
    ):
        store.write_atomic(f"offsets/{number}", f"v2\n{{}}\n{lines}".encode())
    store.write_atomic("offsets/3", entry("-", 7))
    first, idle, more = (log.batch(number) for number in range(3))
    assert reads_nothing_new(idle, first)
    assert not reads_nothing_new(more, idle)
    assert [log.knows_names(number) for number in range(5)] == [True, True, True, False, False]


@pytest.mark.parametrize("written", [b"", b"v1", b"v1\n{}", b"v1\n{}\n7", b"v2\n{}\n{}\n7"])
def test_an_entry_in_another_form_is_never_idle(store: Store, written: bytes) -> None:
    store.write_atomic("offsets/0", written)
    found = SparkLog(store).batch(0)
    assert found.input == ""
    assert not reads_nothing_new(found, found)
    assert not reads_nothing_new(SparkLog(store).batch(1), SparkBatch(0))


def test_batches_between_may_be_missing_if_all_of_them_were_idle() -> None:
    newest = replace(a_manifest(9), spark_batch=SparkBatch(7, "aaaa", "read to here"))
    idle = SparkBatch(10, "bbbb", "read to here")
    assert commit_of(SparkBatch(11, "cccc", "further"), newest, idle) == 10
    for before in (None, SparkBatch(10, "bbbb", "further"), SparkBatch(10)):
        with pytest.raises(StateError, match="CHECKPOINT_MANIFEST_MISSING"):
            commit_of(SparkBatch(11, "cccc", "further"), newest, before)
    with pytest.raises(StateError, match="CHECKPOINT_MANIFEST_MISSING"):
        commit_of(SparkBatch(12, "cccc", "further"), newest, idle)
    assert commit_of(SparkBatch(7, "aaaa", "read to here"), newest, SparkBatch(6)) is None


# -- whether it is the same batch ----------------------------------------------------------------------------


def test_a_batch_is_known_by_its_entry_in_sparks_log(store: Store) -> None:
    log = SparkLog(store)
    assert log.batch(0) == SparkBatch(0)
    store.write_atomic("offsets/0", b"v1\n{}\n{}")
    store.write_atomic("offsets/1", b"v1\n{}\n-")
    assert log.batch(0) == log.batch(0)
    assert log.batch(0).checksum not in ("", log.batch(1).checksum)


def test_another_batch_under_the_number_of_the_last_is_refused() -> None:
    newest = after(0, 0, "aaaa")
    assert commit_of(SparkBatch(0, "aaaa"), newest) is None
    with pytest.raises(
        StateError, match=r"CHECKPOINT_SPARK_BATCH_CHANGED.*Spark batch 0.*bbbb.*aaaa.*folder `spark`"
    ):
        commit_of(SparkBatch(0, "bbbb"), newest)


@pytest.mark.parametrize(("known", "found"), [("", "bbbb"), ("aaaa", ""), ("", "")])
def test_without_an_entry_there_is_nothing_to_compare(known: str, found: str) -> None:
    assert commit_of(SparkBatch(0, found), after(0, 0, known)) is None


@pytest.mark.parametrize(
    ("known", "found"),
    [(SparkBatch(3), SparkBatch(4)), (None, SparkBatch(3)), (SparkBatch(3), None)],
)
def test_a_plan_of_another_batch_is_refused(known: SparkBatch | None, found: SparkBatch | None) -> None:
    refuse_other(known, known)
    with pytest.raises(StateError, match="CHECKPOINT_SPARK_BATCH_CHANGED"):
        refuse_other(known, found)


@pytest.mark.parametrize("scheme", ["", "local://"], ids=["local", "remote"])
def test_a_start_refuses_a_log_that_has_another_batch(tmp_path: Path, scheme: str) -> None:
    checkpoint = Checkpoint(f"{scheme}{tmp_path}/ck")
    checkpoint.open("test")
    offsets = checkpoint.spark_log.store
    offsets.write_atomic("offsets/0", b"first")
    checkpoint.commit(replace(a_manifest(0), spark_batch=checkpoint.spark_log.batch(0)))
    assert checkpoint.recover() is not None
    offsets.delete("offsets/0")
    with pytest.raises(StateError, match=r"CHECKPOINT_SPARK_LOG_OUTDATED.*ends before batch 0.*offsets/0"):
        checkpoint.recover()
    offsets.write_atomic("offsets/1", b"purged the one before")
    assert checkpoint.recover() is not None
    offsets.write_atomic("offsets/0", b"second")
    with pytest.raises(StateError, match="CHECKPOINT_SPARK_BATCH_CHANGED"):
        checkpoint.recover()
    checkpoint.close()


@pytest.mark.parametrize(
    ("entry", "folder"),
    [
        (b'v1\n{}\n{"sequence":9}\n{"logOffset":4}\n7', "1"),
        (b'v2\n{}\norders:{"logOffset":4}\nkafka:{"t":{"0":9}}\ntidegate_heartbeat:7', "orders"),
    ],
    ids=["by position", "by name"],
)
def test_a_log_that_lacks_part_of_a_list_of_source_files_is_refused(
    store: Store, entry: bytes, folder: str
) -> None:
    log = SparkLog(store)
    log.check_whole(SparkBatch())
    store.write_atomic("offsets/3", entry)
    names = ["0", "1", "2.compact", "3", "4", "5"]
    for lacking in ("3", "4", "2.compact", None):
        for name in names:
            store.delete(f"sources/{folder}/{name}")
            if name != lacking:
                store.write_atomic(f"sources/{folder}/{name}", b"v1")
        if lacking is None:
            log.check_whole(log.batch(3))
            continue
        number = lacking.removesuffix(".compact")
        with pytest.raises(StateError, match=rf"CHECKPOINT_FILE_MISSING.*sources/{folder}/{number}"):
            log.check_whole(log.batch(3))


# -- commits without a batch ---------------------------------------------------------------------------------


def test_only_a_plan_without_a_batch_is_an_unfinished_settling(store: Store) -> None:
    plans = PlanLog(store)
    assert unfinished_settling(after(4, 4), plans) is None
    plans.write(replace(a_plan(5), spark_batch=SparkBatch(5)))
    assert unfinished_settling(after(4, 4), plans) is None
    settling = replace(a_plan(6), spark_batch=None)
    plans.write(settling)
    assert unfinished_settling(after(5, 5), plans) == settling
    assert unfinished_settling(after(6, 5), plans) is None, "it has its manifest"


@pytest.mark.parametrize(
    ("entries", "beats"),
    [
        ({}, 0),
        ({"9": b'v1\n{}\n{"logOffset":3}\n17', "10": b'v1\n{}\n{"logOffset":3}\n21'}, 21),
        ({"0": b'v2\n{}\ntidegate_heartbeat:8\norders:{"logOffset":3}'}, 8),
        ({"0": b'v1\n{}\n{"logOffset":3}\n-'}, 0),
    ],
)
def test_the_newest_heartbeat_of_the_log(store: Store, entries: dict[str, bytes], beats: int) -> None:
    for name, entry in entries.items():
        store.write(f"offsets/{name}", [entry])
    assert SparkLog(store).beats() == beats
