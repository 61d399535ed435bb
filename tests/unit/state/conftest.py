from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.state.samples import KINDS, make_store

from tidegate.state.store.store import Store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Every kind of store in turn: whatever holds for one must hold for all."""
    return make_store(request.param, tmp_path)
