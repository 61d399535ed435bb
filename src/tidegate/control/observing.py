"""A goal that only observes: each batch decides what it would leave out, and leaves out nothing.

    manifest b-1 ──▶ what the goal decides ──▶ `ShedPlan.would`             reported (`would_shed.py`)
                          └──▶ without shedding ──▶ the rest of `ShedPlan`   done

Both are in the plan, so a replay reports the same. Every mechanism learns from a batch in which everything
was processed, and none takes its own decision for done:

    joins           probe everything and count by basic window, as under a goal that is easily kept
    sifters         keep their regions and samples, and drop from no region, here and at the sources
    windows         coins are thrown on a copy of the dropped windows (`CONTROL`); all windows are computed
    approximate     the probability of every row is 1
    stale rows      are let in
    state limit     stored rows stay
    repair          goes on with the debts of earlier batches, when the goal would leave time for it

What an earlier batch left out for a goal that did shed stays so: dropped windows, sampled windows and stored
rows that were given up.

Guarantee: pure; without shedding a plan has the results of a plan without a goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tidegate.model.json_values import Json, Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US
from tidegate.sift.filter.sifter import Sifter
from tidegate.window.drop import dropped_windows

#: Keys in the manifest's control state: windows that would have been dropped (as `dropped_windows.CONTROL`),
#: and by join and side, stored rows that would have been given up for `max_state`: those below these times.
CONTROL, FORGET = "would_drop", "would_forget_us"

_FROM_THE_BEGINNING = (BEGINNING_US, BEGINNING_US)


def skips_nothing(would: Mapping[str, Skipping], manifest: Manifest) -> dict[str, Skipping]:
    """The same joins probe everything; rows that earlier batches gave up stay away."""
    given_up = manifest.control.get("forget_us", {})
    return {
        name: replace(
            one,
            fraction=1.0,
            shares=(_all(one.shares[0]), _all(one.shares[1])),
            explore_share=0.0,
            keep_share=1.0,
            fresh_us=_FROM_THE_BEGINNING,
            forget_us=tuple(given_up.get(name, _FROM_THE_BEGINNING)),
            content=None,
            fractions=(1.0, 1.0),
        )
        for name, one in would.items()
    }


def _all(shares: tuple[float, ...]) -> tuple[float, ...]:
    return (1.0,) * len(shares)


def opened(would: Mapping[str, Json]) -> dict[str, Json]:
    """The same sifters, dropping nothing: they count rows by region and mark samples."""
    sifters = {name: Sifter.from_json(raw) for name, raw in would.items()}
    return {
        name: replace(one, thresholds=np.zeros(one.regions.count), z=1.0).to_json()
        for name, one in sifters.items()
    }


def as_if_dropped(manifest: Manifest) -> Manifest:
    """The manifest as it would be if windows had been dropped since the goal began to observe."""
    would = manifest.control.get(CONTROL)
    if would is None:
        return manifest
    return replace(manifest, control={**manifest.control, dropped_windows.CONTROL: would})


def as_if(plan: Plan) -> Plan:
    """The plan that would have run."""
    return plan if plan.shed.would is None else replace(plan, shed=plan.shed.would)


def remembered(plan: Plan) -> Snapshot:
    """What the manifest keeps of a plan that only observed."""
    would = plan.shed.would
    if would is None:
        return {}
    windows: dict[str, Any] = {name: one for name, one in would.dropping.items() if name != "drops"}
    return {
        CONTROL: windows,
        FORGET: {name: list(one.forget_us) for name, one in would.skipping.items()},
    }
