"""A column of partials: values, and a validity flag per value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import StateError


@dataclass(frozen=True, eq=False)
class Column:
    """int64, float64 or bool; decimals as (rows, 2) words. `valid` is None where no row is null."""

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        decimal = self.values.dtype == np.uint64 and self.values.ndim == 2 and self.values.shape[1] == 2
        if not decimal and self.values.dtype not in (np.int64, np.float64, np.bool_):
            raise StateError(
                "A column of partials must hold int64, float64, bool, or decimals as two words",
                code="WINDOW_PARTIAL_TYPE",
                got=f"{self.values.dtype} of shape {self.values.shape}",
                do="Widen shorter numbers; merge other types by their rank, or by position",
            )
        if self.valid is not None and self.valid.shape != self.values.shape[:1]:
            raise StateError(
                "Values and their validity differ in length",
                code="WINDOW_PARTIAL_LENGTH",
                got=f"{len(self.values)} values, {len(self.valid)} flags",
            )

    @property
    def decimal(self) -> bool:
        return self.values.ndim == 2

    def take(self, rows: NDArray[np.int64]) -> Column:
        return Column(self.values[rows], None if self.valid is None else self.valid[rows])

    def filled(self, value: float) -> NDArray[Any]:
        """The values, with nulls replaced by this value."""
        if self.valid is None:
            return self.values
        valid = self.valid[:, None] if self.decimal else self.valid
        return np.where(valid, self.values, self.values.dtype.type(value))
