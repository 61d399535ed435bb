from __future__ import annotations

from typing import Any

from tidegate.observe.shed_summary import Changes, doing


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
    assert doing(report(fraction=0.434, p=0.05)) == "looks at 43 % of the pairs, drops 5.0 % of the windows"
    assert doing(report(debts=debts(1200, paid=30))) == "repairs 30 pairs, owes 1,200 pairs"


def test_rows_that_are_lost_are_said_aloud_and_when_no_more_are() -> None:
    lost = report(1, 0.01, input_rows=200)
    lost["shed"]["join1"]["stale"] = [20, 30]
    assert doing(lost) == "looks at 1.0 % of the pairs, lets in the freshest 75 % of the rows"
    rush, over = Changes().of([report(0, 0.01), lost, report(2, 0.01)]), "all rows are let in again"
    assert [line for line in rush if "let in" in line] == [
        "nothing else is enough: only the freshest 75 % of the rows are let in, others are lost",
        over,
    ]


def test_what_a_version_does_not_report_is_not_said() -> None:
    assert doing({"batch": 0}) == "everything is processed"
    assert list(Changes().of([{"batch": 0}])) == []


def test_only_changes_are_said_and_each_batch_counts_once() -> None:
    changes = Changes()
    calm, rush = [report(0), report(1)], [report(2, 0.5), report(3, 0.3)]
    assert list(changes.of(calm)) == []
    (line,) = changes.of([*calm, *rush])
    assert line.startswith("more work than time: the join looks at 50 % of the pairs in reach")
    assert list(changes.of([*calm, *rush])) == []
    assert list(changes.of([report(4)])) == ["there is time again: all pairs are looked at"]


def test_windows_that_will_be_missing_are_said() -> None:
    changes = Changes()
    lines = list(changes.of([report(0, p=0.25), report(1, p=0.5), report(2)]))
    assert lines == [
        "25 % of the windows will be missing; all others stay exact",
        "no more windows are dropped",
    ]


def test_windows_that_are_estimated_are_said() -> None:
    def sampled(batch: int, *kept: float) -> dict[str, Any]:
        return report(batch, estimates={f"window{n}": {"kept": one} for n, one in enumerate(kept)})

    assert doing(sampled(0, 1.0, 0.25)) == "estimates windows from 25 % of the rows"
    lines = list(Changes().of([sampled(0, 1.0), sampled(1, 0.5, 1.0), sampled(2, 0.4), sampled(3, 1.0)]))
    assert lines == [
        "windows are estimated from 50 % of the rows, with 95 % intervals",
        "windows are made of all rows again",
    ]


def test_what_moved_is_said_in_the_singular_too() -> None:
    (line,) = Changes().of([report(0, balance=moved(12_340, keys=1, partitions=2))])
    assert line == (
        "balance: 1 key and 2 partitions moved to another instance, with 12,340 rows; none was copied"
    )
    assert list(Changes().of([report(0, balance=moved(0, keys=1, partitions=0))])) == []


def test_the_end_of_debts_is_said_as_it_was() -> None:
    paid, given_up = [debts(10), debts(0)], [debts(10), debts(0, forgiven=1)]
    assert list(Changes().of(report(n, debts=one) for n, one in enumerate(paid))) == [
        "all that was left out has been made up for"
    ]
    assert list(Changes().of(report(n, debts=one) for n, one in enumerate(given_up))) == [
        "debts were given up"
    ]
