"""All tuned numbers of the goal loop, in one place. The lint allows no others in `control/goal/`.

Each number: its unit and reason; ½ and 2: what happens when it is halved and doubled. Numbers that are counts
of batches are how long something is remembered: a mean over n batches gives the last one the weight 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tidegate.errors import REPORT_BUG, FlowError


@dataclass(frozen=True)
class LoadTuning:
    """How costs are learnt (`cost_model.py`)."""

    #: Batches. Averages noise of about 10 % away and follows a machine that changes within seconds.
    #: ½: noise moves the levels; 2: a machine that slows down gradually is followed too late.
    memory: float = 7.0
    #: Batches for which the usual amount of work is remembered, so that a cost stays known while hardly any
    #: of that work is done. ½: after a long burst the costs of skipped work are forgotten; 2: no difference.
    scale_memory: float = 50.0
    #: Usual errors. A larger one is a pause or an outlier and is clipped; the second in a row is a change.
    #: ½: ordinary noise counts as a change; 2: a change is followed more slowly.
    clip: float = 3.0
    #: Part of the time: the error assumed before there is a measurement.
    #: ½: the first batches are believed less if they differ; 2: they move the costs more.
    noise_first: float = 0.1
    #: Part of the time: smaller errors are chance even on a quiet machine; also the least spread of rates and
    #: of errors. ½: the margin may fall to 2 %; 2: it is 9 % at least, unused on a quiet machine.
    noise_least: float = 0.02
    #: Part of a batch's time by which true costs change per batch; the rest of an error is noise.
    #: ½: slower to attribute time to rows or pairs; 2: noise does it.
    drift: float = 0.1
    #: Time that costs cannot explain goes to the main one (fixed, pairs or rows); others are held back by the
    #: inverse of this. ½: rows and outputs become expensive too late; 2: by chance.
    absorbs: float = 0.03
    #: Part of the time that no task reports which is attributed to rows until batches differ in size: on
    #: Spark ten times the rows take about twice as long.
    #: ½: a first burst is underestimated; 2: the fixed cost is, and rows wait needlessly.
    first_work: float = 0.1
    #: Weight of earlier batches after a change. ½: a double outlier is believed; 2: a change takes longer.
    change: float = 0.3


@dataclass(frozen=True)
class ForecastTuning:
    """How many rows are expected, and how many sources may give (`forecast.py`, `backpressure.py`)."""

    #: Batches in the slow mean of rates; the fast mean has half as many.
    #: ½: the forecast follows noise; 2: it is late for a ramp.
    memory: float = 4.0
    #: Usual deviations. A rate that differs by more is a surprise, two in a row are a change.
    #: ½: one batch in four sheds for rows that do not come; 2: a step of 20 % is noticed late.
    surprise: float = 3.0
    #: Batches in which a backlog is drained. ½: sheds to drain it; 2: it is overdue for longer.
    drain: float = 5.0
    #: Largest batch relative to the largest one remembered: costs of small batches predict large ones poorly.
    #: ½: a backlog starts more slowly; 2: the first large batch may be overdue by more.
    rise: float = 4.0


@dataclass(frozen=True)
class LevelTuning:
    """How levels are chosen (`optimiser.py`, `level_controller.py`)."""

    #: Breakpoints of a smooth curve of losses. ½: coarser levels; 2: only slower.
    steps: int = 25
    #: Part of the target by which the predicted time may miss it. ½, 2: nothing but rounds of the optimiser.
    close: float = 1e-3
    #: Part of the time that is measurable: shedding that saves less is not worth its loss, a stream always
    #: gets this share, and a process whose batches become shorter by it still warms up.
    #: ½: sheds for gains too small to see; 2: overdue where the goal is close to the fixed cost.
    measurable: float = 0.1
    #: Largest growth of an option's work from one batch to the next, so that a wrong model cannot undo in one
    #: batch what took many to learn. ½: almost no easing; 2: one batch overdue where costs were forgotten.
    rise: float = 2.5
    #: Fixed costs above this multiple of the budget are beyond reach: as little as possible is done.
    #: ½: gives up results for a goal that would be met nearly; 2: is overdue by more with more results.
    reach: float = 3.0


@dataclass(frozen=True)
class MarginTuning:
    """What is kept free of the time budget for prediction errors (`load_model.SafetyMargin`)."""

    #: Batches. ½: the margin follows single errors; 2: it stays wide after a restless time.
    memory: float = 25.0
    #: Standard deviations: one batch in ninety is worse. ½: one in eight is overdue; 2: time stays unused.
    deviations: float = 2.3
    #: Part of the budget, before errors were measured. ½: first shedding batches overdue; 2: needless loss.
    first: float = 0.08
    #: Part of the budget, at most. ½: overdue batches on a restless machine; 2: half of the time unused.
    most: float = 0.3


@dataclass(frozen=True)
class EaseTuning:
    """When levels ease (`hysteresis.py`)."""

    #: Squared part of the target, summed over batches, that must have been spare: a tenth in two batches, or
    #: a twentieth in eight. ½: eases on noise; 2: spare time stays unused for longer.
    credit: float = 0.02
    #: Batches. Easing that is reversed sooner was premature and doubles the credit needed next time; twice as
    #: many without a reversal reset it. Also the largest multiple of the credit.
    #: ½: more reversals; 2: spare time stays unused for longer after noise.
    quiet: float = 25.0


@dataclass(frozen=True)
class ControlTuning:
    """All of them."""

    load: LoadTuning = LoadTuning()
    forecast: ForecastTuning = ForecastTuning()
    level: LevelTuning = LevelTuning()
    margin: MarginTuning = MarginTuning()
    ease: EaseTuning = EaseTuning()

    def __post_init__(self) -> None:
        for part in fields(self):
            for name, number in vars(getattr(self, part.name)).items():
                if not number > 0:
                    raise FlowError(
                        "A number of the control tuning must be positive",
                        code="INTERNAL_TUNING_INVALID",
                        got=f"{part.name}.{name} = {number}",
                        do=REPORT_BUG,
                    )


#: What is used unless a simulation passes another one.
TUNING = ControlTuning()
