"""The figures of the sifters paper, short: what they are made of, and what holds whatever the size."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tidegate.cli.main import main
from tidegate_lab.reproduce.experiment import Options, Outcome
from tidegate_lab.reproduce.sifters import construction_figure, lookup_figure
from tidegate_lab.reproduce.sifters.beyond import beyond, over_best
from tidegate_lab.reproduce.sifters.claims.gains_by_throttler import DEDP, THROTTLERS
from tidegate_lab.reproduce.sifters.construction_figure import figure_6
from tidegate_lab.reproduce.sifters.lookup_figure import figure_7
from tidegate_lab.reproduce.sifters.partition_pictures import NAMES, REGIONS, SAMPLE_ROWS, figure_3
from tidegate_lab.reproduce.sifters.region_figure import figure_5
from tidegate_lab.reproduce.sifters.runs import sweep, timing
from tidegate_lab.reproduce.sifters.runs.combinations import AUTO, CONTENDERS, RANDOM, SIFTERS, Measured
from tidegate_lab.reproduce.sifters.runs.skew_points import every_point
from tidegate_lab.reproduce.sifters.sensitivity_figures import figure_9, figure_10
from tidegate_lab.reproduce.sifters.skew_figure import figure_4
from tidegate_lab.reproduce.sifters.throttler_figure import figure_8

QUICK = Options((0, 1), quick=True)
#: What claims about data and queries in the same normals have in common.
MEANS = "data and queries around the same means"


@pytest.fixture(scope="module")
def skew() -> Outcome:
    return figure_4(QUICK)


def changes(outcome: Outcome, panel: int, curve: str) -> list[float]:
    """The curve of this name."""
    (found,) = (one for one in outcome.plots[0].panels[panel].curves if one.name == curve)
    return list(found.y)


def agreeing(outcome: Outcome) -> dict[str, bool | None]:
    return {line.claim: line.agrees for line in outcome.lines}


def test_figure_3_tiles_the_space_and_shows_every_sample_row() -> None:
    outcome = figure_3(QUICK)
    (plot,) = outcome.plots
    assert [one.title for one in plot.maps] == list(NAMES.values())
    for one in plot.maps:
        assert 2 <= len(one.areas) <= REGIONS
        assert sum((right - left) * (top - bottom) for left, bottom, right, top, _ in one.areas) == (
            pytest.approx(1.0)
        )
        assert len(one.dots) == SAMPLE_ROWS
        assert max(size for *_, size in one.dots) > 0
    assert [line.agrees for line in outcome.lines] == [True, True]


def test_figure_4_has_all_contenders_in_all_panels_for_both_alphas(skew: Outcome) -> None:
    assert [plot.name for plot in skew.plots] == [
        f"figure-4{alphas}{reading}" for reading in ("", "-whole-normals") for alphas in ("", "-alpha-1")
    ]
    for plot in skew.plots:
        assert len(plot.panels) == 8
        for panel in plot.panels:
            assert [curve.name for curve in panel.curves] == [name.upper() for name in CONTENDERS]
            assert list(panel.curves[0].x) == [1, 4, 10]
    # With α = 1 half of the rows is half of the completeness, for queries that have data.
    (random,) = (curve for curve in skew.plots[1].panels[7].curves if curve.name == "RANDOM")
    assert random.y == pytest.approx([0.5] * 3, abs=0.02)


def test_sifters_gain_most_where_data_or_queries_are_skewed(skew: Outcome) -> None:
    bars = {bar.id.removeprefix("sifters.gain."): bar.value or 0.0 for bar in skew.bars}
    skewed = ["unif_skew", "skew_unif", "skew_skew"]
    plain, whole = [*skewed, "unif_unif"], [f"{one}.whole_normals" for one in skewed]
    assert list(bars) == [f"{one}{judge}" for one in [*plain, *whole] for judge in ("", ".bounded")]
    for reading in ("", ".whole_normals"):
        least = min(bars[f"{one}{reading}.bounded"] for one in skewed)
        assert least > 25 > 15 > bars["unif_unif.bounded"] > 0


def test_the_readings_have_the_same_targets_and_differ_where_something_is_skewed(skew: Outcome) -> None:
    found = {bar.id: bar for bar in skew.bars}
    whole = [bar for id, bar in found.items() if ".whole_normals" in id]
    assert len(whole) == 6
    for bar in whole:
        within = found[bar.id.replace(".whole_normals", "")]
        assert bar.target == within.target
        assert bar.value != within.value


def test_the_readings_are_one_where_nothing_is_skewed(skew: Outcome) -> None:
    for within, whole in zip(skew.plots[:2], skew.plots[2:], strict=True):
        same = [one.curves == other.curves for one, other in zip(within.panels, whole.panels, strict=True)]
        assert same == 2 * [False, False, False, True]


@pytest.mark.parametrize("figure", [figure_5, figure_8, figure_9, figure_10, beyond])
def test_every_figure_tells_both_readings(figure: Callable[[Options], Outcome]) -> None:
    outcome = figure(Options((0,), quick=True))
    assert_told_twice(outcome)
    names = [plot.name for plot in outcome.plots]
    plain = [name for name in names if not name.endswith("-whole-normals")]
    assert names == [*plain, *(f"{name}-whole-normals" for name in plain)]
    for plot in outcome.plots:
        whole = plot.name.endswith("-whole-normals")
        assert ("with whole normals" in plot.title) == whole
        assert ("within hot spots" in plot.subtitle) != whole


def test_figure_4_tells_both_readings(skew: Outcome) -> None:
    assert_told_twice(skew)


def assert_told_twice(outcome: Outcome) -> None:
    """First within the hot spots, then with whole normals; once where data and queries are uniform."""
    claims = [line.claim for line in outcome.lines]
    words = " with whole normals"
    plain = [claim for claim in claims if words not in claim]
    whole = [claim.replace(words, "") for claim in claims if words in claim]
    assert whole == [claim for claim in plain if "UNIF/UNIF" not in claim or "UNIF/SKEW to" in claim]
    assert len(set(claims)) == len(claims)


def test_uniform_data_and_skewed_queries_gain_more_than_the_reverse_unless_normals_are_whole(
    skew: Outcome,
) -> None:
    judged = {claim: agrees for claim, agrees in agreeing(skew).items() if "gains more than" in claim}
    along_g = {claim: agrees for claim, agrees in judged.items() if "G = " in claim}
    assert list(along_g.values()) == [True, False]
    assert len(judged) == 4


def test_what_printed_sifters_let_pass_beyond_z_is_a_gain_by_the_papers_measure_alone(skew: Outcome) -> None:
    bars = {bar.id: bar.value or 0.0 for bar in skew.bars}
    assert bars["sifters.gain.unif_unif"] > 1.5 * bars["sifters.gain.unif_unif.bounded"]


def test_how_one_judges_is_told_where_the_paper_leaves_it_open(skew: Outcome) -> None:
    told = {line.claim: line.samples for line in skew.lines if line.paper == "not told"}
    assert len(told) == 12 + 9
    (bounded,) = (bar for bar in skew.bars if bar.id == "sifters.gain.skew_unif.bounded")
    judged = told["SKEW/UNIF: the best over random, judged by 4,000, 10,000, 20,000 rows"]
    # With fewer rows more queries have none by chance, and are complete whatever is dropped.
    assert judged[0] < judged[1] < judged[2] == pytest.approx(bounded.value)
    one_for_all = told["SKEW/UNIF: the same, one partitioner for all seeds"]
    assert one_for_all[-1] < judged[-1] + 3
    by_seed = told["SKEW/UNIF: the same, thresholds by the rows that judge"]
    assert np.median(by_seed) > judged[-1]


def test_data_and_queries_that_go_together_leave_little_to_gain(skew: Outcome) -> None:
    together = [line for line in skew.lines if line.claim.startswith("UNIF/UNIF: ") or MEANS in line.claim]
    judged = [line.agrees for line in together if line.paper in ("around +6 %", "little")]
    assert judged == [True] * 6


def test_more_regions_and_heavier_load_gain_more() -> None:
    outcome = figure_5(QUICK)
    for z in THROTTLERS:
        found = changes(outcome, 0, f"z = {z:g}")
        assert found == sorted(found)
    last = [changes(outcome, 0, f"z = {z:g}")[-1] for z in THROTTLERS]
    assert last == sorted(last, reverse=True)
    assert [bar.id.removeprefix("sifters.gain_z01.") for bar in outcome.bars] == [
        f"{regions}.{combination}{reading}{judge}"
        for reading in ("", ".whole_normals")
        for combination in ("unif_skew", "skew_unif", "skew_skew")
        for regions in ("l16", "l100")
        for judge in ("", ".bounded")
    ]


def test_figure_6_times_every_partitioner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "ROUNDS", 1)
    monkeypatch.setattr(construction_figure, "QUICK_MANY", 1_500)
    outcome = figure_6(Options((0,), quick=True))
    few, many = outcome.plots[0].panels
    assert [curve.name for curve in few.curves] == [name.upper() for name in SIFTERS]
    assert many.title.startswith("1,500 queries")
    assert [bar.id for bar in outcome.bars] == [
        "sifters.construction.l16",
        "sifters.construction.l100",
        "sifters.construction.l100.many_queries",
    ]
    slowest = max(curve.y[-1] for curve in few.curves)
    assert outcome.bars[1].value == pytest.approx(slowest)


def test_figure_7_tells_the_slowest_and_the_heaviest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "ROUNDS", 1)
    monkeypatch.setattr(lookup_figure, "BATCH_ROWS", 1_000)
    outcome = figure_7(Options((0,), quick=True))
    lookup, size = outcome.bars
    assert (lookup.id, size.id) == ("sifters.lookup", "sifters.bytes")
    assert lookup.value == pytest.approx(min(curve.y[-1] for curve in outcome.plots[0].panels[0].curves))
    assert size.value is not None
    assert 11 < size.value <= 24


def test_the_least_time_counts_in_turns_and_the_first_round_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done, clock = "", 0.0

    def work(name: str) -> None:
        nonlocal done, clock
        clock += {"a": 1.0, "b": 5.0}[name] / (1 + len(done))
        done += name

    monkeypatch.setattr(timing, "ROUNDS", 2)
    monkeypatch.setattr(timing, "process_time", lambda: clock)
    least = timing.least_seconds({name: partial(work, name) for name in "ab"})
    assert done == "ababab"
    assert least == pytest.approx({"a": 1 / 5, "b": 5 / 6})


def test_times_are_medians_over_the_seeds_by_number_of_regions() -> None:
    least = {("a", place, seed): place * (1.0 + 10 * seed) for place in (16, 4) for seed in (0, 1, 2)}
    assert timing.by_regions(least, ["a"]) == {"a": [44.0, 176.0]}


def test_quality_rises_fastest_at_high_load_unless_data_and_queries_go_together() -> None:
    outcome = figure_8(QUICK)
    assert len(outcome.lines) == 12 + 9
    assert all(line.agrees for line in outcome.lines)
    for plot in outcome.plots:
        for panel in plot.panels:
            for curve in panel.curves:
                assert list(curve.y) == sorted(curve.y)


def test_a_wider_fairness_bound_gains_more_but_little_at_low_load() -> None:
    outcome = figure_9(QUICK)
    for z in THROTTLERS:
        found = changes(outcome, 0, f"z = {z:g}")
        assert found[-1] >= found[0] - 0.5
    third, light = (changes(outcome, 0, f"z = {z}") for z in (0.3, 0.9))
    assert third[-1] - third[0] > 15 > 5 > light[-1] - light[0]


def test_larger_queries_gain_more() -> None:
    outcome = figure_10(QUICK)
    assert [curve.name for curve in outcome.plots[0].panels[0].curves] == [
        "z = 0.1",
        "z = 0.3",
        "z = 0.5",
        "z = 0.7",
    ]
    assert all(line.samples[-1] > line.samples[0] for line in outcome.lines if "DEDP" in line.claim)


def test_beyond_tells_how_auto_does_and_what_promises_are_worth() -> None:
    outcome = beyond(QUICK)
    found = {bar.id: bar for bar in outcome.bars}
    assert list(found) == [
        f"sifters.{bar}{reading}"
        for reading in ("", ".whole_normals")
        for bar in (
            "auto.worst_point",
            "auto.mean",
            "auto.worst_point.alpha_1",
            "foreseen",
            "foreseen.auto",
            "volume",
            "volume.auto",
        )
    ]
    for reading in ("", ".whole_normals"):
        assert found[f"sifters.auto.mean{reading}"].holds
        assert found[f"sifters.foreseen{reading}"].holds
        # Two seeds are luck.
        assert (found[f"sifters.volume{reading}"].value or 1.0) < 0.03
    passed, gained, taken = outcome.lines[-3:]
    assert (passed.value or 0.0) > 0.51
    assert (gained.value or 0.0) > (taken.value or 0.0) + 5


def test_where_no_sifter_beats_random_dropping_no_gain_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    alike = Measured(0.5, 0.6, 0.5, 0.5, 0.6)
    monkeypatch.setattr(sweep, "measured", lambda source, setting, name: alike)
    for figure in (figure_4, figure_5, figure_9):
        outcome = figure(QUICK)
        judged = {
            claim: agrees
            for claim, agrees in agreeing(outcome).items()
            if agrees and not claim.endswith("over the worst")
        }
        assert set(judged) <= {
            f"DEDP{reading}, z = 0.9: over random, Δ = 0.1 to 0.9" for reading in ("", " with whole normals")
        }
        assert not any(bar.holds for bar in outcome.bars)
    worse = beyond(QUICK)
    assert [bar.holds for bar in worse.bars] == 2 * [True, False, True, False, False, False, False]


def test_auto_is_held_against_the_best_of_the_four(monkeypatch: pytest.MonkeyPatch) -> None:
    points = every_point(QUICK)["unif", "skew"][:1]
    quality = {RANDOM: 0.2, "ugrid": 0.3, DEDP: 0.4, "qedp": 0.3, "flexp": 0.35, AUTO: 0.5}
    monkeypatch.setattr(
        sweep, "measured", lambda source, setting, name: Measured(quality[name], 0.5, 0.0, 0.0, 0.0)
    )
    assert over_best(points, (0, 1)) == pytest.approx([0.5 / 0.4])
    assert sweep.best_gains(points, (0, 1)) == pytest.approx(np.full((2, 1), 2.0))


def test_the_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "figures.json"
    arguments = ["reproduce", "sifters", "--quick", "--figure", "3", "--figure", "8"]
    assert main([*arguments, "--out", str(tmp_path), "--json", str(target)]) == 0
    assert "at most 2" in capsys.readouterr().out
    frame = json.loads(target.read_text())
    assert frame["command"] == "reproduce sifters"
    plots = [row["name"] for row in frame["rows"] if row["kind"] == "plot"]
    assert plots == ["figure-3", "figure-8", "figure-8-whole-normals"]
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in plots)
