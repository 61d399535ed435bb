from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.unit.model.test_plan import a_report

from tidegate.model.codec import Ready, decode, encode, encode_exactly, from_plain, to_plain
from tidegate.model.reports import Repaired, TaskReport
from tidegate.model.routing import Place, Placement
from tidegate.model.samples import Sampled

NAN = float("nan")
SAMPLED = Sampled(np.array([[1.5, NAN], [-0.0, 2.0], [3.0, 4.0]]), np.array([7, 0, 2], np.int32))


def same(one: Sampled, other: Sampled) -> bool:
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in ((one.coordinates, other.coordinates), (one.hits, other.hits))
    )


@pytest.mark.parametrize("sampled", [SAMPLED, Sampled.empty(3), SAMPLED.last(2)])
def test_arrays_come_back_bit_by_bit(sampled: Sampled) -> None:
    assert same(decode(Sampled, encode(sampled)), sampled)
    assert same(from_plain(Sampled, to_plain(sampled)), sampled)
    assert same(from_plain(Sampled, decode(object, encode_exactly(to_plain(sampled)))), sampled)


def test_an_array_in_a_sealed_file_must_be_made_plain_by_whoever_reads_it_back() -> None:
    with pytest.raises(TypeError, match="would not come back"):
        encode_exactly({"x": SAMPLED})


def test_an_array_that_is_no_block_of_memory_comes_back_too() -> None:
    turned = Sampled(np.arange(6.0).reshape(2, 3).T.astype(">f8"), np.arange(6, dtype=np.int32)[::2])
    again = decode(Sampled, encode(turned))
    assert (again.coordinates == turned.coordinates).all()
    assert (again.hits == turned.hits).all()


@pytest.mark.parametrize("hits", [np.zeros(3), np.zeros(3, np.int64)])
def test_an_array_of_another_type_is_refused(hits: Any) -> None:
    with pytest.raises(ValueError, match=r"array of int32, got .*hits"):
        decode(Sampled, encode(Sampled(SAMPLED.coordinates, hits)))


def test_an_array_whose_bytes_do_not_fill_its_shape_is_refused() -> None:
    plain = to_plain(SAMPLED)
    with pytest.raises(ValueError, match="reshape"):
        from_plain(Sampled, {**plain, "hits": {**plain["hits"], "shape": [4]}})


def test_int_keys_are_text_in_json_and_ints_again_after_it() -> None:
    placement = Placement((0, 1), {3: Place((0,), (0, 1), 1)}, {2**64 - 1: Place((1,), (1,))})
    assert set(to_plain(placement)["keys"]) == {str(2**64 - 1)}
    assert from_plain(Placement, to_plain(placement)) == placement
    assert decode(Placement, encode_exactly(placement)) == placement


def test_numpy_floats_and_read_only_mappings_are_written_as_what_they_hold() -> None:
    value = {"a": MappingProxyType({"b": np.float64(1.5)})}
    assert encode(value) == encode_exactly(value) == b'{"a":{"b":1.5}}'


@pytest.mark.parametrize("value", [NAN, float("inf"), np.float64("nan")])
def test_a_number_that_is_not_finite_is_refused_by_whoever_sees_it_first(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_exactly(Repaired(cpu_seconds=value))
    with pytest.raises(ValueError, match=r"got `null` - at `\$\.cpu_seconds`"):
        decode(Repaired, encode(Repaired(cpu_seconds=value)))


@pytest.mark.parametrize("value", [object(), np.int64(3), 1j])
@pytest.mark.parametrize("write", [encode, encode_exactly, to_plain])
def test_what_json_cannot_say_is_refused(write: Any, value: object) -> None:
    with pytest.raises(TypeError, match=r"cannot be written as JSON|unsupported"):
        write({"x": value})


@pytest.mark.parametrize("name", ["operator", "rows", "state", "keys"])
def test_a_field_of_another_type_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=rf"at `\$\.{name}"):
        from_plain(TaskReport, {**to_plain(a_report()), name: 1.5})


@pytest.mark.parametrize("name", ["operator", "instance"])
def test_a_field_that_is_missing_is_named(name: str) -> None:
    plain = to_plain(a_report())
    del plain[name]
    with pytest.raises(ValueError, match=f"missing required field `{name}`"):
        from_plain(TaskReport, plain)


def test_a_type_that_cannot_be_read_says_so() -> None:
    with pytest.raises(ValueError, match=r"complex.*cannot be read from JSON"):
        decode(_Odd, b'{"value":1}')


@dataclass(frozen=True)
class _Odd:
    value: complex


def test_parts_that_are_encoded_the_fast_way_read_back_the_same() -> None:
    place = Place((1, 2), (1, 2, 3), columns=2)
    value = {"a": place, "text": 'quotes "1" and \\', "nested": [{"b": (place, place)}, 1.5]}
    fast = {"a": Ready(place), "text": 'quotes "1" and \\', "nested": [{"b": Ready((place, place))}, 1.5]}
    assert encode_exactly(fast) == encode_exactly(value)
    with pytest.raises(ValueError, match="JSON"):
        encode_exactly({"a": Ready(place), "b": NAN})
