"""The small values that pass between stages, state and engine.

All are frozen, all become plain JSON and come back equal: what decides a batch (`Plan`) and what a batch
left behind (`Manifest`) must be readable by a person and by a later version. Times are UTC microseconds
since the epoch, as Python ints; names that hold a time end in `_us`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.model.debts import Payment
from tidegate.model.routing import Cut, Routing
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US


@dataclass(frozen=True)
class Plan:
    """Everything that may differ from batch to batch, decided and written before the batch runs."""

    batch: int
    #: Wall clock at the moment of planning; the only clock that a batch may look at.
    now_us: int
    #: Per stream: rows older than this are late.
    watermarks_us: Mapping[str, int]
    #: Per operator: rows whose partners must be older than this are settled in this batch.
    settle_us: Mapping[str, int]
    #: Per operator: where rows lie, and who looks at them.
    routing: Mapping[str, Routing]
    #: Per operator and instance: groups of piece names; what the instance owns of a group becomes one piece.
    merges: Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]] = field(default_factory=dict)
    #: True: no row will ever follow, everything is settled after the batch.
    flush: bool = False
    #: True: after the rows, settle once more with the watermark that they moved.
    settle_after: bool = False
    #: When the run that made the plan began: silence of a stream before that does not count.
    awake_us: int = BEGINNING_US
    seed: int = 0
    #: Per operator that may skip work: what it leaves out.
    skipping: Mapping[str, Skipping] = field(default_factory=dict)
    #: Per operator: keys whose stored rows change their partition with this batch.
    cuts: Mapping[str, tuple[Cut, ...]] = field(default_factory=dict)
    #: Windows whose rows are shuffled as they are, because adding them up before would not make them fewer.
    by_row: tuple[str, ...] = ()
    #: Per match that may drop rows: the sifter in front of it, as JSON.
    sifters: Mapping[str, Any] = field(default_factory=dict)
    #: Per drop of windows: which were decided to go, and with which share, as JSON.
    dropping: Mapping[str, Any] = field(default_factory=dict)
    #: Per approximate window: how likely a row of each stratum is kept, and what was left out, as JSON.
    estimating: Mapping[str, Any] = field(default_factory=dict)
    #: What the routing was made from: where balancing wants rows to lie, and what it remembers.
    balance: Mapping[str, Any] = field(default_factory=dict)
    #: What is skipped is owed, and so many bytes may outlive their windows for it; None: it is lost.
    repair_bytes: int | None = None
    #: Per operator: owed work that this batch does.
    payments: Mapping[str, tuple[Payment, ...]] = field(default_factory=dict)
    #: True: after the rows, all that is owed is paid, because no other batch may come to do it.
    pay_all: bool = False
