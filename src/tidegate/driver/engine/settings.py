"""The settings of a query, as the engine needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.control.actuators.join_shedding import OverloadSettings
from tidegate.control.actuators.sampling import EstimateSettings
from tidegate.control.actuators.sifting import SiftSettings
from tidegate.control.actuators.window_dropping import DropSettings
from tidegate.control.balance.balancing import BalanceSettings
from tidegate.control.goal.goal_step import KeepSettings
from tidegate.control.repair.repair import RepairSettings
from tidegate.errors import FlowError
from tidegate.model.graph import LateRule
from tidegate.quantities import is_whole
from tidegate.state.receipt_log import DEFAULT, Retention

#: Partitions per unit of parallelism: enough to move load in small steps, few enough to stay cheap.
PARTITIONS_PER_CORE = 8


@dataclass(frozen=True)
class Settings:
    """Settings that do not change while a query runs."""

    partitions: int
    instances: int
    seed: int
    balance: BalanceSettings
    #: The goal, and what may be shed to meet it; None: nothing.
    goal: KeepSettings | None = None
    #: How skipped pairs are repaired; None: never.
    repair: RepairSettings | None = None
    #: The approximate windows; also without a goal, because rows may have been shed before a restart.
    estimating: EstimateSettings | None = None
    #: The windows that may be dropped; also without a goal, because an earlier run may have dropped some.
    dropping: DropSettings | None = None
    #: How long receipts are kept.
    retention: Retention = DEFAULT
    #: By whose watermark rows are late.
    watermark: LateRule = "slowest"
    #: Names in the checkpoint, and those that they have now.
    renames: Mapping[str, str] = field(default_factory=dict)

    @property
    def latency_seconds(self) -> float | None:
        """The latency goal; None without one."""
        return None if self.goal is None else self.goal.goal.latency_seconds

    @property
    def budget_seconds(self) -> float | None:
        """What a batch may take under the goal or the trigger; None if neither sets it."""
        return self.balance.batch_seconds if self.goal is None else self.goal.goal.batch_seconds

    @property
    def overload(self) -> OverloadSettings | None:
        """What joins may shed."""
        return None if self.goal is None else self.goal.overload

    @property
    def sifting(self) -> SiftSettings | None:
        """Which matches may drop rows."""
        return None if self.goal is None else self.goal.sifting


def numbers(
    partitions: int | None, instances: int | None, stored: int | None, parallelism: int
) -> tuple[int, int]:
    """Partitions and instances: as given, as stored in the checkpoint, or by the parallelism of the session.

    By default there are at most as many instances as partitions.
    """
    known = stored if partitions is None else positive(partitions, "partitions", 1)
    count = positive(instances, "instances", min(parallelism, known or parallelism))
    return known or PARTITIONS_PER_CORE * count, count


def positive(given: int | None, what: str, default: int) -> int:
    """The checked number of the user, or the default."""
    if given is None:
        return default
    if not is_whole(given):
        raise FlowError(
            f"{what} must be a whole number of at least 1",
            code="START_NUMBER_INVALID",
            got=repr(given),
            do=f"Give for example {what}=8, or leave it out",
        )
    return given
