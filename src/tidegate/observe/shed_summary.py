"""Says what a query sheds: one sentence for each mechanism, the same wherever people read it.

    near probes 43 % of candidate pairs                  short: progress, log, live page
    near would probe 43 % of candidate pairs             under a goal that only observes
    near probes 43 % of candidate pairs: it skipped 1,200,000 of 2,105,000, those least likely to match.
                                                         long: `query.explain_shedding()`

It reads only the telemetry of batches; what is not reported is not mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tidegate.observe import units
from tidegate.observe.units import percent

Report = Mapping[str, Any]


class Level(NamedTuple):
    """How one operator sheds: `ratio` of the work is left, 1 if nothing is shed."""

    kind: str
    operator: str
    ratio: float
    #: It would be, under a goal that only observes.
    would: bool = False

    @property
    def text(self) -> str:
        """What holds, in a few words, without the operator."""
        does, would = _TEXTS[self.kind]
        part = f"{percent(self.ratio)} of" if self.ratio < 1 else "all"
        return (would if self.would else does).format(part)


#: By kind: what is said of it, and what is said if it only would be so; with "43 % of" or "all".
_TEXTS = {
    "probe": ("probes {} candidate pairs", "would probe {} candidate pairs"),
    "admit": ("admits {} rows", "would admit {} rows"),
    "fresh": ("drops stale rows and admits {} rows", "would drop stale rows and admit {} rows"),
    "windows": ("computes {} windows", "would compute {} windows"),
    "sample": ("estimates windows from {} rows", "would estimate windows from {} rows"),
}
#: By field of `model/progress.WouldShedOperator`: the kind of level.
_WOULD = {"probe_ratio": "probe", "admit_ratio": "admit", "sample_ratio": "sample", "drop_ratio": "windows"}


def levels(report: Report) -> list[Level]:
    """What every operator sheds after this batch, or would shed; also those that shed nothing."""
    found = []
    offered = max(1, report.get("input_rows", 0))
    for name, one in (report.get("shed") or {}).items():
        found.append(Level("probe", name, _probed(one)))
        found.append(Level("admit", name, float(one.get("keep_share", 1.0))))
        found.append(Level("fresh", name, max(0.0, 1 - sum(one.get("stale", ())) / offered)))
    for name, one in (report.get("sift") or {}).items():
        found.append(Level("admit", name, one["received"] / one["offered"] if one["offered"] else 1.0))
    for name, one in ((report.get("windows") or {}).get("drops") or {}).items():
        found.append(Level("windows", name, 1 - float(one["p"])))
    for name, one in (report.get("estimates") or {}).items():
        found.append(Level("sample", name, float(one["kept"])))
    return [*found, *_would(report)]


def _would(report: Report) -> Iterator[Level]:
    """What every operator would shed, if the goal did not only observe."""
    for name, one in ((report.get("would_shed") or {}).get("operators") or {}).items():
        for field, kind in _WOULD.items():
            if one[field] is not None:
                left = 1 - one[field] if kind == "windows" else one[field]
                yield Level(kind, name, float(left), would=True)


def _probed(join: Mapping[str, Any]) -> float:
    """The share of candidate pairs that was probed; without candidates, the share that the plan asked for."""
    windows = join.get("windows", ())
    candidates = sum(one["in_reach"] for one in windows)
    if join["fraction"] >= 1 or not candidates:
        return float(join["fraction"])
    probed: float = sum(one["looked_at"] for one in windows)
    return min(1.0, probed / float(candidates))


def shedding(report: Report) -> list[str]:
    """A few words for each mechanism that sheds, or would."""
    return [f"{one.operator} {one.text}" for one in levels(report) if one.ratio < 1]


def doing(report: Report) -> str:
    """The present state in one line."""
    found = shedding(report)
    if _repaired(report):
        found.append(f"{units.count(_repaired(report))} skipped pairs were repaired")
    if _debt(report):
        found.append(f"{units.count(_debt(report))} skipped pairs wait for repair")
    return ", ".join(found) or "everything is processed"


def explained(report: Report) -> str:
    """What a batch shed, or would have shed, and why: first whether, then why, then how."""
    would = report.get("would_shed")
    found = [one for one in levels(report) if one.ratio < 1]
    sheds, seen = [one for one in found if not one.would], [one for one in found if one.would]
    head = "something is shed" if sheds else "everything is processed"
    if would is not None:
        head += ", because the goal only observes" if seen else "; the goal only observes, and nothing would"
        head += "" if seen else " have been shed"
    lines = [f"Batch {report['batch']}: {head}.", *_why(report, bool(found))]
    lines += [f"{one.operator} {one.text}{_how(one, report)}." for one in found]
    lines += _losses(would or {})
    if _debt(report):
        lines.append(f"{units.count(_debt(report))} skipped pairs wait for repair.")
    lines += [str(one["message"]) for one in report.get("warnings", ())]
    return "\n".join(lines)


def _why(report: Report, sheds: bool) -> Iterator[str]:
    """Why a batch sheds: the time that it was expected to take, and the time that it had."""
    expected, budget = report.get("expected"), report.get("budget_seconds")
    if sheds and expected and budget is not None and expected["full"]:
        yield (
            f"Without shedding it was expected to take {units.seconds(expected['full'])}, of which "
            f"{units.seconds(expected['fixed'])} do not depend on rows; the goal leaves a batch "
            f"{units.seconds(budget)}."
        )


def _how(level: Level, report: Report) -> str:
    """What exactly is left out: the second half of the sentence."""
    left_out = "would have {}" if level.would else "{}"
    if level.kind == "probe":
        skipped, candidates = _skipped(level, report)
        if skipped:
            count = f"{units.count(skipped)} of {units.count(candidates)}"
            return f": it {left_out.format('skipped')} {count}, those least likely to match"
    elif level.kind == "admit" and level.operator in (report.get("sift") or {}):
        return ": its sifter drops rows where queries lose least"
    elif level.kind == "admit":
        return ", drawn at random" if level.ratio else ""
    elif level.kind == "windows":
        return "; each of them is exact"
    elif level.kind == "sample":
        return ", with 95 % intervals"
    elif level.kind == "fresh":
        return ": nothing else is enough, and the oldest rows are lost"
    return ""


def _skipped(level: Level, report: Report) -> tuple[int, int]:
    """Pairs that a join skipped or would have skipped, and its candidates."""
    windows = ((report.get("shed") or {}).get(level.operator) or {}).get("windows", ())
    candidates = sum(one["in_reach"] for one in windows)
    if level.would:
        return report["would_shed"]["operators"][level.operator]["pairs_skipped"] or 0, candidates
    return sum(one["skipped"] for one in windows), candidates


def _losses(would: Mapping[str, Any]) -> Iterator[str]:
    """What outputs would have lost."""
    for name, one in (would.get("outputs") or {}).items():
        if one["loss_ratio"]:
            yield f"Output {name} would have lost about {percent(one['loss_ratio'])} of its results."


class Changes:
    """Yields a line for each change since the previous report; each batch counts once."""

    def __init__(self) -> None:
        self._batch = -1
        #: The mechanisms that shed, and whether there is debt.
        self._on: set[tuple[str, str, bool]] = set()
        self._in_debt = False

    def of(self, reports: Iterable[Report]) -> Iterator[str]:
        for report in reports:
            if report["batch"] > self._batch:
                self._batch = report["batch"]
                yield from self._of_one(report)

    def _of_one(self, report: Report) -> Iterator[str]:
        yield from map(_moved, _moves(report))
        for level in levels(report):
            key = (level.kind, level.operator, level.would)
            if level.ratio < 1 and key not in self._on:
                self._on.add(key)
                yield f"more work than time: {level.operator} {level.text}{_STAYS.get(level.kind, '')}"
            elif level.ratio >= 1 and key in self._on:
                self._on.remove(key)
                what = "admits rows of any age" if level.kind == "fresh" else level.text
                yield f"there is time again: {level.operator} {what}"
        if self._in_debt and not _debt(report):
            written_off = bool((report.get("debts") or {}).get("written_off"))
            yield "the last debts were written off" if written_off else "all skipped pairs are repaired"
        self._in_debt = bool(_debt(report))


#: What stays true of the results, said when shedding begins.
_STAYS = {
    "probe": ", those most likely to match",
    "windows": ", each of them exact",
    "sample": ", with 95 % intervals",
    "fresh": ": nothing else is enough",
}


def _debt(report: Report) -> int:
    return int((report.get("debts") or {}).get("comparisons", 0))


def _repaired(report: Report) -> int:
    return int((report.get("debts") or {}).get("repaired", {}).get("comparisons", 0))


def _moves(report: Report) -> list[Mapping[str, Any]]:
    moves = [one["moved"] for one in report.get("balance", {}).values()]
    return [move for move in moves if move and move["rows"]]


def _moved(move: Mapping[str, Any]) -> str:
    what, rows = moved_parts(move), units.count(move["rows"])
    return f"balance: {what} moved to another instance, with {rows} rows; none was copied"


def moved_parts(move: Mapping[str, Any]) -> str:
    """`1 key and 3 partitions`; empty if neither moved."""
    keys, partitions = _counted(move["keys"], "key"), _counted(move["partitions"], "partition")
    return " and ".join(one for one in (keys, partitions) if one)


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}" if number else ""
