"""When rows choose by content what they look at, and what that finds at every rate.

Beyond the selective join paper; `join/selective/content_choice.py` has the choice itself. A plan lets rows
choose where basic windows hold enough rows: an estimate per (row, basic window, instance) must be a small
part of what there is to spend. Otherwise the plan says which parts of basic windows to look at, as
`selective.py` learnt.

How much is found at rate r is learnt as a power of it: found = r ^ bend, from the estimated recall of batches
(rows that explore do not choose, so what they find is a fair sample). The smaller the bend, the more of the
output the first comparisons find; 1 would be as good as drawing lots.
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

#: Estimates may take so much of what there is to spend. What they find is worth a third more, or better.
_PRICE_MOST = 0.15
#: Before anything was seen: what sets with few popular items gave.
BEND_FIRST = 0.3
#: Weight of the last batch in the bend, and what is believed of it.
_NEWS, _BENDS = 0.3, (0.05, 1.0)
#: Rates so near to 1 tell more of chance than of the bend.
_RATE_MOST = 0.9


def chosen_by_content(skipping: Skipping, decision: ContentDecision, work: Work, instances: int) -> Skipping:
    """The plan with rows that choose, where that pays; `work`: rows in reach of a row, by window and age."""
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
    """The part of a row's budget that goes into estimates."""
    cells = sum(float(np.count_nonzero(window)) for window in work) * instances
    comparisons = sum(float(window.sum()) for window in work)
    # Both windows: a row of each side looks at one of them.
    return price(cells, 2) / (fraction * comparisons) if comparisons else np.inf


def chooses_by_content(plan: Plan, name: str) -> bool:
    """Did the rows of a join choose in this batch?"""
    return name in plan.shed.skipping and plan.shed.skipping[name].content is not None


def bend_after(before: Manifest, plan: Plan, reports: Sequence[TaskReport], name: str) -> float:
    """How found results fall with the rate, after a batch."""
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
