"""Names for JSON objects whose fields have no class of their own: each says what the object is for."""

from __future__ import annotations

from typing import Any

#: A value as it is written to a file or sent over a wire.
Json = dict[str, Any]
#: What a controller, a strategy or a policy remembers from batch to batch; it lies in the manifest.
Snapshot = dict[str, Any]
#: A part of the progress or of a receipt, for people and machines.
Metrics = dict[str, Any]
