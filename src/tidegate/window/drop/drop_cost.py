"""What dropping windows saves: the part of the rows that goes, per unit of p.

Paper: window drop, section 3.6: a window drop with a share p in front of a query keeps

    sel_w1 = 1 − p · ((𝓑 + 1) δ − ω) / (𝓑 δ)

of the rows. A gap of 𝓑 windows lets the (𝓑 + 1) δ − ω rows go that lie in no window outside of it, if that is
any.

Where we differ: the paper divides by (𝓑 − 1) δ + ω, the rows of all windows of a batch. Of these, ω − δ
belong to the next batch as well and are counted twice, so its sel_w1 is too high wherever windows overlap.
For tumbling windows and for those without early drops it is the same.
"""

from __future__ import annotations

from tidegate.window.drop.drop_window import DropWindow
from tidegate.window.spec import UNIT_US


def dropped_rows(window: DropWindow, grid_us: int = UNIT_US) -> float:
    """The part of the rows that is dropped, per unit of p, where row times are multiples of `grid_us`."""
    going = (window.max_gap + 1) * window.slide_us - window.size_us
    return max(0, going // grid_us) * grid_us / (window.max_gap * window.slide_us)
