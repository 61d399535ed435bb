"""Kinds of command-line arguments that benchmarks take: lists, and names among those that are known."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def listed(kind: Callable[[str], T]) -> Callable[[str], list[T]]:
    """Some of a kind, with commas between."""
    return lambda text: [kind(one) for one in text.split(",")]


def name_among(*known: str) -> Callable[[str], str]:
    """One of these names; behind one that ends in `-` comes a number."""

    def checked(text: str) -> str:
        stem, dash, number = text.rpartition("-")
        numbered = stem + dash in known and number.replace(".", "", 1).isdecimal()
        if not numbered and (text not in known or text.endswith("-")):
            shown = ", ".join(f"{name}N" if name.endswith("-") else name for name in known)
            raise argparse.ArgumentTypeError(f"unknown. Got: {text}. Choose among {shown}")
        return text

    return checked
