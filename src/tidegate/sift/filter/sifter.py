"""`Sifter`: the filter that is shipped to the sources, as one small value.

Paper: sifters, sections II-D and IV-A: a complete partitioning of the data space, and for each region a
drop threshold, the share of its rows to drop. The value also contains its parameters (the throttler z, the
fairness bound, the share of rows that bypass it as samples), so that a sifter is self-describing.

It has two equivalent forms: JSON for people (cuts by column name, below/above as `cut 3` or `region 7`, a cut
at infinity as null: rows without a number are above it), and compact bytes for slow links, little-endian:

    "TGSF"  format u8  width u8   axes u16   regions u32   text u32   epoch u64   version u64
    z f64   fairness f64   sample share f64
    text: JSON of the name and the axes, UTF-8
    domain low f64 × axes, high f64 × axes
    cuts: at f64 × (l - 1), axis u16 × (l - 1), children i16 or i32 (`width` 2 or 4) × 2 (l - 1)
    thresholds f64 × l
    CRC-32 of all of it, u32

At most 22 bytes a region, for any number of axes, as long as there are fewer than 32,768 regions. Damaged
or foreign data, or a newer format, raises an error that says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import FlowError
from tidegate.model.json_values import Json
from tidegate.sift.filter.sifter_checks import check_sifter, foreign
from tidegate.sift.filter.sifter_wire import MAGIC, Wire, pack, unpack
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

#: Raised when an older version of this library could misread the JSON form.
FORMAT = 2


@dataclass(frozen=True, eq=False)
class Sifter:
    """Region r of `regions` loses the share `thresholds[r]` of its rows; see the module docstring."""

    axes: tuple[Axis, ...]
    regions: Regions
    thresholds: NDArray[np.float64]
    #: Increases with every sifter of a query.
    version: int = 0
    #: The admit ratio: the share of the offered volume that the thresholds were configured to let pass.
    z: float = 1.0
    #: The largest difference between thresholds of regions that queries intersect.
    fairness: float = 1.0
    #: The share of rows that are marked and bypass the thresholds, to show the server what is offered.
    sample_share: float = 0.0
    #: The name of the stream, for display.
    name: str = ""
    #: The run that published it, 0 until then: a newer run has a higher epoch, and begins its versions anew.
    epoch: int = 0

    def __post_init__(self) -> None:
        given = np.array(self.thresholds, np.float64)  # a copy, so that the caller cannot change it
        given.setflags(write=False)
        object.__setattr__(self, "thresholds", given)
        shares = (self.z, self.fairness, self.sample_share)
        check_sifter(self.axes, self.regions, given, self.order, shares, self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sifter) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @property
    def order(self) -> tuple[int, int]:
        """Of two sifters for one stream, the one with the higher order applies."""
        return self.epoch, self.version

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(axis.column for axis in self.axes)

    @classmethod
    def passing_everything(
        cls, axes: tuple[Axis, ...], domain: Domain, sample_share: float = 0.0, name: str = ""
    ) -> Sifter:
        """The trivial filter F0, with which the paper starts: one region, nothing dropped."""
        whole = Regions(domain, np.zeros(0, np.int32), np.zeros(0), np.zeros((0, 2), np.int32))
        return cls(axes, whole, np.zeros(1), sample_share=sample_share, name=name)

    def to_json(self) -> Json:
        domain, tree = self.regions.domain, self.regions
        bounds = zip(self.axes, domain.low.tolist(), domain.high.tolist(), strict=True)
        cuts = zip(tree.axis.tolist(), tree.at.tolist(), tree.children.tolist(), strict=True)
        return {
            "kind": "sifter",
            "format": FORMAT,
            "name": self.name,
            "epoch": self.epoch,
            "version": self.version,
            "z": self.z,
            "fairness": self.fairness,
            "sample_share": self.sample_share,
            "axes": [axis.to_json() | {"low": low, "high": high} for axis, low, high in bounds],
            "cuts": [
                {
                    "column": self.columns[axis],
                    "at": None if at == inf else at,
                    "below": _named(below),
                    "above": _named(above),
                }
                for axis, at, (below, above) in cuts
            ],
            "thresholds": self.thresholds.tolist(),
        }

    @classmethod
    def from_json(cls, raw: Any) -> Sifter:
        if not isinstance(raw, dict) or raw.get("kind") != "sifter":
            raise foreign("JSON without the field kind=sifter")
        if raw.get("format") != FORMAT:
            raise foreign(f"format {raw.get('format')} of the JSON form, not {FORMAT}")
        try:
            axes, cuts = tuple(Axis.from_json(axis) for axis in raw["axes"]), raw["cuts"]
            number = {axis.column: k for k, axis in enumerate(axes)}
            low, high = (np.array([axis[side] for axis in raw["axes"]], np.float64) for side in _SIDES)
            children = [[_number(cut[side]) for side in _CHILDREN] for cut in cuts]
            regions = Regions(
                Domain(low, high),
                np.array([number[cut["column"]] for cut in cuts], np.int32),
                np.array([inf if cut["at"] is None else cut["at"] for cut in cuts], np.float64),
                np.array(children, np.int32).reshape(-1, 2),
            )
            return cls(axes, regions, np.array(raw["thresholds"]), *(raw[field] for field in _FIELDS))
        except _FAULTS as error:
            raise foreign(f"invalid JSON: {_fault(error)}") from error

    def to_bytes(self) -> bytes:
        text = json.dumps({"name": self.name, "axes": [axis.to_json() for axis in self.axes]})
        share = (self.z, self.fairness, self.sample_share)
        return pack(Wire(text, len(self.axes), self.regions, self.thresholds, self.order, share))

    @classmethod
    def from_bytes(cls, data: bytes) -> Sifter:
        try:
            wire = unpack(data)
            text, (epoch, version) = json.loads(wire.text), wire.order
            axes = tuple(Axis.from_json(axis) for axis in text["axes"])
            return cls(axes, wire.regions, wire.thresholds, version, *wire.share, text["name"], epoch)
        except FlowError:
            raise
        except _FAULTS as error:  # a checksum proves nothing about who wrote the bytes
            raise foreign(f"invalid content: {_fault(error)}") from error

    @classmethod
    def read(cls, data: bytes) -> Sifter:
        """Read either form; the first bytes show which one it is."""
        if data.startswith(MAGIC):
            return cls.from_bytes(data)
        try:
            raw = json.loads(data)
        except _FAULTS as error:
            raise foreign(
                f"{len(data)} bytes that are neither {MAGIC.decode()}… nor JSON: {error}"
            ) from error
        return cls.from_json(raw)


_SIDES = ("low", "high")
_CHILDREN = ("below", "above")
_FIELDS = ("version", "z", "fairness", "sample_share", "name", "epoch")
#: What reading any bytes may raise.
_FAULTS = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


def _named(child: int) -> str:
    return f"cut {child}" if child >= 0 else f"region {~child}"


def _number(name: str) -> int:
    kind, number = name.split(" ")
    return {"cut": int(number), "region": ~int(number)}[kind]


def _fault(error: Exception) -> str:
    text = str(error)[:200]
    return f"{text} is missing or unknown" if isinstance(error, KeyError) else text
