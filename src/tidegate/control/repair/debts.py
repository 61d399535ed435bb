"""The ledger of debts: pairs that a batch skipped are recorded, repaired in parts, written off if necessary.

Ours; no paper has it. A debt is (rows of batch b) × (rows stored by then), less what the plan of b probed. It
names no file and no instance: stored rows carry their batch, and `join/selective/skipped_ranges.py` finds the
pairs from times and identities, so a debt survives merges, moves and splits. It is divided into *cells*
(basic windows by age), and a cell into rows by hash sampling, so that any spare time can repair a part:

    debt of batch 7    age 0  ████████████   repaired
                       age 1  ██████░░░░░░   repaired for rows whose hash is below 0.5
                       age 2  ░░░░░░░░░░░░   in debt

Rows needed for a repair outlive their window. If these take more bytes than the user allows, debts are
written off, oldest first, because they keep the oldest segments. Their most valuable cells have been repaired
by then (`control/repair/repair.py`). Debts that need rows dropped by the state limit (`Skipping.forget_us`)
are written off, too.

Guarantee: pure. Each row of a cell is repaired exactly once, no stored row that a debt needs is dropped, and
write-offs are in the ledger and in the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from tidegate.model.debts import Debt, DebtCell, DebtRepair
from tidegate.model.graph import OperatorTraits
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import Piece
from tidegate.model.plan import Plan
from tidegate.model.reports import TaskReport
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US, END_US, LEFT, RIGHT
from tidegate.window.lifetime import Lifetime, RowsLifetime

#: First and last time of no row at all.
NOTHING = (END_US, BEGINNING_US)
Span = tuple[int, int]


@dataclass(frozen=True)
class Ledger:
    """The debts after a pass, and what was written off in its batch."""

    debts: tuple[Debt, ...]
    written_off: tuple[Debt, ...] = ()


def debts_after(
    before: Manifest, plan: Plan, reports: Sequence[TaskReport], operators: Mapping[str, OperatorTraits]
) -> Ledger:
    """The ledger after a pass: less its repairs, plus what it skipped; empty where repair is off."""
    written_off = before.written_off if before.batch == plan.batch else ()
    if plan.repair.bytes_max is None:
        return Ledger((), written_off + before.debts)
    debts = [left for debt in before.debts if (left := _less(debt, plan.repair.repairs)) is not None]
    for name, skipping in plan.shed.skipping.items():
        mine = [report for report in reports if report.operator == name]
        stored = [piece for piece in before.pieces if piece.operator == name]
        left_out = recorded(plan, operators[name], skipping, mine, stored)
        if left_out is not None:
            debts.append(left_out)
    return Ledger(tuple(debts), written_off)


def recorded(
    plan: Plan,
    operator: OperatorTraits,
    skipping: Skipping,
    reports: Sequence[TaskReport],
    stored: Sequence[Piece],
) -> Debt | None:
    """What a join skipped in a pass; None if it probed everything, or no rows arrived."""
    new = [piece for report in reports for piece in report.state.added if _is_new(piece, plan.batch)]
    cells = _cells(skipping, reports)
    if not new or not cells:
        return None
    # Only for reports, and large: the shares contain the decision.
    said = replace(skipping, fractions=(1.0, 1.0), orders=((), ()))
    spans = _spans(operator, new, [*stored, *new], skipping.forget_us)
    return Debt(operator.name, plan.batch, said, plan.seed, spans, cells)


def _is_new(piece: Piece, batch: int) -> bool:
    """Whether these rows arrived in this batch and probe."""
    return piece.first_batch == batch and piece.level == 0 and not (piece.keyless or piece.marks)


def _cells(skipping: Skipping, reports: Sequence[TaskReport]) -> tuple[DebtCell, ...]:
    """The debt per window and age. Counts are estimates, so a cell with a count of 0 may still be in debt."""
    cells = []
    for window, shares in enumerate(skipping.shares):
        probes = [report.probes[window] for report in reports if report.probes]
        zero = np.zeros(len(shares))
        candidates = np.sum([zero, *(np.array(one.candidates) for one in probes)], axis=0)
        seen = np.sum([zero, *(np.add(one.chosen, one.explored) for one in probes)], axis=0)
        found = np.sum([zero, *(np.add(one.chosen_matches, one.explored_matches) for one in probes)], axis=0)
        left_out = np.maximum(0, candidates - seen)
        # For an age with few probes, the mean over all ages is the better estimate.
        overall = found.sum() / max(seen.sum(), 1.0)
        expected = left_out * (found + overall) / (seen + 1)
        cells += [
            DebtCell(window, age, int(left_out[age]), float(expected[age]))
            for age, share in enumerate(shares)
            if share < 1
        ]
    return tuple(cells)


def _spans(
    operator: OperatorTraits, new: Sequence[Piece], stored: Sequence[Piece], forget_us: tuple[int, int]
) -> tuple[Span, Span]:
    """Per side: times of the rows that arrived, and of all their candidates that were stored."""
    within = operator.within
    assert not isinstance(within, Lifetime | RowsLifetime), "windows have no pairs to skip"
    came = [_hull([piece for piece in new if piece.side == side]) for side in (LEFT, RIGHT)]
    needed = []
    for side in (LEFT, RIGHT):
        first, last = came[side]
        other = came[1 - side]
        if other != NOTHING:
            low, high = within.partner_range(1 - side, np.array(other, np.int64))
            newest = _hull([piece for piece in stored if piece.side == side and not piece.keyless])[1]
            first = min(first, max(int(low[0]), forget_us[side]))
            last = max(last, min(newest, int(high[1])))
        needed.append((first, last))
    return needed[LEFT], needed[RIGHT]


def _hull(pieces: Sequence[Piece]) -> Span:
    if not pieces:
        return NOTHING
    return min(piece.first_us for piece in pieces), max(piece.last_us for piece in pieces)


def _less(debt: Debt, repairs: Mapping[str, tuple[DebtRepair, ...]]) -> Debt | None:
    """The debt after the repairs of a plan; None if nothing is left."""
    made = [payment for payment in repairs.get(debt.operator, ()) if payment.batch == debt.batch]
    until = {(cell.window, cell.age): cell.until for payment in made for cell in payment.cells}
    cells = tuple(
        cell._replace(repaired=until.get((cell.window, cell.age), cell.repaired)) for cell in debt.cells
    )
    left = tuple(cell for cell in cells if cell.repaired < 1)
    return replace(debt, cells=left) if left else None


class Needs:
    """Which stored rows debts need: per operator and side, spans of time that do not overlap."""

    def __init__(self, debts: Iterable[Debt]) -> None:
        self._spans: dict[tuple[str, int], list[Span]] = {}
        for debt in debts:
            for side in (LEFT, RIGHT):
                if debt.spans[side] != NOTHING:
                    self._spans.setdefault((debt.operator, side), []).append(debt.spans[side])
        self._spans = {of: _united(spans) for of, spans in self._spans.items()}

    def has(self, piece: Piece) -> bool:
        spans = self._spans.get((piece.operator, piece.side), ())
        return any(first <= piece.last_us and piece.first_us <= last for first, last in spans)

    def since_us(self, operator: str, side: int) -> int:
        """Rows from here on may be needed."""
        spans = self._spans.get((operator, side))
        return spans[0][0] if spans else END_US


def _united(spans: Iterable[Span]) -> list[Span]:
    united: list[Span] = []
    for first, last in sorted(spans):
        if united and first <= united[-1][1]:
            first, last = united[-1][0], max(last, united.pop()[1])
        united.append((first, last))
    return united


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
