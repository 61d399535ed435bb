"""What a batch left behind: clocks of streams, stored pieces, routing, debts, and what control has learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidegate.model.debts import Debt
from tidegate.model.pieces import Piece
from tidegate.model.plan import _routing_json
from tidegate.model.routing import Routing


@dataclass(frozen=True)
class StreamClock:
    """What the engine knows of one source stream's time after a batch."""

    #: Highest event time seen; BEGINNING_US before the first row.
    seen_us: int
    #: Rows below this are late from the next batch on.
    watermark_us: int
    #: Wall clock of the last batch that brought rows of this stream.
    heard_us: int


@dataclass(frozen=True)
class Manifest:
    """What batch `batch` left behind; with its predecessor's pieces gone unless listed here."""

    batch: int
    #: Fingerprint of the flow (schemas, keys, windows): a restart with another flow is refused.
    flow: Mapping[str, Any]
    clocks: Mapping[str, StreamClock]
    #: Per operator: rows that are settled already; see Plan.settle_us.
    settled_us: Mapping[str, int]
    routing: Mapping[str, Routing]
    pieces: tuple[Piece, ...] = ()
    #: What the controllers have learnt, as they wrote it down.
    control: Mapping[str, Any] = field(default_factory=dict)
    #: Work that joins still owe, oldest first, and what was given up in this batch.
    debts: tuple[Debt, ...] = ()
    forgiven: tuple[Debt, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(replace(self, pieces=(), routing={})),
            "routing": _routing_json(self.routing),
            "pieces": [p.to_json() for p in self.pieces],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Manifest:
        return cls(
            batch=raw["batch"],
            flow=raw["flow"],
            clocks={k: StreamClock(**v) for k, v in raw["clocks"].items()},
            settled_us=dict(raw["settled_us"]),
            routing={k: Routing.from_json(v) for k, v in raw["routing"].items()},
            pieces=tuple(Piece.from_json(p) for p in raw["pieces"]),
            control=raw.get("control", {}),
            debts=tuple(map(Debt.from_json, raw.get("debts", ()))),
            forgiven=tuple(map(Debt.from_json, raw.get("forgiven", ()))),
        )
