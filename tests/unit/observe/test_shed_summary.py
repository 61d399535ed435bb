from __future__ import annotations

from typing import Any

from tidegate.observe.shed_summary import Changes, doing, explained


def report(batch: int = 0, fraction: float = 1.0, p: float = 0.0, **more: Any) -> dict[str, Any]:
    return {
        "batch": batch,
        "shed": {"join1": {"fraction": fraction}, "join2": {"fraction": 1.0}},
        "windows": {"drops": {"busy": {"p": p, "shut": False}}},
        **more,
    }


def debts(owed: int, paid: int = 0, forgiven: int = 0) -> dict[str, Any]:
    return {"comparisons": owed, "repaired": {"comparisons": paid}, "written_off": [{}] * forgiven}


def moved(rows: int, keys: int, partitions: int) -> dict[str, Any]:
    return {"join1": {"moved": {"rows": rows, "keys": keys, "partitions": partitions}}, "w": {"moved": None}}


def test_what_is_going_on_is_said_in_a_line() -> None:
    assert doing(report()) == "everything is processed"
    assert doing(report(fraction=0.434, p=0.05)) == (
        "join1 probes 43 % of candidate pairs, busy computes 95 % of windows"
    )
    assert doing(report(debts=debts(1200, paid=30))) == (
        "30 skipped pairs were repaired, 1,200 skipped pairs wait for repair"
    )


def test_rows_that_are_lost_are_said_and_when_no_more_are() -> None:
    lost = report(1, 0.01, input_rows=200)
    lost["shed"]["join1"]["stale"] = [20, 30]
    assert (
        doing(lost) == "join1 probes 1.0 % of candidate pairs, join1 drops stale rows and admits 75 % of rows"
    )
    burst = Changes().of([report(0, 0.01), lost, report(2, 0.01)])
    assert [line for line in burst if "admits" in line] == [
        "more work than time: join1 drops stale rows and admits 75 % of rows: nothing else is enough",
        "there is time again: join1 admits rows of any age",
    ]


def test_what_a_version_does_not_report_is_not_said() -> None:
    assert doing({"batch": 0}) == "everything is processed"
    assert list(Changes().of([{"batch": 0}])) == []


def test_only_changes_are_said_and_each_batch_counts_once() -> None:
    changes = Changes()
    steady, burst = [report(0), report(1)], [report(2, 0.5), report(3, 0.3)]
    assert list(changes.of(steady)) == []
    assert list(changes.of([*steady, *burst])) == [
        "more work than time: join1 probes 50 % of candidate pairs, those most likely to match"
    ]
    assert list(changes.of([*steady, *burst])) == []
    assert list(changes.of([report(4)])) == ["there is time again: join1 probes all candidate pairs"]


def test_windows_that_will_be_missing_are_said() -> None:
    lines = list(Changes().of([report(0, p=0.25), report(1, p=0.5), report(2)]))
    assert lines == [
        "more work than time: busy computes 75 % of windows, each of them exact",
        "there is time again: busy computes all windows",
    ]


def test_windows_that_are_estimated_are_said() -> None:
    def sampled(batch: int, kept: float) -> dict[str, Any]:
        return report(batch, estimates={"window1": {"kept": kept}})

    assert doing(sampled(0, 0.25)) == "window1 estimates windows from 25 % of rows"
    assert list(Changes().of([sampled(0, 1.0), sampled(1, 0.5), sampled(2, 0.4), sampled(3, 1.0)])) == [
        "more work than time: window1 estimates windows from 50 % of rows, with 95 % intervals",
        "there is time again: window1 estimates windows from all rows",
    ]


def windows(candidates: int, probed: int) -> list[dict[str, Any]]:
    return [{"in_reach": candidates, "looked_at": probed, "skipped": candidates - probed}]


def test_shedding_is_explained_with_its_reason_and_its_numbers() -> None:
    given = report(17, expected={"full": 3.1, "fixed": 0.4}, budget_seconds=1.0)
    given["shed"]["join1"] = {"fraction": 0.4, "windows": windows(2_000, 860)}
    given["sift"] = {"hits": {"offered": 100, "received": 40}}
    given["warnings"] = [{"code": "GOAL_UNREACHABLE", "message": "Shedding is not enough."}]
    assert explained(given).splitlines() == [
        "Batch 17: something is shed.",
        "Without shedding it was expected to take 3.10 s, of which 0.40 s do not depend on rows; the goal "
        "leaves a batch 1.00 s.",
        "join1 probes 43 % of candidate pairs: it skipped 1,140 of 2,000, those least likely to match.",
        "hits admits 40 % of rows: its sifter drops rows where queries lose least.",
        "Shedding is not enough.",
    ]


def test_a_goal_that_only_observes_says_would() -> None:
    near = {"probe_ratio": 0.43, "admit_ratio": 1.0, "drop_ratio": None, "sample_ratio": None}
    would = {
        "operators": {"join1": {**near, "pairs_skipped": 1_140}},
        "outputs": {"out": {"loss_ratio": 0.21, "recall": 0.79, "windows_missing": 0}},
    }
    given = report(17, would_shed=would, expected={"full": 3.1, "fixed": 0.4}, budget_seconds=1.0)
    given["shed"]["join1"] = {"fraction": 1.0, "windows": windows(2_000, 2_000)}
    assert doing(given) == "join1 would probe 43 % of candidate pairs"
    assert explained(given).splitlines() == [
        "Batch 17: everything is processed, because the goal only observes.",
        "Without shedding it was expected to take 3.10 s, of which 0.40 s do not depend on rows; the goal "
        "leaves a batch 1.00 s.",
        "join1 would probe 43 % of candidate pairs: it would have skipped 1,140 of 2,000, those least likely "
        "to match.",
        "Output out would have lost about 21 % of its results.",
    ]
    easy = {"operators": {"join1": {**near, "probe_ratio": 1.0, "pairs_skipped": 0}}, "outputs": {}}
    assert explained(report(18, would_shed=easy)) == (
        "Batch 18: everything is processed; the goal only observes, and nothing would have been shed."
    )


def test_what_moved_is_said_in_the_singular_too() -> None:
    (line,) = Changes().of([report(0, balance=moved(12_340, keys=1, partitions=2))])
    assert line == (
        "balance: 1 key and 2 partitions moved to another instance, with 12,340 rows; none was copied"
    )
    assert list(Changes().of([report(0, balance=moved(0, keys=1, partitions=0))])) == []


def test_the_end_of_debts_is_said_as_it_was() -> None:
    paid, given_up = [debts(10), debts(0)], [debts(10), debts(0, forgiven=1)]
    assert list(Changes().of(report(n, debts=one) for n, one in enumerate(paid))) == [
        "all skipped pairs are repaired"
    ]
    assert list(Changes().of(report(n, debts=one) for n, one in enumerate(given_up))) == [
        "the last debts were written off"
    ]
