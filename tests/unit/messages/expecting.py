"""What the tests of messages share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.api.sources import stream
from tidegate.api.streams import Stream
from tidegate.errors import TidegateError

#: The longest message that a person reads to its end: six lines of 100 characters.
LENGTH_MAX = 600


@dataclass
class Frame:
    """As much of a data frame as describing a flow needs."""

    columns: tuple[str, ...] = ("ts", "cell")
    isStreaming: bool = False  # noqa: N815  (the name that Spark uses)
    #: Columns with a watermark, and its delay in milliseconds.
    watermarks: tuple[tuple[str, int], ...] = ()

    @property
    def schema(self) -> Any:
        delays = dict(self.watermarks)
        fields = [
            SimpleNamespace(
                name=name, metadata={"spark.watermarkDelayMs": delays[name]} if name in delays else {}
            )
            for name in self.columns
        ]
        return SimpleNamespace(fields=fields)


def a_stream(name: str = "orders", **settings: Any) -> Stream:
    return stream(Frame(), name=name, **{"time": "ts", **settings})  # type: ignore[arg-type]


def expect(code: str, call: Callable[[], object]) -> TidegateError:
    """Run the call, which must raise an error with this code, and check the form of the message."""
    with pytest.raises(TidegateError) as caught:
        call()
    error = caught.value
    assert error.code == code
    assert str(error).startswith(f"[{code}] ")
    assert len(str(error)) <= LENGTH_MAX
    return error
