"""The receipt of a batch: modes, recall and ledgers of streams and outputs, as plain JSON, in no time."""

from __future__ import annotations

import json
import timeit
from dataclasses import replace
from typing import Any

from tests.unit.control.receipts.test_completeness import ALL, OPERATORS, state
from tests.unit.control.receipts.test_ledger import joined
from tests.unit.control.receipts.test_recall import looks

from tidegate.control.planning import next_plan
from tidegate.control.receipts.ledger import RANDOM_DROP, Counted
from tidegate.control.receipts.receipts import ESTIMATED, EXACT, NO_SAMPLE, SUBSET, BatchOutcome, receipt_of
from tidegate.join.selective.reach import ages_of
from tidegate.join.selective.selection import GROUPS
from tidegate.join.within import Within
from tidegate.model.debts import Debt, DebtCell
from tidegate.model.graph import Lineage, OperatorTraits, Outlet, Reader
from tidegate.model.manifest import Manifest
from tidegate.model.pieces import ByteRange, Piece
from tidegate.model.reports import ProbeCounts, Repaired, TaskReport, WorkCounts
from tidegate.model.routing import together
from tidegate.model.skip_plan import Skipping
from tidegate.model.times import BEGINNING_US

NEAR = {"join1": replace(OPERATORS["near"], name="join1")}
WAYS = Lineage(
    ("a", "b", "c"),
    (
        Reader("join1", 0, "a", RANDOM_DROP, True, False, joins=True),
        Reader("join1", 1, "b", RANDOM_DROP, True, False),
    ),
    (
        Outlet("pairs", "join1"),
        Outlet("few", "join1", plain=False),
        Outlet("c", "c"),
        Outlet("old", "c", "late"),
    ),
    NEAR,
    frozenset({"join1"}),
)
AGES = ages_of(Within(-10, 10), 0).count
COUNTED = Counted({"c": 10}, {"c": 1}, late={"c": 2})


def before() -> Manifest:
    return replace(state(), settled_us={"join1": 0}, routing={"join1": together(0, 1, (0,))})


def told(
    skipping: Skipping | None = None, *reports: TaskReport, manifest: Manifest | None = None
) -> BatchOutcome:
    known = manifest or before()
    plan = replace(
        next_plan(4, known, NEAR, now_us=77),
        settle_us={"join1": 1000},
        shed=replace(
            next_plan(4, known, NEAR, now_us=77).shed,
            skipping={} if skipping is None else {"join1": skipping},
        ),
    )
    return BatchOutcome(plan, known, known, reports, counted=COUNTED)


def rows_of(given: BatchOutcome, ways: Lineage = WAYS) -> dict[str, Any]:
    receipt, _ = receipt_of(ways, given)
    assert json.loads(json.dumps(receipt)) == receipt
    assert (receipt["batch_id"], receipt["started_at"]) == (4, "1970-01-01T00:00:00.000077+00:00")
    return {f"{row['kind']} {row['name']}": row for row in receipt["rows"]}


def probing(*seen: ProbeCounts) -> TaskReport:
    return replace(joined(8), emitted=9, probes=seen, work=WorkCounts(probed=8, matches=9))


def test_a_batch_that_left_out_nothing_is_exact_late_rows_or_not() -> None:
    rows = rows_of(
        told(
            None,
            replace(joined(5, late=2, rejected=1), emitted=9, work=WorkCounts(matches=9)),
            joined(4, side=1),
        )
    )
    stream, output = rows["stream a"], rows["output pairs"]
    assert (stream["mode"], stream["complete"], stream["loss_ratio"]) == (EXACT, False, 0.0)
    assert (stream["rows_offered"], stream["rows_processed"], stream["rows_late"]) == (8, 5, 2)
    assert (output["mode"], output["complete"], output["loss_ratio"]) == (EXACT, False, 0.0)
    assert (output["recall"], output["loss_reasons"], output["rows_written"]) == (1.0, [], 9)
    assert rows["stream b"]["complete"]
    assert (output["rows_offered"], output["rows_processed"]) == (12, 9)
    assert rows["output few"]["rows_written"] is None


