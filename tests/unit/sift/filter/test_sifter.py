from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidegate.errors import FlowError
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

DOMAIN = Domain(np.array([40.5, -74.3]), np.array([41.0, -73.7]))
TREE = Regions(
    DOMAIN,
    np.array([0, 1], np.int32),
    np.array([40.7, -73.9]),
    np.array([[~0, 1], [~1, ~2]], np.int32),
)
AXES = (Axis("lat"), Axis("lon"))
SIFTER = Sifter(AXES, TREE, np.array([0.1, 1 / 3, 1.0]), 7, 0.5, 0.25, 0.01, "pickups")


def chain(regions: int, axes: int = 2) -> Regions:
    """Regions cut off one after the other: the deepest tree there is."""
    cuts = regions - 1
    children = np.stack([~np.arange(cuts), np.r_[1:cuts, ~cuts]], axis=1) if cuts else np.zeros((0, 2))
    return Regions(
        Domain(np.zeros(axes), np.ones(axes)),
        (np.arange(cuts) % axes).astype(np.int32),
        np.linspace(0, 1, cuts),
        children.astype(np.int32),
    )


def test_both_forms_come_back_exactly() -> None:
    assert Sifter.from_bytes(SIFTER.to_bytes()) == SIFTER
    assert Sifter.from_json(json.loads(json.dumps(SIFTER.to_json()))) == SIFTER
    again = Sifter.read(SIFTER.to_bytes())
    assert again == Sifter.read(json.dumps(SIFTER.to_json()).encode())
    assert (again.thresholds == SIFTER.thresholds).all()
    assert (again.version, again.z, again.fairness, again.sample_share) == (7, 0.5, 0.25, 0.01)
    assert hash(again) == hash(SIFTER)
    assert again != replace(SIFTER, version=8)


def test_a_cut_at_infinity_is_null_in_json() -> None:
    sifter = replace(SIFTER, regions=replace(TREE, at=np.array([np.inf, -73.9])))
    text = json.dumps(sifter.to_json(), allow_nan=False)
    assert json.loads(text)["cuts"][0]["at"] is None
    assert Sifter.read(text.encode()) == sifter == Sifter.read(sifter.to_bytes())


def test_people_can_read_the_cuts() -> None:
    found = SIFTER.to_json()
    assert found["cuts"] == [
        {"column": "lat", "at": 40.7, "below": "region 0", "above": "cut 1"},
        {"column": "lon", "at": -73.9, "below": "region 1", "above": "region 2"},
    ]
    assert found["thresholds"] == [0.1, 1 / 3, 1.0]
    assert found["axes"][0] == {
        "column": "lat",
        "kind": "number",
        "categories": [],
        "low": 40.5,
        "high": 41.0,
    }


@pytest.mark.parametrize("regions", [16, 100])
def test_the_binary_form_takes_at_most_24_bytes_a_region_and_dimension(regions: int) -> None:
    sifter = Sifter(AXES, chain(regions), np.full(regions, 0.3), name="pickups")
    assert len(sifter.to_bytes()) <= 24 * regions * 2


def test_categories_and_very_many_regions_travel_too() -> None:
    axes = (Axis("x"), Axis("kind", "category", ("Ärger", "true")))
    few, many = (Sifter(axes, chain(n), np.linspace(0, 1, n)) for n in (3, 33_000))
    assert Sifter.from_json(few.to_json()) == few
    assert Sifter.from_bytes(many.to_bytes()) == many


def test_the_first_sifter_passes_everything() -> None:
    sifter = Sifter.passing_everything(AXES, DOMAIN, sample_share=0.1)
    assert sifter.thresholds.tolist() == [0.0]
    assert Sifter.from_bytes(sifter.to_bytes()) == sifter == Sifter.from_json(sifter.to_json())


