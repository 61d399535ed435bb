"""The levels that the goal loop decided, for whatever acts on them: they are stored once, in its state."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.model.manifest import Manifest

#: The state of the goal loop (`control/goal/control_state.py`) in the manifest's control state.
CONTROL = "goal"


def levels_of(manifest: Manifest) -> Mapping[str, float]:
    """By shed option: probe, admit, sample or drop ratio, or 1 for an output that is shut off."""
    levels: Mapping[str, float] = manifest.control.get(CONTROL, {}).get("levels", {})
    return levels