def test_rows_that_go_past_all_operators_have_the_ledger_of_their_stream() -> None:
    rows = rows_of(told())
    straight, late = rows["output c"], rows["output old"]
    assert (straight["rows_offered"], straight["rows_processed"], straight["rows_written"]) == (10, 7, 7)
    assert (late["rows_offered"], late["rows_processed"], late["rows_written"]) == (2, 2, 2)
    assert rows["stream c"]["rows_late"] == 2


def test_dropped_rows_make_a_subset_and_are_remembered() -> None:
    given = told(replace(ALL, keep_share=0.5), joined(5, dropped=3))
    receipt, gaps_us = receipt_of(WAYS, given)
    rows = {row["name"]: row for row in receipt["rows"]}
    assert rows["a"]["shed_reasons"] == {
        "random_drop": 3,
        "sifter": 0,
        "window_drop": 0,
        "sampling": 0,
        "stale": 0,
    }
    assert (rows["a"]["mode"], rows["b"]["mode"], rows["pairs"]["mode"]) == (SUBSET, EXACT, SUBSET)
    assert rows["pairs"]["loss_reasons"] == ["random_drop"]
    assert "recall" not in rows["pairs"]
    assert gaps_us == {"join1": 1000}


def test_stale_rows_are_lost_remembered_and_said_aloud() -> None:
    given = told(replace(ALL, fresh_us=(5_000_000, BEGINNING_US)), joined(5, stale=3))
    receipt, gaps_us = receipt_of(WAYS, given)
    rows = {row["name"]: row for row in receipt["rows"]}
    stream = rows["a"]
    assert (stream["rows_shed"], stream["shed_reasons"]["stale"], stream["rows_unexplained"]) == (3, 3, 0)
    assert (rows["a"]["mode"], rows["b"]["mode"], rows["pairs"]["mode"]) == (SUBSET, EXACT, SUBSET)
    assert rows["pairs"]["loss_reasons"] == ["stale"]
    assert "recall" not in rows["pairs"]
    assert gaps_us == {"join1": 1000}
    (said,) = rows["a"]["warnings"]
    assert said["code"] == "STALE_ROWS_DROPPED"
    assert "3 of 8 rows were older than 1970-01-01T00:00:05.000000" in said["message"]
    assert rows["b"]["warnings"] == []


def some(explore_share: float = 0.1) -> Skipping:
    shares = (1.0,) * 11 + (0.0,) * (AGES - 11)
    return Skipping(0.5, (shares, shares), explore_share, 0.5)


def seen(rows: int = 1600) -> ProbeCounts:
    groups = tuple((0,) * GROUPS if age < 11 else (1,) * GROUPS for age in range(AGES))
    return looks((5.0,) * 11 + (0.0,) * (AGES - 11), groups if rows else (), rows)


def test_skipped_pairs_have_a_recall_also_by_lag() -> None:
    row = rows_of(told(some(), probing(seen(), seen())))["output pairs"]
    hidden = AGES - 11
    found, true = 2 * (55 + hidden * GROUPS), 2 * (55 + hidden * 20 * GROUPS)
    assert (row["mode"], row["loss_reasons"]) == (SUBSET, ["skipped_pairs"])
    assert abs(row["recall"] - found / true) < 1e-9
    assert row["loss_ratio"] == 1 - row["recall"]
    assert row["recall_low"] < row["recall"] < row["recall_high"]
    lags = {(one["stored"], one["lag_us"]): one["recall"] for one in row["recall_by_lag"]}
    assert len(lags) == 2 * AGES
    assert lags["left", -10] == 1.0
    assert lags["right", 10] == 0.05


def test_where_nobody_explores_there_is_no_recall_and_the_receipt_says_so() -> None:
    row = rows_of(told(some(0.0), probing(seen(0), seen(0))))["output pairs"]
    assert row["loss_reasons"] == [NO_SAMPLE, "skipped_pairs"]
    assert "recall" not in row


def test_the_recall_of_pairs_is_not_that_of_a_semi_join() -> None:
    row = rows_of(told(some(), probing(seen(), seen())), replace(WAYS, pairing=frozenset()))["output pairs"]
    assert (row["mode"], "recall" in row) == (SUBSET, False)


