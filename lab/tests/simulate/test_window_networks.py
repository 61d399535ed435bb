"""Windows are dropped whole, whatever the network: every result that comes out is the exact one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from math import sqrt

import numpy as np
import pytest
from tests.simulation.window_stories import BEGIN, LENGTH, MEDIAN, Story, joined_story, story

from tidegate.window.drop.decisions import Decisions
from tidegate.window.drop.network import DropOutputNode, DropSourceNode, DropWindowNode, Network
from tidegate.window.drop.placement import place, result_window
from tidegate.window.drop.window_drop import WindowDrop
from tidegate.window.spec import WindowSpec
from tidegate_lab.simulate.windows.window_encoding import evaluate_marked, let_through
from tidegate_lab.simulate.windows.window_network import (
    Program,
    Row,
    drop_at_random,
    evaluate,
    kept_on_arrows,
    on_time,
)

#: Each is a network, rows and decisions of its own.
SEEDS = range(80)


def decided_part(told: Story, exact: dict[str, set[Row]]) -> dict[str, set[Row]]:
    """Of the exact answer, the windows that were decided to be kept."""
    left = dict(exact)
    for drop, decisions in told.drops.items():
        for output in drop.outputs:
            rows = sorted(exact[output])
            kept = decisions.kept(np.array([row.time for row in rows], np.int64)).tolist()
            left[output] = {row for row, keeps in zip(rows, kept, strict=True) if keeps}
    return left


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("make", [story, joined_story])
def test_results_are_exactly_the_windows_that_were_decided_to_be_kept(
    make: Callable[..., Story], offsets: bool
) -> None:
    for seed in SEEDS:
        told = make(seed, offsets=offsets)
        exact = evaluate(told.program, told.arrivals)
        shed = evaluate(told.program, told.arrivals, kept_on_arrows(told.network, told.drops))
        assert shed == decided_part(told, exact), f"seed {seed}"


@pytest.mark.parametrize("offsets", [False, True])
def test_no_output_misses_more_windows_in_a_row_than_it_allows(offsets: bool) -> None:
    for seed in SEEDS:
        told = story(seed, offsets=offsets)
        for drop, decisions in told.drops.items():
            for output in told.network.outputs:
                window = result_window(told.network, output)
                if output.name not in drop.outputs or window is None or output.max_gap is None:
                    continue
                first = (BEGIN - 200) // window.slide_us * window.slide_us + window.offset_us
                starts = np.arange(first, BEGIN + LENGTH + 200, window.slide_us)
                kept = decisions.kept(starts).tolist()
                gaps = [len(list(run)) for keeps, run in groupby(kept) if not keeps]
                assert max(gaps, default=0) <= output.max_gap, f"seed {seed}"


def test_the_papers_marks_give_what_looking_decisions_up_gives() -> None:
    for seed in SEEDS:
        told = story(seed)
        marked = evaluate_marked(told.program, told.arrivals, told.drops)
        looked_up = evaluate(told.program, told.arrivals, let_through(told.network, told.drops))
        assert marked == looked_up, f"seed {seed}"
        exact = evaluate(told.program, told.arrivals)
        shed = decided_part(told, exact)
        alone = {drop.outputs[0] for drop in told.drops if len(drop.outputs) == 1}
        for output in exact:
            assert shed[output] <= marked[output] <= exact[output], f"seed {seed}"
            assert output not in alone or shed[output] == marked[output], f"seed {seed}"


def test_late_rows_and_rows_of_any_batch_see_the_same_decisions() -> None:
    """Rows are filtered by what is decided when they come; what is decided later holds for the rest."""
    batches = 4
    for seed in SEEDS[::2]:
        told = story(seed, calls=batches)
        rng = np.random.default_rng(seed)
        rows = on_time(told.arrivals["rows"], int(rng.integers(0, 40)))
        cuts = [0, *sorted(rng.integers(0, len(rows) + 1, batches - 1).tolist()), len(rows)]
        retained: list[Row] = []
        for call in range(1, batches + 1):
            retained += retained_at_source(told, call, rows[cuts[call - 1] : cuts[call]])
        kept = kept_on_arrows(told.network, told.drops)
        of_all = evaluate(told.program, {"rows": rows}, kept)
        assert evaluate(told.program, {"rows": retained}, kept) == of_all, f"seed {seed}"


def retained_at_source(told: Story, call: int, batch: list[Row]) -> list[Row]:
    """Rows that some arrow from the source lets through, by the decisions up to a call."""
    kept = kept_on_arrows(told.network, told.decided(call))
    arrows = [("rows", child.name) for child in told.network.children["rows"]]
    if not all(arrow in kept for arrow in arrows):
        return batch
    times = np.array([row.time for row in batch], np.int64)
    mask = np.any([kept[arrow].contain(times) for arrow in arrows], axis=0)
    return [row for row, keeps in zip(batch, mask.tolist(), strict=True) if keeps]


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_the_share_of_missing_results_is_p(p: float) -> None:
    gap, windows, seeds = 5, 400, 6
    program = Program(count_by_ten(gap))
    (drop,) = place(program.network)
    rows = {"rows": steady(10 * windows)}
    missing = []
    for seed in range(seeds):
        machine = WindowDrop(drop.slide_us, drop.max_gap, seed)
        decisions = machine.decide(machine.begin(BEGIN), BEGIN + 10 * windows, p).decisions
        results = evaluate(program, rows, kept_on_arrows(program.network, {drop: decisions}))["out"]
        missing.append(1 - len(results) / windows)
    # Three standard deviations of so many coins, one per gap, and as much again for what is owed.
    assert np.mean(missing) == pytest.approx(p, abs=6 * sqrt(p * (1 - p) * gap / (windows * seeds)))


def count_by_ten(gap: int = 5) -> Network:
    return Network(
        (
            DropSourceNode("rows"),
            DropWindowNode("ten", "rows", WindowSpec(10, 10)),
            DropOutputNode("out", "ten", gap),
        )
    )


def steady(length: int) -> list[Row]:
    return [Row(BEGIN + time, 0, time % 7) for time in range(length)]


def test_random_drops_behind_the_windows_are_a_subset_and_in_front_of_them_are_not() -> None:
    """Section 2.4 of the paper, figure 3."""
    program = Program(count_by_ten())
    exact = evaluate(program, {"rows": steady(200)})["out"]
    assert set(drop_at_random(sorted(exact), 0.5, seed=1)) < exact
    in_front = evaluate(program, {"rows": drop_at_random(steady(200), 0.5, seed=1)})["out"]
    assert len(in_front) == len(exact)
    assert not in_front <= exact


def test_keep_until_as_printed_lets_wrong_windows_out() -> None:
    """Table 3 raises keep_until for every unmarked window that opens; windows without their rows come out."""
    network = Network(
        (
            DropSourceNode("rows"),
            DropWindowNode("inner", "rows", WindowSpec(4, 1)),
            DropOutputNode("inner out", "inner", 18),
            DropWindowNode("outer", "inner", WindowSpec(3, 3)),
            DropOutputNode("outer out", "outer", 6),
        )
    )
    program, rows = Program(network, aggregates={"inner": MEDIAN}), {"rows": steady(90)}
    (drop,) = place(network)
    drops = {drop: Decisions(3, 300, 400, ((335, 341), (345, 350)))}
    exact = evaluate(program, rows)
    ours = evaluate_marked(program, rows, drops)
    printed = evaluate_marked(program, rows, drops, as_printed=True)
    assert ours["inner out"] < exact["inner out"]
    assert not printed["inner out"] <= exact["inner out"]
    assert printed["outer out"] == ours["outer out"] < exact["outer out"]
