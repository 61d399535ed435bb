"""Decides which debts are written off because the rows they need take too much space.

If rows kept beyond their windows take more bytes than the user allows, debts are written off, oldest first,
because they keep the oldest segments. Their most valuable cells have been repaired by then
(`control/repair/repair.py`), so the least valuable part is lost. Debts that need rows dropped by the state
limit (`Skipping.forget_us`) are written off, too.

Guarantee: pure; write-offs are in the ledger and in the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import compress

from tidegate.control.repair.debts import Ledger, Needs
from tidegate.model.pieces import Piece
from tidegate.model.skip_plan import Skipping

#: Most debts in a manifest, where each takes a kilobyte or two; more are written off.
DEBTS_MAX = 1000


def without_given_up(ledger: Ledger, pieces: Iterable[Piece], skipping: Mapping[str, Skipping]) -> Ledger:
    """The ledger without debts that need rows which this batch drops."""
    if not ledger.debts:
        return ledger
    gone = [
        piece
        for piece in pieces
        if piece.operator in skipping and piece.last_us < skipping[piece.operator].forget_us[piece.side]
    ]
    if not gone:
        return ledger
    lost = [any(map(Needs([debt]).has, gone)) for debt in ledger.debts]
    kept = tuple(debt for debt, is_lost in zip(ledger.debts, lost, strict=True) if not is_lost)
    return Ledger(kept, ledger.written_off + tuple(compress(ledger.debts, lost)))


def within_limit(
    ledger: Ledger, pieces: Iterable[Piece], is_dead: Callable[[Piece], bool], bytes_max: int
) -> Ledger:
    """The ledger without debts that must be written off to keep within the byte limit."""
    dead = [piece for piece in pieces if is_dead(piece)]
    debts = sorted(ledger.debts, key=lambda debt: (debt.batch, debt.matches))
    count = max(0, len(debts) - DEBTS_MAX)
    while count < len(debts) and _bytes(dead, Needs(debts[count:])) > bytes_max:
        count += 1
    written_off = {(debt.operator, debt.batch) for debt in debts[:count]}
    kept = tuple(debt for debt in ledger.debts if (debt.operator, debt.batch) not in written_off)
    return Ledger(kept, ledger.written_off + tuple(debts[:count]))


def _bytes(pieces: Iterable[Piece], needs: Needs) -> int:
    return sum(piece.data.length for piece in pieces if needs.has(piece))