def test_stored_rows_that_were_given_up_are_counted_where_they_came_from() -> None:
    def piece(last_us: int) -> Piece:
        data = ByteRange(f"segments/{last_us}", 0, 1, "aa")
        return Piece("join1", 0, 0, 0, 5, last_us - 5, last_us, (0, 0), False, (0,), (0, 5), data)

    # Dead by its window, given up, still wanted.
    manifest = replace(before(), pieces=(piece(900), piece(992), piece(999)))
    rows = rows_of(told(replace(ALL, forget_us=(995, 0)), probing(), manifest=manifest))
    assert (rows["stream a"]["rows_evicted"], rows["stream b"]["rows_evicted"]) == (5, 0)
    assert rows["stream a"]["mode"] == SUBSET
    assert rows["stream a"]["rows_unexplained"] == 0


def test_missing_windows_are_named() -> None:
    given = replace(told(None, joined(5)), missing={"pairs": [(0, 30, 10)]}, missing_count={"pairs": 4})
    row = rows_of(given)["output pairs"]
    assert (row["mode"], row["missing_windows"]) == (SUBSET, [[0, 30, 10]])
    assert (row["windows_missing"], row["loss_reasons"], row["loss_ratio"]) == (4, ["window_drop"], None)
    closed = rows_of(replace(given, closed={"pairs": 16}))["output pairs"]
    assert (closed["windows_closed"], closed["loss_ratio"]) == (16, 0.25)


def test_estimates_are_no_subset_and_have_no_recall() -> None:
    row = rows_of(replace(told(None, joined(5)), estimated=["join1"]))["output pairs"]
    assert (row["mode"], row["loss_reasons"], "recall" in row) == (ESTIMATED, ["sampling"], False)


def test_ten_outputs_cost_little() -> None:
    names = [f"join{number}" for number in range(10)]
    operators = {
        name: OperatorTraits(name, ("a", "b"), Within(-10, 10), (False, False), (False, False))
        for name in names
    }
    ways = Lineage(
        ("a", "b"),
        tuple(Reader(n, side, "ab"[side], RANDOM_DROP, True, joins=True) for n in names for side in (0, 1)),
        tuple(Outlet(name, name) for name in names),
        operators,
        frozenset(names),
    )
    manifest = replace(
        before(), settled_us=dict.fromkeys(names, 0), routing=dict.fromkeys(names, together(0, 1, (0,)))
    )
    plan = replace(next_plan(4, manifest, operators, now_us=77), settle_us=dict.fromkeys(names, 1000))
    reports = [replace(joined(5), operator=name, instance=i) for name in names for i in range(4)]
    given = BatchOutcome(plan, manifest, manifest, reports)
    best = min(timeit.repeat(lambda: receipt_of(ways, given), number=5, repeat=5)) / 5
    # A millisecond where nothing else runs; machines that test are slower and busy.
    assert best < 0.01


def test_a_join_with_repair_tells_what_it_owes_paid_and_gave_up() -> None:
    half = Skipping(0.5, ((0.5,) * AGES, (0.5,) * AGES))
    given = told(
        half,
        replace(joined(8), repaired=Repaired(40, 3, 0.1), work=WorkCounts(probed=8)),
        replace(joined(4, side=1)),
    )
    owed = Debt("join1", 3, half, 0, ((0, 9), (0, 9)), (DebtCell(0, 1, 100, 5.0, repaired=0.25),))
    other = replace(owed, operator="join2")
    after = replace(given.after, debts=(owed, other), written_off=(replace(owed, batch=1),))
    repairing = replace(
        given, plan=replace(given.plan, repair=replace(given.plan.repair, bytes_max=1000)), after=after
    )
    output = rows_of(repairing)["output pairs"]
    pairs = (output[f"{of}_pairs"] for of in ("debt", "repaired", "written_off"))
    assert (output["mode"], *pairs) == (SUBSET, 75, 40, 75)
    assert "debt_pairs" not in rows_of(given)["output pairs"]
    assert "debt_pairs" not in rows_of(repairing)["output c"]