def test_thresholds_cannot_be_changed_from_outside() -> None:
    given = np.array([0.1, 0.2, 0.3])
    sifter = replace(SIFTER, thresholds=given)
    given[0] = 1.0
    assert sifter.thresholds[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        sifter.thresholds[0] = 0.5


def test_any_changed_byte_is_noticed() -> None:
    data = SIFTER.to_bytes()
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x20
        with pytest.raises(FlowError, match="SIFTER_UNREADABLE"):
            Sifter.from_bytes(bytes(damaged))


@pytest.mark.parametrize("length", [0, 3, 4, 20, 60, 100])
def test_bytes_that_were_cut_short_are_noticed(length: int) -> None:
    with pytest.raises(FlowError, match="SIFTER_UNREADABLE"):
        Sifter.from_bytes(SIFTER.to_bytes()[:length])


def test_a_newer_format_is_named() -> None:
    data = bytearray(SIFTER.to_bytes())
    data[4] = 9
    with pytest.raises(FlowError, match=r"SIFTER_UNREADABLE.*format 9 of the binary form, not 2"):
        Sifter.from_bytes(bytes(data))
    with pytest.raises(FlowError, match=r"SIFTER_UNREADABLE.*format 9 of the JSON form, not 2"):
        Sifter.from_json(SIFTER.to_json() | {"format": 9})


def test_lengths_that_do_not_add_up_are_noticed_even_with_a_right_checksum() -> None:
    content = bytearray(SIFTER.to_bytes()[:-4])
    struct.pack_into("<I", content, 8, 4)  # four regions
    with pytest.raises(FlowError, match=r"SIFTER_UNREADABLE.*4 regions over 2 axes"):
        Sifter.from_bytes(bytes(content) + struct.pack("<I", zlib.crc32(content)))


@pytest.mark.parametrize(
    "foreign", [b"", b"x,y\n1,2\n", b"\xff\xfe", b'{"x": 1}', b"[]", b'{"kind": "sifter"}']
)
def test_foreign_bytes_are_no_sifter(foreign: bytes) -> None:
    with pytest.raises(FlowError, match="SIFTER_UNREADABLE"):
        Sifter.read(foreign)


def test_json_with_something_missing_says_what() -> None:
    raw = SIFTER.to_json()
    del raw["thresholds"]
    with pytest.raises(FlowError, match=r"SIFTER_UNREADABLE.*'thresholds' is missing or unknown"):
        Sifter.from_json(raw)
    cut = {"column": "height", "at": 1.0, "below": "region 0", "above": "region 1"}
    with pytest.raises(FlowError, match=r"SIFTER_UNREADABLE.*'height' is missing or unknown"):
        Sifter.from_json(SIFTER.to_json() | {"cuts": [cut]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thresholds": np.array([0.1, 0.2])}, "for 3 regions"),
        ({"thresholds": np.array([0.1, 0.2, np.nan])}, "between 0 and 1"),
        ({"thresholds": np.array([0.1, 0.2, 1.1])}, "between 0 and 1"),
        ({"axes": (Axis("lat"),)}, "for 2 dimensions"),
        ({"axes": (Axis("lat"), Axis("lat"))}, "Name each column once"),
        ({"z": 1.5}, "invalid z"),
        ({"fairness": float("nan")}, "invalid fairness"),
        ({"sample_share": -0.1}, "invalid sample_share"),
        ({"version": -1}, "invalid version"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FlowError, match=f"SIFTER_INVALID.*{message}"):
        replace(SIFTER, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axis": np.array([0, 2], np.int32)}, "on an unknown axis"),
        ({"at": np.array([0.0, np.nan])}, "a cut at NaN"),
        ({"at": np.array([0.0, -np.inf])}, "below all numbers"),
        ({"at": np.array([0.0])}, "an axis and a point"),
        ({"children": np.array([[~0, ~1], [~1, ~2]], np.int32)}, "with two"),
        ({"children": np.array([[~0, 3], [~1, ~2]], np.int32)}, "without a parent"),
        ({"children": np.array([[~0, ~1], [~2, 1]], np.int32)}, "unreachable"),
    ],
)
def test_cuts_that_are_no_tree_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FlowError, match=f"SIFTER_INVALID.*{message}"):
        replace(SIFTER, regions=replace(TREE, **change))
