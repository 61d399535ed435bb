"""`ReceiptFrame`: the pandas data frame of receipts, which prints the columns that matter.

      kind   name   mode complete rows_offered rows_shed rows_written recall loss_ratio
    stream orders  EXACT     True      120,000         0            -      -      0.000
    output   near SUBSET    False      240,000         0       83,120  0.621      0.379

Columns in which nothing happened are not printed. Whatever is made of it, with `set_index` or a selection of
rows, is a plain data frame with all columns.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

_PERIODS = ("batch_id", "hour")
_ALWAYS = ("kind", "name", "mode", "complete", "rows_offered")
#: Printed if they are known and not zero in some row.
_SOMETIMES = (
    *("rows_processed", "rows_shed", "rows_late", "rows_rejected", "rows_written", "recall", "loss_ratio"),
    *("windows_missing", "debt_pairs", "repaired_pairs", "written_off_pairs", "p95_seconds"),
    *("would_rows_shed", "would_windows_missing", "would_loss_ratio"),
)


class ReceiptFrame(pd.DataFrame):  # type: ignore[misc]  # pandas has no types here
    """Receipts, a row each."""

    def __repr__(self) -> str:
        if self.empty:
            return "no receipts yet"
        lines: str = self._printed().to_string(
            index=False, na_rep="-", max_rows=pd.get_option("display.max_rows")
        )
        return lines

    def _repr_html_(self) -> str:
        html: str = self._printed().to_html(index=False, na_rep="-", max_rows=60)
        return html

    def _printed(self) -> Any:
        happened = [one for one in _SOMETIMES if (pd.to_numeric(self[one]).fillna(0) != 0).any()]
        shown = pd.DataFrame(self)[[*(one for one in _PERIODS if one in self), *_ALWAYS, *happened]]
        return shown.apply(_texts)


def _texts(column: Any) -> Any:
    """Numbers for people: counts with separators, ratios and seconds with three decimals."""
    if column.name in ("batch_id", "complete") or not pd.api.types.is_numeric_dtype(column):
        return column
    form = "{:.3f}" if pd.api.types.is_float_dtype(column) else "{:,.0f}"
    return column.map(lambda value: "-" if pd.isna(value) else form.format(value))
