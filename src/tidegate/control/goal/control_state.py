"""What the goal loop remembers from batch to batch: one typed value in the manifest (`model/codec.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.control.goal.backpressure import Backpressure
from tidegate.control.goal.forecast import Arrivals
from tidegate.control.goal.hysteresis import Hysteresis
from tidegate.control.goal.load_model import LoadModel, SafetyMargin
from tidegate.control.levels import CONTROL
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest


@dataclass
class ControlState:
    """The memory of all five parts, and what was decided last."""

    #: 1. What work costs. `cold` is learnt while a new flow warms up, and then dropped.
    model: LoadModel = field(default_factory=LoadModel)
    cold: LoadModel | None = None
    #: 2. Rows that arrive, and those that wait at the sources.
    arrivals: Arrivals = field(default_factory=Arrivals)
    sources: Backpressure = field(default_factory=Backpressure)
    #: 3. Prediction errors, and the prediction for the next batch.
    margin: SafetyMargin = field(default_factory=SafetyMargin)
    predicted: float | None = None
    #: 4. When levels ease; the seconds of a usual batch at the lasting levels; consecutive batches that were
    #: too long at the deepest levels.
    hysteresis: Hysteresis = field(default_factory=Hysteresis)
    usual: float = 0.0
    too_long: int = 0
    #: 5. By shed option: the level that lasts, and that of the next batch, which may be deeper for once.
    lasting: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    #: By stream: units that its source may give to the next batch.
    limits: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Manifest) -> ControlState:
        """The state after a batch; a blank one before the first."""
        known: Mapping[str, Any] | None = manifest.control.get(CONTROL)
        return cls() if known is None else from_plain(cls, known)

    def to_plain(self) -> Snapshot:
        plain: Snapshot = to_plain(self)
        return plain
