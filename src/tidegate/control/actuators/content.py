"""When rows choose by content what they probe, and what that finds at every rate.

Beyond the selective join paper; `join/selective/content_choice.py` makes the choice. It is used where basic
windows hold enough rows that one estimate per (row, basic window, instance) is a small part of the budget.
Otherwise the plan says which parts of basic windows to probe, as `selective.py` learnt.

The share found at rate r is modelled as r ^ bend. The bend is learnt from the estimated recall of batches:
rows that explore do not choose, so what they find is a fair sample. The smaller the bend, the more the first
comparisons find; 1 is as good as a random choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from tidegate.control.actuators.policy import Work
from tidegate.control.actuators.selective import ContentDecision
from tidegate.control.receipts.recall import recall_of
from tidegate.join.selective.content_choice import price
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.skip_plan import Skipping

#: Largest part of the budget for estimates, which raise the matches found by a third or more.
_PRICE_MOST = 0.15
#: First value of the bend: measured with sets that have few popular items.
BEND_FIRST = 0.3
#: Weight of the last batch in the bend, and the range of valid values.
_NEWS, _BENDS = 0.3, (0.05, 1.0)
#: At rates above this, chance outweighs the effect of the bend.
_RATE_MOST = 0.9


def chosen_by_content(skipping: Skipping, decision: ContentDecision, work: Work, instances: int) -> Skipping:
    """The plan with choice by content where that pays; `work`: candidates of a row, by window and age."""
    if skipping.fraction >= 1 or price_share(skipping.fraction, work, instances) > _PRICE_MOST:
        return skipping
    left, right = ((0.0,) * len(shares) for shares in skipping.shares)
    return replace(
        skipping,
        shares=(left, right),
        explore_share=decision.full_share,
        explore_depth=decision.full_depth,
        content=decision.fraction,
        fractions=(decision.fraction, decision.fraction),
        orders=((), ()),
    )


def price_share(fraction: float, work: Work, instances: int) -> float:
    """The part of a row's budget spent on estimates."""
    cells = sum(float(np.count_nonzero(window)) for window in work) * instances
    comparisons = sum(float(window.sum()) for window in work)
    # Both windows: a row of each side probes one of them.
    return price(cells, 2) / (fraction * comparisons) if comparisons else np.inf


def chooses_by_content(plan: Plan, name: str) -> bool:
    """Whether the rows of a join chose by content in this batch."""
    return name in plan.shed.skipping and plan.shed.skipping[name].content is not None


def bend_after(before: Manifest, plan: Plan, reports: Sequence[TaskReport], name: str) -> float:
    """The bend after a batch."""
    bend = known_bend(before, name)
    mine = [report.probes for report in reports if report.operator == name and report.probes]
    if not chooses_by_content(plan, name) or not mine or plan.shed.skipping[name].fraction > _RATE_MOST:
        return bend
    recall = recall_of(plan.shed.skipping[name], mine)
    found = None if recall is None else recall.total.recall
    if not found:
        return bend
    seen = log(found) / log(plan.shed.skipping[name].fraction)
    return bend + _NEWS * (min(max(seen, _BENDS[0]), _BENDS[1]) - bend)


def known_bend(manifest: Manifest, name: str) -> float:
    bends: Any = manifest.control.get("bends", {})
    return float(bends.get(name, BEND_FIRST))
