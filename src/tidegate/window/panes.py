"""Panes: the pieces into which windows cut time, so that a row is aggregated once for all its windows.

Paper: "paired windows" of Krishnamurthy, Wu and Franklin (SIGMOD 2006), beside the panes of Li et al. (2005).

Windows begin at the offset plus multiples of the slide, and end `size mod slide` after such a time. Cutting
at both, and nowhere else, gives at most two panes per slide:

    slide      |─────────|─────────|─────────|─────────▶     size = 2 slides + φ
    panes      |─φ─|─────|─φ─|─────|─φ─|─────|
    window 0   [───────────────────────)                     panes 0 … 4
    window 1             [───────────────────────)           panes 2 … 6

Where φ = 0 a pane is a whole slide. Panes of the greatest common divisor of size and slide, the
alternative, are never longer and mostly far shorter: size 61 s and slide 60 s would give 60 panes per slide
instead of two.

Guarantee: all times of a pane lie in the same windows, and a window is exactly the union of its panes,
which are neighbours. No coarser cut has this property.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.window.spec import WindowSpec


@dataclass(frozen=True)
class Panes:
    """The panes of one kind of window; pane 0 begins with window 0."""

    spec: WindowSpec

    @property
    def rest_us(self) -> int:
        """The distance from the start of a window to the next end of a window, 0 if they coincide."""
        return self.spec.size_us % self.spec.slide_us

    @property
    def per_slide(self) -> int:
        return 2 if self.rest_us else 1

    @property
    def per_window(self) -> int:
        return self.spec.size_us // self.spec.slide_us * self.per_slide + self.per_slide - 1

    def of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of the pane of each time."""
        slides, inside = np.divmod(times - self.spec.offset_us, np.int64(self.spec.slide_us))
        return slides * 2 + (inside >= self.rest_us) if self.rest_us else slides

    def start(self, panes: NDArray[np.int64]) -> NDArray[np.int64]:
        """First time of each pane; it ends where the next one begins."""
        return self.spec.start(panes // self.per_slide) + panes % self.per_slide * self.rest_us

    def windows(self, panes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per pane: the first and the last window that contain it."""
        return self.spec.holding(self.start(panes))
