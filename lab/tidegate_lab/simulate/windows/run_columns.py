"""Columns of several sorted runs as one, for tests and measurements that have no Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.window.aggregate.columns import Column


def in_order(runs: Sequence[Column], order: NDArray[np.int64]) -> Column:
    """One column of several runs, brought into the order of `runs.merge_runs`."""
    if len(runs) == 1:
        return runs[0].take(order)
    values = np.concatenate([run.values for run in runs])[order]
    if all(run.valid is None for run in runs):
        return Column(values)
    valid = [np.ones(len(run.values), np.bool_) if run.valid is None else run.valid for run in runs]
    return Column(values, np.concatenate(valid)[order])
