"""Scaling gain ratio: how much of an added instance's memory holds rows, and not what balancing needs.

Paper: FastJoin, section IV-C, equations 12 and 13. With rows of `row_bytes`, and `key_bytes` of statistics
for each key,

    SGR = row_bytes · |R| / (row_bytes · |R| + key_bytes · K)

which is close to one as soon as keys have some ten rows each.
"""

from __future__ import annotations


def scaling_gain_ratio(rows: float, keys: float, row_bytes: float, key_bytes: float) -> float:
    """SGR; 1 where nothing is stored and nothing is kept beside it."""
    stored, beside = row_bytes * rows, key_bytes * keys
    return stored / (stored + beside) if stored + beside > 0 else 1.0
