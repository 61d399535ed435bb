"""Whatever a query does to its pieces, every manifest of the chain loads back as it was committed."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.state.samples import a_manifest, a_piece, a_range, alter, flipped

from tidegate.errors import StateError
from tidegate.model.debts import Debt, DebtCell
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.skip_plan import Skipping
from tidegate.state.manifest_log import ManifestLog
from tidegate.state.store.memory import MemoryStore

NAMES = itertools.count()


@st.composite
def histories(draw: st.DrawFn) -> list[Manifest]:
    """Manifests of increasing batches: pieces come, go, change and trade places; debts are paid and come."""
    batch, pieces, debts = 0, list[Piece](), list[Debt]()
    manifests = []
    for step in range(draw(st.integers(1, 12))):
        pieces = [p for p in pieces if draw(st.integers(0, 3))]
        pieces = [_touched(p, step) if draw(st.booleans()) else p for p in pieces]
        pieces += [a_piece(f"s/{step}", offset=64 * i) for i in range(draw(st.integers(0, 3)))]
        if draw(st.booleans()):
            pieces = draw(st.permutations(pieces))
        batch += draw(st.integers(1, 3))
        debts = [_paid(debt) if draw(st.booleans()) else debt for debt in debts if draw(st.integers(0, 3))]
        debts += [_debt(operator, batch) for operator in ("far", "near") if draw(st.booleans())]
        manifests.append(replace(a_manifest(batch, *pieces), debts=tuple(debts)))
    return manifests


def _debt(operator: str, batch: int) -> Debt:
    skipping = Skipping(0.5, ((0.5,), (1.0,)))
    return Debt(operator, batch, skipping, 1, ((0, 1), (2, 3)), (DebtCell(0, 0, 9, 1.5),))


def _paid(debt: Debt) -> Debt:
    return replace(debt, cells=tuple(cell._replace(repaired=(cell.repaired + 1) / 2) for cell in debt.cells))


def _touched(piece: Piece, step: int) -> Piece:
    matched: dict[str, ByteRange] = {**piece.matched, str(step % 3): a_range(f"s/{step}", 640)}
    return replace(piece, matched=matched)


def committed(manifests: list[Manifest], every: int, reopen: set[int]) -> MemoryStore:
    store = MemoryStore(f"manifest-chain-{next(NAMES)}")
    log = ManifestLog(store, snapshot_every=every)
    for manifest in manifests:
        if manifest.batch in reopen:
            log = ManifestLog(store, snapshot_every=every)
            log.load_latest()
        log.commit(manifest)
    return store


def chain_of_the_latest(store: MemoryStore) -> list[str]:
    """Files from the last snapshot on: what the newest manifest is built from."""
    chain: list[str] = []
    for path in reversed(store.list()):
        chain.append(path)
        if json.loads(store.read(path))["body"]["base"] is None:
            break
    return chain


@settings(max_examples=60)
@given(histories(), st.integers(1, 5), st.sets(st.integers(0, 36)))
def test_every_manifest_loads_back_equal(manifests: list[Manifest], every: int, reopen: set[int]) -> None:
    store = committed(manifests, every, reopen)
    assert [ManifestLog(store).load(m.batch) for m in manifests] == manifests
    assert ManifestLog(store).load_latest() == manifests[-1]


@settings(max_examples=60)
@given(histories(), st.integers(1, 5), st.integers(1, 12))
def test_a_purge_never_takes_what_the_kept_ones_need(
    manifests: list[Manifest], every: int, keep: int
) -> None:
    store = committed(manifests, every, set())
    ManifestLog(store).purge(keep)
    kept = manifests[-keep:]
    assert [ManifestLog(store).load(m.batch) for m in kept] == kept


@settings(max_examples=60)
@given(histories(), st.integers(1, 5), st.data())
def test_damage_is_found_where_it_matters_and_does_no_harm_elsewhere(
    manifests: list[Manifest], every: int, data: st.DataObject
) -> None:
    store = committed(manifests, every, set())
    path = data.draw(st.sampled_from(store.list()))
    content = store.read(path)
    chain = chain_of_the_latest(store)
    at = data.draw(st.integers(0, len(content) - 1))
    alter(store, path, content[:at] if data.draw(st.booleans()) else flipped(content, at))
    if path in chain:
        with pytest.raises(StateError, match=path):
            ManifestLog(store).load_latest()
    else:
        assert ManifestLog(store).load_latest() == manifests[-1]
