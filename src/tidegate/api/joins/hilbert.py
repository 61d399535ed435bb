"""`tidegate.hilbert`: places as join keys, so that near places get near numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyspark.sql import Column


@overload
def hilbert(lat: str | Column, lon: str | Column, bits: int) -> Column: ...
@overload
def hilbert(lat: NDArray[Any], lon: NDArray[Any], bits: int) -> NDArray[np.int64]: ...
def hilbert(lat: Any, lon: Any, bits: int) -> Any:
    """The cell of a place on a Hilbert curve, as a key: near numbers are near places.

    `lat`, `lon`: degrees. Columns (or SQL text) give a column, numpy arrays an array; the same cells either
    way. `bits`: of each coordinate; more bits make smaller cells. A place out of range has no cell: null, or
    -1. `tidegate.route.hilbert.cell_bounds` leads back to the cell.

    >>> hilbert(np.array([40.7]), np.array([-74.0]), bits=8).tolist()
    [29988]
    """
    if isinstance(lat, np.ndarray):
        from tidegate.route.hilbert import hilbert as of_arrays

        return of_arrays(lat, lon, bits)
    from tidegate.driver.frames.hilbert import hilbert as of_columns

    return of_columns(lat, lon, bits)
