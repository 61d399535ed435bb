"""Types of command-line arguments, which fail before anything slow starts."""

from __future__ import annotations

import argparse
from math import isfinite


def positive_int(text: str) -> int:
    """A whole number of at least 1."""
    value = whole_number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1. Got: {text}")
    return value


def whole_number(text: str) -> int:
    """A whole number of at least 0."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number. Got: {text}") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative. Got: {text}")
    return value


def positive_number(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number. Got: {text}") from None
    if not (isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be above 0. Got: {text}")
    return value
