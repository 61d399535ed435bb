"""The places along the x axes of figures 5 to 10: instances, sizes of the data, thresholds; all are run."""

from __future__ import annotations

from dataclasses import replace

from tidegate.route.fastjoin.strategy import FastJoinStrategy
from tidegate_lab.reproduce.experiment import Options
from tidegate_lab.reproduce.fastjoin.scenarios import FASTJOIN, STRATEGIES, THETA, scenario_of
from tidegate_lab.reproduce.fastjoin.sweep import Position, run_all
from tidegate_lab.workloads.skew import ZipfStreams

INSTANCES = (16, 24, 32, 48, 64)
SIZES = (10, 30, 50, 70)
THETAS = (1.0, 1.3, 1.8, 2.2, 3.0, 4.0)


def _run(positions: list[Position], options: Options) -> list[Position]:
    run_all(positions, options.seeds)
    return positions


def by_instances(options: Options) -> list[Position]:
    base = scenario_of(options)
    numbers = (INSTANCES[0], INSTANCES[3]) if options.quick else INSTANCES
    return _run([Position(number, replace(base, instances=number)) for number in numbers], options)


def by_size(options: Options) -> list[Position]:
    base = scenario_of(options)
    if not isinstance(base.streams, ZipfStreams):
        raise TypeError("the size of real data cannot be chosen")
    left, right = base.streams.rows
    positions = []
    for size in (10, 30) if options.quick else SIZES:
        streams = replace(base.streams, rows=(left * size // 30, right * size // 30))
        positions.append(Position(size, replace(base, streams=streams)))
    return _run(positions, options)


def by_theta(options: Options) -> list[Position]:
    base = scenario_of(options)
    thetas = (1.2, THETA) if options.quick else THETAS
    return _run(
        [Position(theta, base, {**STRATEGIES, FASTJOIN: FastJoinStrategy(theta)}) for theta in thetas],
        options,
    )
