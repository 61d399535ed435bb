"""Real data that may not come with Tidegate: there, or an error that says where to get it from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidegate.errors import FlowError


def require(folder: Path, files: Sequence[str], what: str, *, why: str, made_of: str, instead: str) -> None:
    """Refuse to begin without these files."""
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise FlowError(
            f"{what} are not there",
            code="LAB_REAL_DATA_MISSING",
            got=f"no {' and no '.join(missing)} in {folder}",
            why=why,
            do=f"Name the folder that has them (--real FOLDER or TIDEGATE_DATA), {made_of}; "
            f"or do without real data: {instead}",
        )
