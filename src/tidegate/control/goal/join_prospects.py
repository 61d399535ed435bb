"""What the joins of the next batch would do in full, and what leaving out parts of their windows would lose.

Cells of both windows are offered by what they are worth, where a policy learns that (`selective.py`);
otherwise only the rate is: comparisons and matches then fall together. Where rows choose by content, matches
fall with a power of the rate that is learnt (`content.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.control.actuators.content import bend_after
from tidegate.control.actuators.join_policies import JoinShape
from tidegate.control.actuators.join_shedding import (
    OverloadSettings,
    comparisons_of,
    kept_part,
    known_of,
    offered_to,
    values_by_age,
)
from tidegate.control.actuators.policy import Work
from tidegate.control.actuators.work_ahead import work_ahead
from tidegate.control.goal.cost_model import Effort
from tidegate.control.goal.shed_options import Offer, cells_offer, rate_offer
from tidegate.model.graph import Operator
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.times import LEFT, RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What a join would do in the next batch, were nothing left out, and what its parts are worth."""

    effort: Effort
    #: By cell of both windows: matches per comparison, and comparisons; None where nobody learns them.
    values: NDArray[np.float64] | None
    work: NDArray[np.float64]
    #: Stored rows that a new row will meet, per window and age.
    met: Work
    name: str = ""
    #: With r of the comparisons r ** bend of the matches are found, where rows choose by content.
    bend: float | None = None

    def offer(self, outputs: Mapping[str, float], behind: Mapping[str, float]) -> Offer:
        if self.values is None or self.bend is not None:
            return rate_offer(self.name, outputs, self.bend or 1.0, behind)
        return cells_offer(self.name, outputs, self.values, self.work, behind)


def foreseen(
    settings: OverloadSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[TaskReport],
    after: Manifest,
    operators: Mapping[str, Operator],
    growth: float,
) -> dict[str, Foreseen]:
    """By join that may skip work: the next batch in full."""
    found = {}
    for name in settings.joins:
        shape = JoinShape(operators[name])
        rows = [offered_to(reports, name, side) for side in (LEFT, RIGHT)]
        both = work_ahead(shape, before, after, name, growth, reports)
        left = kept_part(settings.shed, plan, name)
        work = np.concatenate([growth * rows[1 - side] * both[side] / left for side in (LEFT, RIGHT)])
        known = (known_of(settings, before, "policies") or {}).get(name)
        by_age = values_by_age(known)
        values = None if by_age is None else np.concatenate(by_age)
        mine = [report for report in reports if report.operator == name]
        matches = sum(report.matches for report in mine)
        looked = sum(map(comparisons_of, mine))
        outputs = float(values @ work) if values is not None else work.sum() * matches / max(1, looked)
        read = sum(report.bytes_read for report in mine)
        effort = Effort(growth * sum(rows), float(work.sum()), outputs, growth * read)
        bend = bend_after(before, plan, reports, name) if name in settings.by_content else None
        found[name] = Foreseen(effort, values, work, both, name, bend)
    return found
