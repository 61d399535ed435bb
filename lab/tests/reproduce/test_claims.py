from __future__ import annotations

from tidegate_lab.reproduce.claims import number_line, percent_line, series_line, shorter_line, times_line


def test_a_change_agrees_when_it_is_large_enough_or_low_enough() -> None:
    assert percent_line("3", "claim", "+30 %", [1.5, 1.2, 1.4], least=30).agrees is True
    assert percent_line("4", "claim", "-17.5 %", [0.8, 0.7, 0.9], most=-17.5).agrees is True
    assert percent_line("4", "claim", "-17.5 %", [0.9], most=-17.5).agrees is False
    assert percent_line("4", "claim", "-", [0.9]).agrees is None


def test_a_change_of_nothing_is_told_as_plus_zero() -> None:
    assert percent_line("4", "claim", "-", [0.999, 0.998, 0.9]).measured == "+0 % (-10 to +0)"
    assert shorter_line("9", "claim", "-", [0.999]).measured == "+0 %"


def test_ratios_are_told_as_times_or_as_a_change_and_judged_as_ratios() -> None:
    faster = times_line("8", "claim", "2 ×", [1.5, 2.5, 2.0], least=2.0)
    assert (faster.measured, faster.value, faster.agrees) == ("2.00 × (1.50 to 2.50)", 2.0, True)
    shorter = shorter_line("9", "claim", "-49 %", [0.5, 0.6, 0.4], most=0.45)
    assert (shorter.measured, shorter.value, shorter.agrees) == ("-50 % (-60 to -40)", 0.5, False)


def test_numbers_have_a_spread_and_series_an_order() -> None:
    assert number_line("11", "LI", "about 2", [1.0, 3.0, 2.0]).measured == "2 (1 to 3)"
    assert series_line("7", "LI", "-", [1.0, 0.5], unit=" ×").measured == "1.00 → 0.50 ×"
