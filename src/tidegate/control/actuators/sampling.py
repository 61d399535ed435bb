"""Decides how many rows of which groups are kept where windows are estimated from a sample.

The sample ratio f is the level of the goal (`control/goal/goal_loop.py`), or fixed by the user. Tasks report
the rows kept of each stratum of groups (`window/estimate/strata.py`). From these follows π, the probability
per stratum that a row is kept, such that f of all rows are kept (`keep_shares`). The manifest also records
the times from which rows were left out, because kept rows do not show it.

    reports of b, f of the goal ─▶ learn ─▶ manifest b ─▶ decide ─▶ plan b+1: π, and what was left out so far

Bankier, "Power Allocations: Determining Sample Sizes for Subnational Areas" (1988), with power 1/2: of a
stratum with N rows λ√N are kept, or all of them, which minimises Σ 1/π, the sum of the relative variances of
counts. One π for all would give the best grand total and poor estimates of rare groups, equal sample sizes
the opposite; this lies between.

Guarantee: pure functions of the manifest and the reports. While f = 1 every π is 1, and windows are exact as
soon as no open window lacks rows. π hardly changes on steady input, because unequal weights raise the
variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidegate.api.goal import Shed
from tidegate.control.actuators.paper_rate import FRACTION_MIN
from tidegate.control.planning import late_before_us
from tidegate.control.receipts.receipts import ESTIMATED, EXACT
from tidegate.model.graph import OperatorTraits
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import END_US, LEFT
from tidegate.window.estimate.strata import STRATA, LeftOut
from tidegate.window.lifetime import Lifetime
from tidegate.window.spec import WindowSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals: TypeAlias = NDArray[np.float64]

#: Key in the manifest's control state.
CONTROL = "estimates"
#: Weight of the last batch in the mean rows of strata.
ROWS_WEIGHT = 0.2
#: π stays unchanged while none would change by more than this part of itself.
STEP = 0.1


@dataclass(frozen=True)
class EstimateSettings:
    """The approximate windows of a query."""

    windows: Mapping[str, WindowSpec]
    #: The part of the rows that is always kept; None: as much as the goal leaves time for.
    fixed: float | None = 1.0


def fixed_share(shed: Shed) -> float | None:
    """The part of the rows that is always kept under a goal, where the user says so."""
    if shed.window == "auto":
        return None
    return 1.0 if shed.window == "none" else max(FRACTION_MIN, round(1 - float(shed.window), 4))


def keep_shares(fraction: float, rows: Reals) -> Reals:
    """π per stratum, given the rows of each, such that this fraction of all rows is kept."""
    budget = fraction * rows.sum()
    if fraction >= 1 or not rows.any():
        return np.full(rows.size, min(1.0, fraction))
    roots = np.sort(np.sqrt(rows))
    # Smaller strata are kept whole; the others share the rest in proportion to their roots.
    whole = np.append(0.0, np.cumsum(roots**2)[:-1])
    shared = np.cumsum(roots[::-1])[::-1]
    each = (budget - whole) / np.where(shared > 0, shared, 1.0)
    lot = each[np.argmax((each <= roots) & (roots > 0))]
    shares: Reals = np.maximum(FRACTION_MIN, lot / np.sqrt(np.maximum(rows, lot * lot)))
    return shares


def decide(
    settings: EstimateSettings, manifest: Manifest, operators: Mapping[str, OperatorTraits]
) -> Snapshot:
    """Per approximate window, for the batch after this manifest: π of its strata, and what was left out."""
    known = manifest.control.get(CONTROL, {})
    decided = {}
    for name in settings.windows:
        shares = known.get("shares", {}).get(name)
        if settings.fixed is not None or shares is None:
            shares = [1.0 if settings.fixed is None else settings.fixed] * STRATA
        before = LeftOut.from_json(known.get("left_out", {}).get(name, ()))
        # A lower bound on the times of the batch's own rows; the upper bound is known only after it.
        from_us = late_before_us(operators[name], manifest)
        decided[name] = {"shares": shares, "from_us": from_us, "left_out": before.to_json()}
    return decided


def left_out(planned: Mapping[str, Any]) -> LeftOut:
    """The times from which rows were or may be left out, as of a plan, its own batch included."""
    before = LeftOut.from_json(planned["left_out"])
    return before.add(planned["from_us"], END_US, planned["shares"])


def mode(settings: EstimateSettings, plan: Plan, before: Manifest, after: Manifest) -> dict[str, str]:
    """Per approximate window: whether results written by this batch may be estimates."""
    found = {}
    for name, spec in settings.windows.items():
        first, beyond = (Lifetime(spec).closed(one.settled_us[name]) for one in (before, after))
        closing = spec.start(first), spec.end(beyond - 1)
        sampled = first < beyond and left_out(plan.shed.estimating[name]).between(*closing)
        found[name] = ESTIMATED if sampled else EXACT
    return found


def learn(
    settings: EstimateSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    levels: Mapping[str, float],
) -> Snapshot:
    """What is known after a batch: goes into its manifest. `levels`: f of each window, 1 unless said."""
    known = before.control.get(CONTROL, {})
    rows, shares, gone = {}, {}, {}
    for name, planned in plan.shed.estimating.items():
        mine, kept = [report for report in reports if report.operator == name], np.array(planned["shares"])
        rows[name] = _rows(known.get("rows", {}).get(name), mine, kept)
        wanted = keep_shares(levels.get(name, 1.0), np.array(rows[name]))
        last = np.array((plan.shed.would or plan.shed).estimating[name]["shares"])
        shares[name] = _steady(last, wanted).round(4).tolist()
        gone[name] = _left_out(planned, mine, Lifetime(settings.windows[name]), after.settled_us[name])
    return {
        "rows": rows,
        "shares": shares,
        "left_out": {name: one.to_json() for name, one in gone.items()},
    }


def _rows(known: Sequence[float] | None, reports: Sequence[TaskReport], shares: Reals) -> list[float]:
    """Estimated rows of each stratum: a slow mean over batches that had any."""
    kept = np.zeros(STRATA)
    for report in reports:
        kept += report.strata or 0
    if not kept.any():
        return [0.0] * STRATA if known is None else list(known)
    now = kept / shares
    before = now if known is None else np.array(known)
    return list((before + ROWS_WEIGHT * (now - before)).round(1).tolist())


def _steady(last: Reals, wanted: Reals) -> Reals:
    """The old π if it would hardly change; but all rows are kept as soon as there is time for all."""
    hardly = bool((np.abs(wanted - last) <= STEP * last).all()) and not (wanted == 1).all()
    return last if hardly else wanted


def _left_out(
    planned: Mapping[str, Any], reports: Sequence[TaskReport], lifetime: Lifetime, settled_us: int
) -> LeftOut:
    """Add what the batch left out; remove times that no open window contains."""
    seen = [report.rows.seen_us[0] for report in reports if report.rows.seen_us[0] is not None]
    gone = LeftOut.from_json(planned["left_out"])
    if seen:
        gone = gone.add(planned["from_us"], max(seen) + 1, planned["shares"])
    return gone.since(lifetime.dead_before(LEFT, settled_us))
