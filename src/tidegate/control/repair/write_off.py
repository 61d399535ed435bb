"""Decides which debts are given up, because what they need takes too much room.

Where rows that outlive their windows take more bytes than the user allows, debts are forgiven: oldest first,
since they are what keeps old segments; and of a debt the most valuable cells have been paid by then
(control/repair/repair.py), so what is lost is the least valuable of the oldest. So are debts that need rows
which are given up to keep the whole state small (`Skipping.forget_us`).

Guarantee: pure; what is forgiven is in the ledger, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import compress

from tidegate.control.repair.debts import Ledger, Needs
from tidegate.model.pieces import Piece
from tidegate.model.skip_plan import Skipping

#: Each debt is a kilobyte or two in the state: more of them are forgiven, however little else they keep.
DEBTS_MAX = 1000


def without_given_up(ledger: Ledger, pieces: Iterable[Piece], skipping: Mapping[str, Skipping]) -> Ledger:
    """The ledger less debts that need rows which this batch gives up."""
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
    """The ledger less what must be forgiven, so that not too much outlives its window for it."""
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
