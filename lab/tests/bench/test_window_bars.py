"""The bars of `tidegate bench windows`, from runs whose seconds are known."""

from __future__ import annotations

from tidegate_lab.bench.windows.bars import window_bars
from tidegate_lab.bench.windows.feed import Scenario
from tidegate_lab.bench.windows.run import COLD, HALF, MEMORY, OURS, READY, ROCKSDB, Run


def run(name: str, contender: str, seconds: list[float], dropped: float = 0.0) -> Run:
    """The first batches are slow, and must not count."""
    scenario = Scenario(name, 100, 100, 10, 1000, COLD + len(seconds))
    return Run(scenario, contender, [99.0] * COLD + seconds, [0.0] * COLD + [dropped] * len(seconds))


def measured(runs: list[Run]) -> dict[str, tuple[float | None, bool]]:
    """Value and verdict of each bar, without the last digits."""
    return {bar.id: (bar.value and round(bar.value, 6), bar.holds) for bar in window_bars(runs)}


def test_what_a_round_saves_is_told_for_half_of_the_rows() -> None:
    rounds = [
        [run("drop", OURS, [2.0, 2.0]), run("drop", READY, [2.0, 2.1]), run("drop", HALF, [0.8, 1.2], 0.5)],
        # More windows went, and more was saved: no better than the first.
        [run("drop", READY, [2.0, 2.0]), run("drop", HALF, [0.8, 0.8], 0.6), run("drop", OURS, [2.0, 2.0])],
    ]
    found = measured([one for turn in rounds for one in turn])
    assert found["windows.drop.half_saves"] == (0.5, True)
    assert found["windows.drop.ready_cost"] == (0.0125, True)


def test_a_round_in_which_every_window_was_spared_tells_nothing() -> None:
    spared = [run("drop", one, [2.0]) for one in (OURS, READY, HALF)]
    assert measured(spared) == {}
    told = [run("drop", OURS, [2.0]), run("drop", READY, [2.2]), run("drop", HALF, [1.5], 0.5)]
    found = measured([*spared, *told])
    assert found["windows.drop.half_saves"] == (0.25, False)
    assert found["windows.drop.ready_cost"] == (0.1, False)


def test_the_faster_of_sparks_own_is_the_one_to_beat() -> None:
    seconds = {OURS: [1.0], MEMORY: [3.0], ROCKSDB: [2.5]}
    assert measured([run("tumbling", one, took) for one, took in seconds.items()]) == {
        "windows.tumbling.over_spark": (2.5, False)
    }
    assert measured([run("sliding", OURS, [1.0])]) == {}


def test_overlap_may_cost_a_fifth_at_most() -> None:
    runs = [run("ratio-1", OURS, [1.0]), run("ratio-600", OURS, [1.3])]
    assert measured(runs) == {"windows.overlap.cost": (1.3, False)}
