"""What the skew benchmark makes of its runs, and the rows it feeds them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tidegate_lab.bench.skew.bars import rows_of_report, skew_bars
from tidegate_lab.bench.skew.feed import Workload, arrive, put_back, write
from tidegate_lab.bench.skew.run import Run

BATCHES, INSTANCES = 12, 4


def run(strategy: str, heaviest: float, moved: int = 0, workload: str = "zipf-1.0") -> Run:
    """A run whose first instance takes so many even shares of a second, batch after batch."""
    seconds = np.full((BATCHES, INSTANCES), (INSTANCES - heaviest) / (INSTANCES - 1) / INSTANCES)
    seconds[:, 0] = heaviest / INSTANCES
    return Run(
        workload,
        strategy,
        rows=[1000] * BATCHES,
        seconds=seconds,
        compared=1e6 * seconds,
        pairs=[10] * BATCHES,
        moved=[moved, *[0] * (BATCHES - 1)],
        stored=[5000] * BATCHES,
        entries=[32] * BATCHES,
        split_keys=[1] * BATCHES,
        batch_seconds=[1.0] * BATCHES,
    )


def told(runs: dict[str, Run], workload: str = "zipf-1.0", jump: int = 20) -> dict[str, tuple[float, bool]]:
    bars = skew_bars({workload: {strategy: [run] for strategy, run in runs.items()}}, jump)
    return {bar.id: (bar.value or 0.0, bool(bar.holds)) for bar in bars}


def test_ours_is_held_against_an_even_share_the_better_paper_and_what_fastjoin_moves() -> None:
    runs = {"auto": run("auto", 1.1, 200), "fastjoin": run("fastjoin", 2.2, 100), "hash": run("hash", 3.0)}
    bars = told(runs)
    assert np.isclose(bars["skew.zipf-1.0.imbalance"][0], 1.1)
    assert bars["skew.zipf-1.0.imbalance"][1]
    assert np.isclose(bars["skew.zipf-1.0.over_papers"][0], 2.0)
    assert bars["skew.zipf-1.0.moved_of_fastjoin"] == (2.0, False)


def test_an_instance_that_is_slow_by_chance_is_not_the_heaviest() -> None:
    auto = run("auto", 1.0)
    slow = np.arange(BATCHES)[:, None] % INSTANCES == np.arange(INSTANCES)
    noisy = replace(auto, seconds=np.where(slow, 2.0, 1.0) * auto.seconds)
    assert noisy.imbalance.min() > 1.5
    assert noisy.steady_imbalance == pytest.approx(1.0)
    assert noisy.throughput == pytest.approx(auto.throughput)


def test_on_even_keys_ours_is_held_against_the_mean_of_all_who_do_the_same() -> None:
    auto = run("auto", 1.0)
    lucky, usual = (replace(auto, seconds=part * auto.seconds) for part in (0.96, 1.0))
    bars = told({"auto": auto, "hash": usual, "fastjoin": lucky, "ls_stream": usual}, "zipf-0")
    ratio, holds = bars["skew.uniform.over_hash"]
    assert holds
    assert ratio == pytest.approx(2.96 / 3)
    assert bars["skew.zipf-0.counted_over_papers"] == (1.0, True)
    assert "skew.zipf-0.over_papers" not in bars
    bars = told({"auto": auto, "hash": lucky, "fastjoin": lucky, "ls_stream": lucky}, "zipf-0")
    assert not bars["skew.uniform.over_hash"][1]


def test_on_even_keys_who_does_something_else_than_hash_is_no_measure_of_it() -> None:
    auto = run("auto", 1.0)
    other = replace(auto, seconds=9 * auto.seconds, compared=2 * auto.compared)
    assert told({"auto": auto, "hash": auto, "fastjoin": other}, "zipf-0")["skew.uniform.over_hash"][0] == 1.0


def test_throughputs_are_compared_within_a_round() -> None:
    # The machine is four times slower in the second round, for all.
    ours, theirs = (
        [run(name, one, moved) for one in (1.0, 2.0, 1.0)] for name, moved in (("a", 3), ("b", 2))
    )
    slow = replace(theirs[1], seconds=4 * theirs[1].seconds), replace(ours[1], seconds=4 * ours[1].seconds)
    runs = {"auto": [ours[0], slow[1], ours[2]], "fastjoin": [theirs[0], slow[0], run("b", 3.0)]}
    bars = {bar.id: bar.value for bar in skew_bars({"zipf-1.0": runs}, 20)}
    assert bars["skew.zipf-1.0.over_papers"] == pytest.approx(1.0)
    assert bars["skew.zipf-1.0.moved_of_fastjoin"] == pytest.approx(9 / 4)


def test_what_is_counted_does_not_depend_on_the_machine() -> None:
    ours, theirs = run("auto", 1.0), run("fastjoin", 1.0)
    slow = replace(ours, seconds=1.3 * ours.seconds)
    bars = told({"auto": slow, "fastjoin": theirs})
    assert not bars["skew.zipf-1.0.over_papers"][1]
    assert bars["skew.zipf-1.0.counted_over_papers"] == (1.0, True)
    uneven = replace(theirs, compared=theirs.compared * np.where(np.arange(theirs.compared.shape[1]), 1, 2))
    assert told({"auto": slow, "fastjoin": uneven})["skew.zipf-1.0.counted_over_papers"] == (2.0, True)


def test_where_fastjoin_moves_nothing_a_part_of_the_state_may_move() -> None:
    bars = told({"auto": run("auto", 1.3, 100), "fastjoin": run("fastjoin", 1.2)})
    assert not bars["skew.zipf-1.0.imbalance"][1]
    assert not bars["skew.zipf-1.0.over_papers"][1]
    assert bars["skew.zipf-1.0.moved_of_state"] == (0.02, True)


def test_what_follows_a_city_that_changes_has_no_bar_for_moving() -> None:
    bars = told({"auto": run("auto", 1.0, 900), "fastjoin": run("fastjoin", 1.2, 1)}, "taxis")
    assert set(bars) == {"skew.taxis.imbalance", "skew.taxis.over_papers", "skew.taxis.counted_over_papers"}


def test_even_keys_must_not_move_at_all() -> None:
    bars = told({"auto": run("auto", 1.0, 1), "hash": run("hash", 1.0)}, "zipf-0")
    assert bars["skew.uniform.migrations"] == (1.0, False)
    assert bars["skew.uniform.over_hash"] == (1.0, True)


def test_the_even_group_is_held_against_hash_like_other_even_keys() -> None:
    bars = told({"auto": run("auto", 1.0), "hash": run("hash", 1.0), "fastjoin": run("fastjoin", 0.9)}, "G00")
    assert bars["skew.G00.migrations"] == (0.0, True)
    assert bars["skew.G00.over_hash"][1]
    assert "skew.G00.over_papers" not in bars


def test_after_a_jump_batches_are_counted_until_the_work_is_even() -> None:
    jumped = run("auto", 1.0)
    jumped.compared[4:6, 0] *= 9
    jumped.compared[8:9, 0] *= 9
    assert told({"auto": jumped}, "jump", jump=4)["skew.jump.batches_to_even"] == (2.0, True)


def test_every_run_is_a_line_with_its_samples() -> None:
    (line,) = rows_of_report({"zipf-1.0": {"auto": [run("auto", 1.1, 200)]}})
    assert (line["strategy"], line["moved_share"], line["migrations"]) == ("auto", 0.04, 1)
    assert len(line["batches"]["seconds"]) == BATCHES


def test_the_same_seed_writes_the_same_rows_and_more_skew_needs_fewer(tmp_path: Path) -> None:
    rows = {}
    for name in ("zipf-0.5", "zipf-1.5"):
        for copy in ("a", "b"):
            workload = Workload(name, pairs=1e4, batches=2, seed=3)
            rows[name] = write(tmp_path / copy / name, workload.batch_codes())
        first, again = (
            pq.read_table(tmp_path / copy / name / "waiting/left/0001.parquet") for copy in ("a", "b")
        )
        assert first.equals(again)
    assert rows["zipf-0.5"][0] > rows["zipf-1.5"][0]


def test_a_group_is_as_skewed_as_its_name_says() -> None:
    """G02: all keys about equally often on the left, one of them most of all on the right."""
    (left, right), *_ = Workload("G02", pairs=1e6, batches=1, seed=3).batch_codes()
    assert max(Counter(left.tolist()).values()) < 0.01 * left.size
    assert max(Counter(right.tolist()).values()) > 0.5 * right.size


def test_files_arrive_batch_by_batch_and_wait_again_for_another_round(tmp_path: Path) -> None:
    write(tmp_path, Workload("zipf-1.0", pairs=1e3, batches=3).batch_codes())
    for _ in range(2):
        arrive(tmp_path, [0])
        arrive(tmp_path, [1, 2])
        assert len(list((tmp_path / "left").iterdir())) == len(list((tmp_path / "right").iterdir())) == 3
        put_back(tmp_path)
        assert not list((tmp_path / "left").iterdir())


def test_a_jump_makes_all_keys_others() -> None:
    batches = list(Workload("jump", pairs=1e4, batches=4, seed=3, jump=2).batch_codes())
    before, after = set(batches[1][0].tolist()), set(batches[2][0].tolist())
    assert set(batches[0][0].tolist()) & before
    assert not before & after
