from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from tidegate.papers.partners import Verdict
from tidegate.report.outcome import print_outcome, say, verdict_line
from tidegate.report.tally import Tally

EXACT = Verdict(
    pairs=5,
    pairs_exact=5,
    false_pairs=0,
    repeated=0,
    unmatched=2,
    unmatched_exact=3,
    false_unmatched=0,
)


def test_the_verdict_line_says_exact_only_when_it_is() -> None:
    assert verdict_line(EXACT).startswith("Checked against the exact answer: all 5 pairs")
    assert verdict_line(None).startswith("Stopped before all rows were in")


def test_a_wrong_answer_is_said_in_numbers() -> None:
    line = verdict_line(replace(EXACT, pairs=4, false_pairs=1))
    assert line.startswith("NOT the exact answer: 4 pairs of 5, 1 false, 0 repeated")


def test_the_table_tells_the_waiting_orders_from_the_lonely_ones() -> None:
    file = StringIO()
    print_outcome(Console(file=file), Tally(rows_in=9, rows_out=7, batch_seconds=[0.5]), EXACT)
    cells = {
        line.split("  ")[0]: line.split()[-1] for line in map(str.strip, file.getvalue().splitlines()) if line
    }
    assert cells["orders without a cab"] == "2"
    assert cells["orders that may still find one"] == "1"


def test_a_long_path_stays_in_one_line() -> None:
    file = StringIO()
    say(Console(file=file, width=20), "/tmp/" + "x" * 100 + "[a]")
    assert file.getvalue() == "/tmp/" + "x" * 100 + "[a]\n"
