"""What dropping windows saves: the load of a query as a function of p, and the p that an excess asks for.

Paper: window drop, section 3.6, for one aggregate between two parts of a query (its figure 6):

    rows ─▶ part 1 ─▶ aggregate ─▶ part 2 ─▶          cost₁, sel₁      cost₂, sel₂      cost₃

Work per source row: cost₁ + sel₁ · (cost₂ + sel₂ · cost₃). A random drop behind the aggregate saves a part p
of the last term and no more. A window drop in front of part 1 keeps the share sel_w1 of the rows and saves on
all three:

    sel_w1 = 1 − p · ((𝓑 + 1) δ − ω) / (𝓑 δ)          rows that are kept
    sel_w2 =     p · ((𝓑 + 1) − ⌈ω / δ⌉) / (𝓑 δ)      rows that only carry a mark

A gap of 𝓑 windows lets the (𝓑 + 1) δ − ω rows go that lie in no window outside of it, if that is any
(`window/drop/drop_cost.py`).

Where we differ: the paper divides by (𝓑 − 1) δ + ω, the rows of all windows of a batch. Of these, ω − δ
belong to the next batch as well and are counted twice, so its sel_w1 is too high wherever windows overlap;
sel_w2 is divided by the dropped rows in place of all rows, and has ⌊ω / δ⌋ where its own derivation gives
⌈ω / δ⌉. `paper_selectivities` has the printed ones. For tumbling windows and for those without early drops
sel_w1 is the same.

Rows are counted as in the paper, one per unit of time: a slide of 10 is ten rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import FlowError
from tidegate.window.drop.drop_cost import dropped_rows
from tidegate.window.drop.drop_window import DropWindow
from tidegate.window.drop.window_drop import share_max


@dataclass(frozen=True)
class Costs:
    """Costs per row that comes to a part, in any unit, and how many rows a part makes of one."""

    before: float
    aggregate: float
    behind: float
    rows_per_row: float = 1.0
    results_per_row: float = 1.0
    #: What the drop itself costs per source row, and what looking at a mark and passing one on costs.
    drop: float = 0.0
    look_for_mark: float = 0.0
    pass_mark: float = 0.0
    open_or_skip: float = 0.0

    def __post_init__(self) -> None:
        if min(getattr(self, name) for name in self.__dataclass_fields__) < 0:
            raise FlowError("Costs and numbers of rows are zero or more", code="LAB_COSTS_INVALID", got=self)

    @property
    def behind_per_row(self) -> float:
        return self.rows_per_row * self.results_per_row * self.behind

    @property
    def full(self) -> float:
        """Work per source row while nothing is dropped."""
        return self.before + self.rows_per_row * self.aggregate + self.behind_per_row


def marked_rows(window: DropWindow) -> float:
    """Of the rows that go, the part (of all rows, per unit of p) that would stay for its mark alone."""
    marks = window.max_gap + 1 + -window.size_us // window.slide_us
    return max(0, marks) / (window.max_gap * window.slide_us)


def paper_selectivities(window: DropWindow, p: float) -> tuple[float, float]:
    """sel_w1 and sel_w2 as printed."""
    B, delta, omega = window.max_gap, window.slide_us, window.size_us
    going = (B + 1) * delta - omega
    if going <= 0:
        return 1.0, 0.0
    return 1 - p * going / ((B - 1) * delta + omega), p * (B + 1 - omega // delta) / going


def window_drop_work(costs: Costs, window: DropWindow, p: float, *, as_printed: bool = False) -> float:
    """Work per source row with a window drop at the input (L_WinDrop by the rate)."""
    kept, marks = 1 - p * dropped_rows(window), p * marked_rows(window)
    if as_printed:
        kept, marks = paper_selectivities(window, p)
    part_1 = costs.look_for_mark + kept * costs.before + marks * costs.pass_mark
    looks = (kept / window.slide_us + marks) * costs.open_or_skip
    aggregate = looks + kept * costs.rows_per_row * costs.aggregate
    return costs.drop + part_1 + aggregate + (1 - p) * costs.behind_per_row


def random_drop_work(costs: Costs, p: float) -> float:
    """Work per source row with rows dropped at random behind the aggregate (L_RDrop by the rate)."""
    coin = costs.rows_per_row * costs.results_per_row * costs.drop
    return costs.full + coin - p * costs.behind_per_row


def p_for_excess(
    costs: Costs, window: DropWindow, excess: float, *, as_printed: bool = False
) -> float | None:
    """The least p at which a rate of (1 + excess) times what fits undropped fits; None where none does.

    The work is linear in p, so two of its points tell the rest.
    """
    fits = costs.full / (1 + excess)
    none = window_drop_work(costs, window, 0.0, as_printed=as_printed)
    saved = none - window_drop_work(costs, window, 1.0, as_printed=as_printed)
    return _least(none - fits, saved, share_max(window.max_gap))


def random_p_for_excess(costs: Costs, excess: float) -> float | None:
    """The same for a random drop behind the aggregate, which has no gap to keep."""
    return _least(random_drop_work(costs, 0.0) - costs.full / (1 + excess), costs.behind_per_row, 1.0)


def _least(needed: float, saved_per_p: float, most: float) -> float | None:
    if needed <= 0:
        return 0.0
    p = needed / saved_per_p if saved_per_p > 0 else float("inf")
    return p if p <= most else None
