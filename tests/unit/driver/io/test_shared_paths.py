from __future__ import annotations

import pytest
from tests.unit.messages.expecting import expect

from tidegate.driver.io.shared_paths import SHARED_PATHS, refuse_unshared

CLUSTERS = ["spark://host:7077", "yarn", "k8s://https://host:443"]


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize(
    "path", ["ck", "/data/ck", "file:/data/ck", "file:///data/ck", "/data/a:b", "memory://ck"]
)
def test_a_cluster_refuses_a_checkpoint_on_the_disk_of_one_machine(path: str, master: str) -> None:
    error = expect("CHECKPOINT_NOT_SHARED", lambda: refuse_unshared(path, master, ""))
    assert master in str(error)
    assert SHARED_PATHS in str(error)


@pytest.mark.parametrize("path", ["hdfs://names/ck", "s3://bucket/ck", "hdfs:/ck", "abfss://c@a/ck"])
@pytest.mark.parametrize("master", CLUSTERS)
def test_a_cluster_takes_a_checkpoint_on_a_shared_store(path: str, master: str) -> None:
    refuse_unshared(path, master, "")


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4,2]", "local-cluster[2,1,1024]"])
@pytest.mark.parametrize("path", ["ck", "/data/ck", "file:///data/ck"])
def test_workers_on_this_machine_reach_its_disk(path: str, master: str) -> None:
    refuse_unshared(path, master, "")


@pytest.mark.parametrize("path", ["/mnt/nfs/ck", "file:///mnt/nfs/ck", "/mnt/nfs", "/mnt/nfs/a/../ck"])
def test_a_folder_that_all_machines_mount_is_taken(path: str) -> None:
    refuse_unshared(path, "spark://host:7077", "/scratch, file:///mnt/nfs/")


@pytest.mark.parametrize("path", ["/mnt/nfs2/ck", "/mnt", "/mnt/nfs/../ck"])
def test_a_folder_beside_the_mounts_is_refused(path: str) -> None:
    expect("CHECKPOINT_NOT_SHARED", lambda: refuse_unshared(path, "yarn", "/mnt/nfs"))
