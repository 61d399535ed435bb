"""Decides which part of the rows approximate windows are estimated from, and of which groups more are kept.

After every batch the controller knows how many rows came to approximate windows, how many were kept of each
stratum of groups (`window/strata.py`), and how long the batch took. From these it learns

    f    the part of the rows that there is time for: `rate_model.py`, with rows that are kept as comparisons
    π    per stratum, so that f of all rows are kept: `keep_shares`, which is all that a controller of more
         than these windows has to call with an f of its own

and writes down which times rows were left out of, because kept rows do not tell.

    reports of b ─▶ learn ─▶ manifest b ─▶ decide ─▶ plan b+1: π per stratum, and what was left out so far

Bankier, "Power Allocations: Determining Sample Sizes for Subnational Areas" (1988), with power 1/2: of a
stratum with N rows λ√N are kept, or all of them, which makes Σ 1/π least: the variances of counts, relative
to what is counted. One π for all would give the best grand total and little of rare groups, as many rows of
each stratum the best rare groups; this lies between.

Guarantee: pure functions of what is in the manifest and in the reports. While f = 1 every π is 1, and windows
are exact as soon as none is open that rows were left out of. π hardly changes on steady input: rows of unlike
weights say less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.control.join_policies import rate_rule
from tidegate.control.planning import Operator, input_watermark
from tidegate.control.rate import FRACTION_MIN, batch_load, expected_rows
from tidegate.goals import Shed
from tidegate.values import END_US, Manifest, Plan, TaskReport
from tidegate.window.strata import STRATA, LeftOut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

#: Where the manifest keeps what was learnt.
CONTROL = "estimates"
#: How much the last batch counts for the rows of strata.
ROWS_WEIGHT = 0.2
#: π stays as it is while none would change by more than this part of itself.
STEP = 0.1
#: Modes of what comes out of a window in a batch.
EXACT, ESTIMATED = "EXACT", "ESTIMATED"


@dataclass(frozen=True)
class EstimateSettings:
    """The approximate windows of a query, and when rows of them may be left out."""

    shed: Shed
    #: By operator: how long its windows are.
    windows: Mapping[str, int]
    #: Time that a batch may take, and time between two triggers; None: nothing is ever left out.
    batch_seconds: float | None
    trigger_seconds: float = 0.0

    @property
    def fixed(self) -> float | None:
        """The part of the rows that is always kept, where the user says so."""
        if self.batch_seconds is None or self.shed.window == "none":
            return 1.0
        if self.shed.window == "auto":
            return None
        return max(FRACTION_MIN, round(1 - float(self.shed.window), 4))


def keep_shares(fraction: float, rows: Reals) -> Reals:
    """π per stratum, given how many rows each has: so much that this fraction of all of them is kept."""
    budget = fraction * rows.sum()
    if fraction >= 1 or not rows.any():
        return np.full(rows.size, min(1.0, fraction))
    roots = np.sort(np.sqrt(rows))
    # Smaller strata are kept whole; the others share what they leave, by their roots.
    whole = np.append(0.0, np.cumsum(roots**2)[:-1])
    shared = np.cumsum(roots[::-1])[::-1]
    each = (budget - whole) / np.where(shared > 0, shared, 1.0)
    lot = each[np.argmax((each <= roots) & (roots > 0))]
    shares: Reals = np.maximum(FRACTION_MIN, lot / np.sqrt(np.maximum(rows, lot * lot)))
    return shares


def decide(
    settings: EstimateSettings, manifest: Manifest, operators: Mapping[str, Operator]
) -> dict[str, Any]:
    """Per approximate window, for the batch after this manifest: π of its strata, and what was left out."""
    known = manifest.control.get(CONTROL, {})
    decided = {}
    for name in settings.windows:
        shares = known.get("shares", {}).get(name)
        if settings.fixed is not None or shares is None:
            shares = [settings.fixed or 1.0] * STRATA
        before = LeftOut.from_json(known.get("left_out", {}).get(name, ()))
        # Rows of the batch itself are not older than this; how new they are is known when they have come.
        from_us = max(manifest.settled_us[name], input_watermark(operators[name], manifest, operators))
        decided[name] = {"shares": shares, "from_us": from_us, "left_out": before.to_json()}
    return decided


def left_out(planned: Mapping[str, Any]) -> LeftOut:
    """Of which times rows were or may be left out, as of a plan, its own batch among them."""
    before = LeftOut.from_json(planned["left_out"])
    return before.add(planned["from_us"], END_US, planned["shares"])


def mode(settings: EstimateSettings, plan: Plan, before: Manifest, after: Manifest) -> dict[str, str]:
    """Per approximate window: may some of what came out with this batch be estimated?"""
    found = {}
    for name, size_us in settings.windows.items():
        closing = before.settled_us[name] - size_us, after.settled_us[name]
        sampled = left_out(plan.estimating[name]).between(*closing)
        found[name] = ESTIMATED if sampled else EXACT
    return found


def learn(
    settings: EstimateSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    busy_seconds: float,
    cold: bool = False,
) -> dict[str, Any]:
    """What is known after a batch: goes into its manifest."""
    known = before.control.get(CONTROL, {})
    mine = {name: [report for report in reports if report.operator == name] for name in settings.windows}
    all_mine = [report for some in mine.values() for report in some]
    rate, fraction = _rate(settings, known, plan, all_mine, busy_seconds, cold)
    rows, shares, gone = {}, {}, {}
    for name, planned in plan.estimating.items():
        last = np.array(planned["shares"])
        rows[name] = _rows(known.get("rows", {}).get(name), mine[name], last)
        shares[name] = _steady(last, keep_shares(fraction, np.array(rows[name]))).round(4).tolist()
        gone[name] = _left_out(planned, mine[name], after.settled_us[name] - settings.windows[name])
    return {
        "rate": rate,
        "began_us": plan.now_us,
        "rows": rows,
        "shares": shares,
        "left_out": {name: one.to_json() for name, one in gone.items()},
    }


def _rate(
    settings: EstimateSettings,
    known: Mapping[str, Any],
    plan: Plan,
    reports: Sequence[TaskReport],
    busy_seconds: float,
    cold: bool,
) -> tuple[dict[str, Any] | None, float]:
    """What the rule knows, and f; a rule that decides nothing learns nothing."""
    if settings.batch_seconds is None or settings.fixed is not None:
        return known.get("rate"), 1.0
    rule = rate_rule(replace(settings.shed, rate="model"), known.get("rate"))
    offered = sum(report.offered[0] for report in reports)
    if offered and not cold:
        interval = max(settings.trigger_seconds, busy_seconds)
        ahead = expected_rows(offered, known.get("began_us"), plan.now_us, interval)
        rule.adapt(
            batch_load(
                rows=offered,
                busy_seconds=busy_seconds,
                trigger_seconds=settings.batch_seconds,
                comparisons=offered - sum(report.dropped[0] for report in reports),
                outputs=sum(report.emitted for report in reports),
                next_rows=ahead,
                next_comparisons_full=ahead,
            )
        )
    return rule.snapshot(), rule.fraction


def _rows(known: Sequence[float] | None, reports: Sequence[TaskReport], shares: Reals) -> list[float]:
    """Rows that came to each stratum, by estimate: a slow average over batches that had any."""
    kept = np.zeros(STRATA)
    for report in reports:
        kept += report.strata or 0
    if not kept.any():
        return [0.0] * STRATA if known is None else list(known)
    now = kept / shares
    before = now if known is None else np.array(known)
    return list((before + ROWS_WEIGHT * (now - before)).round(1).tolist())


def _steady(last: Reals, wanted: Reals) -> Reals:
    """As it was, where it would hardly change; but all rows are kept as soon as there is time for all."""
    hardly = bool((np.abs(wanted - last) <= STEP * last).all()) and not (wanted == 1).all()
    return last if hardly else wanted


def _left_out(planned: Mapping[str, Any], reports: Sequence[TaskReport], from_us: int) -> LeftOut:
    """With what the batch left out, and without what no open window can hold any more."""
    seen = [report.seen_us[0] for report in reports if report.seen_us[0] is not None]
    gone = LeftOut.from_json(planned["left_out"])
    if seen:
        gone = gone.add(planned["from_us"], max(seen) + 1, planned["shares"])
    return gone.since(from_us)
