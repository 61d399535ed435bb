"""Decides how many rows a match admits and which: the throttler, and when to build another sifter.

Paper: sifters, section II-E (operational model). After every batch the controller knows the rows offered to a
match, the rows that passed its sifter, and the time of the batch. It keeps

    z        the admit ratio: the level of the query's goal (the paper leaves the throttler open)
    sample   the newest rows that passed as samples, with the number of queries that each satisfies

and has the sifter replaced when needed (`sifter_choice.py`), for the next plan.

Guarantee: pure functions of the manifest and the reports; what was learnt is in the manifest as JSON. While
z = 1 nothing is dropped. Without enough samples all rows are dropped with equal probability. Thresholds
compensate for samples: the volume that passes is z. A sifter stays as it is, with its share of samples, until
another with a higher version replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidegate.api.goal import Shed
from tidegate.control.actuators.join_policies import rate_rule
from tidegate.control.actuators.paper_rate import BatchLoad, expected_rows
from tidegate.control.actuators.sifter_choice import ChoiceSettings, Seen, choose
from tidegate.model.codec import from_plain, to_plain
from tidegate.model.json_values import Snapshot
from tidegate.model.manifest import Manifest
from tidegate.model.plan import Plan
from tidegate.model.reports import MatchReport
from tidegate.model.samples import Sampled
from tidegate.sift.filter.decision import Counters
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.query_set import QuerySet
from tidegate.sift.regions import Domain

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Key in the manifest's control state.
CONTROL = "sift"
#: The share of rows that are samples: at first, and at most.
FIRST_SHARE, SHARE_MAX = 0.02, 0.25


@dataclass(frozen=True)
class SiftSettings:
    """The matches that may drop rows, and the time budget."""

    shed: Shed
    #: By operator: what its rows are tried against.
    matches: Mapping[str, QuerySet]
    #: Time that a batch may take, and time between two triggers.
    batch_seconds: float
    trigger_seconds: float
    choice: ChoiceSettings = field(default_factory=ChoiceSettings)


@dataclass(frozen=True)
class Offered:
    """What one batch brought to the matches, and how long it took."""

    #: By operator: rows in front of the sifter.
    rows: Mapping[str, int]
    busy_seconds: float
    #: Workers have just started, so their time says nothing about their speed.
    cold: bool = False
    #: By match whose rows are dropped at the sources: what they counted under the sifter of the plan so far.
    at_sources: Mapping[str, Counters] = field(default_factory=dict)
    #: Rows that limits of ours keep waiting at their sources.
    waiting: float = 0.0


def decide(settings: SiftSettings, manifest: Manifest) -> Snapshot:
    """The sifter of each match for the batch after this manifest."""
    known = manifest.control.get(CONTROL, {}).get("matches", {})
    return {
        name: known[name]["sifter"] if _fits(known.get(name), queries) else passing(queries, name).to_json()
        for name, queries in settings.matches.items()
    }


def learn(
    settings: SiftSettings,
    before: Manifest,
    plan: Plan,
    reports: Sequence[MatchReport],
    offered: Offered,
    levels: Mapping[str, float] | None = None,
) -> Snapshot:
    """What is known after a batch: goes into its manifest.

    `levels`: admit ratio of each match from the goal of the query; empty under the paper's rule for joins
    (`rate_rule`).
    """
    levels = levels or {}
    known = before.control.get(CONTROL, {})
    would = plan.shed.would
    # Under a goal that only observes all rows were admitted, whatever the rule had said.
    rule = rate_rule(settings.shed, known.get("rate") if would is None else None)
    rows = sum(offered.rows.values())
    interval = max(settings.trigger_seconds, offered.busy_seconds)
    next_rows = expected_rows(rows, known.get("began_us"), plan.now_us, interval)
    if rows and not offered.cold and not levels.keys() & settings.matches.keys():
        rule.add(BatchLoad.of(rows, offered.busy_seconds, settings.batch_seconds, offered.waiting, interval))
    matches = {}
    for name, queries in settings.matches.items():
        mine = [report for report in reports if report.operator == name]
        entered = offered.rows.get(name, 0)
        ahead = next_rows * entered / rows if rows else 0.0
        last = known.get("matches", {}).get(name)
        last = last if _fits(last, queries) else None
        stood = _stood((would or plan.shed).sifters.get(name), queries, name)
        asked = _Asked(name, queries, levels.get(name, rule.fraction), ahead)
        seen = _seen(queries, last, stood, mine, offered.at_sources.get(name, entered))
        if would is not None:
            # Rows of all regions passed: those that this sifter would have let through.
            seen = replace(seen, kept=np.rint(seen.kept * (1 - stood.thresholds)).astype(np.int64))
        learnt = _learnt(settings, asked, last, stood, seen)
        # Why the sifter in force was made, however long ago: for people.
        made = {"batch": plan.batch, "why": learnt["why"]} if learnt["why"] else (last or {}).get("made")
        matches[name] = {**learnt, "made": made}
    return {"rate": rule.snapshot(), "began_us": plan.now_us, "matches": matches}


class _Asked(NamedTuple):
    """What is asked of the sifter of one match in the next batch."""

    name: str
    queries: QuerySet
    #: The admit ratio, and the rows that are expected.
    z: float
    ahead: float


def _learnt(
    settings: SiftSettings,
    asked: _Asked,
    last: Mapping[str, Any] | None,
    stood: Sifter,
    seen: Seen,
) -> Snapshot:
    """What is known of one match: its samples, and the sifter for the next batch."""
    name, queries, z, ahead = asked
    samples = settings.choice.samples
    known: Mapping[str, Any] = {"frequencies": None, "quality": None} if last is None else last
    # A sifter built for other queries is not valid for these.
    sifter = passing(queries, name) if last is None else stood
    # Samples pass regardless of thresholds, so they must be fewer than all that may pass.
    share = min(SHARE_MAX, z / 2, samples / 4 / ahead if ahead else sifter.sample_share)
    chosen = choose(settings.choice, settings.shed, queries, sifter, known["frequencies"], seen, z, share)
    return {
        "queries": queries.fingerprint,
        "sample": to_plain(chosen.sample.last(samples)),
        "sifter": chosen.sifter.to_json(),
        "frequencies": chosen.frequencies,
        "quality": chosen.quality if chosen.why else known["quality"],
        "regions": chosen.regions if chosen.why else known.get("regions"),
        "why": chosen.why,
    }


def _seen(
    queries: QuerySet,
    last: Mapping[str, Any] | None,
    stood: Sifter,
    reports: Sequence[MatchReport],
    offered: int | Counters,
) -> Seen:
    """What the reports show, and what the sources counted, if they drop the rows."""
    axes, regions = len(queries.boxes.axes), stood.regions.count
    old = Sampled.empty(axes) if last is None else from_plain(Sampled, last["sample"])
    new = Sampled.joined([Sampled.empty(axes), *_samples(reports)])
    if isinstance(offered, int):
        sampled = sum(report.sampled for report in reports)
        return Seen(old, new, offered, sampled, _kept(reports, regions))
    if len(offered.offered) != regions:
        offered = Counters.zero(regions)
    kept = offered.offered - offered.dropped - offered.sampled
    total, sampled = int(offered.offered.sum()), int(offered.sampled.sum())
    return Seen(old, new, total, sampled, kept, offered.offered)


def _kept(reports: Sequence[MatchReport], regions: int) -> NDArray[np.int64]:
    """Rows by region that the sifter admitted, samples excluded."""
    kept = np.zeros(regions, np.int64)
    for report in reports:
        kept += np.array(report.kept, np.int64) if report.kept else 0
    return kept


def _stood(planned: Mapping[str, Any] | None, queries: QuerySet, name: str) -> Sifter:
    """The sifter that this batch ran with: that of its plan, which may be older than the manifest's."""
    sifter = None if planned is None else Sifter.from_json(planned)
    # Where queries have other axes than those of the plan, its sifter was not applied
    # (`driver/engine/work_orders.py`).
    return sifter if sifter is not None and sifter.axes == queries.boxes.axes else passing(queries, name)


def passing(queries: QuerySet, name: str) -> Sifter:
    """The trivial filter that a query begins with: nothing is dropped, some rows are samples."""
    axes = queries.boxes.axes
    domain = Domain(np.zeros(len(axes)), np.ones(len(axes)))
    return Sifter.passing_everything(axes, domain, FIRST_SHARE, name)


def _fits(known: Mapping[str, Any] | None, queries: QuerySet) -> bool:
    """Whether this was learnt with the same queries, which may change between two runs."""
    return known is not None and known["queries"] == queries.fingerprint


def _samples(reports: Sequence[MatchReport]) -> list[Sampled]:
    return [report.sample for report in reports if report.sample is not None]
