"""Recovery: deletes files that no manifest needs, and refuses a checkpoint that does not fit the run.

A file is referenced when the manifest names it, as rows or as matched bits of a piece. All others under
`segments/` are garbage of failed attempts, expired slots or merged pieces, because tasks write files first
and a manifest makes them valid.

    commit b ──▶ drop_unreferenced(b-1, b)      after each batch: no listing, only what b released
    start    ──▶ sweep(manifest)                once per run: also files of failed attempts
    commit b ──▶ sweep_behind(b)                once in many batches: what attempts left before b - 7

All are safe only after the manifest is written, and `sweep` only while this run holds the lock and none of
its tasks is running, since the file of a running task is not referenced yet. Files are named by their batch,
so `sweep_behind` leaves alone whatever the next batch writes, and attempts that Spark has not stopped yet.

`check_flow` refuses a checkpoint of another flow and lists the differences: with another key, window or
schema the same bytes would join to something else. So every manifest contains the description of the flow.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tidegate.errors import StateError
from tidegate.model.manifest import Manifest
from tidegate.model.piece_index import Pieces, files_of
from tidegate.model.pieces import Piece
from tidegate.state.store.paths import missing
from tidegate.state.store.store import Store

#: More differences than this are counted, not listed.
LISTED_MAX = 10
#: A column of results that only we read, in the text of a schema.
_HIDDEN = re.compile(r",_tidegate_\w+:\w+")
_ABSENT = object()


def check_flow(stored: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """StateError when the two descriptions, under the same names, do not fit; as JSON, where a tuple is a
    list.

    Streams, operators and outputs may come and go; what both have must be equal, but for new columns.
    """
    old, new = (_compared(flow, other) for flow, other in ((stored, current), (current, stored)))
    _leave_out_added(old, new)
    changes = list(_differences(old, new, ""))
    if not changes:
        return
    listed = "; ".join(changes[:LISTED_MAX])
    more = f"; and {len(changes) - LISTED_MAX} more" if len(changes) > LISTED_MAX else ""
    before, now = (flow.get("operators", {}) for flow in (old, new))
    names = sorted(one for one in {*before, *now} if before.get(one) != now.get(one))
    alone = names and {**old, "operators": {}} == {**new, "operators": {}}
    renamed = f"Give {' and '.join(names)} a new name=…: it begins empty, and all else"
    raise StateError(
        "The checkpoint was written by a different flow",
        code="CHECKPOINT_FLOW_CHANGED",
        got=listed + more,
        why="Its stored rows do not fit the changed operators",
        do=f"{renamed} goes on. Or undo the change"
        if alone
        else "Start the changed flow with a new checkpoint, or undo the change",
    )


def added_columns(stored: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, list[str]]:
    """By join of both flows: columns of its rows that those stored so far lack, and so are null in them."""
    old, new = (_compared(flow, other) for flow, other in ((stored, current), (current, stored)))
    return {name: found for name, found in _leave_out_added(old, new).items() if found}


def check_streams(removed: Sequence[str], added: Sequence[str]) -> None:
    """StateError when streams come or go: Spark's offset log has neither names nor room for them."""
    why = "Spark's offset log knows streams by their position, unless it was begun with source evolution"
    if removed:
        name = removed[0]
        raise StateError(
            "The checkpoint has a stream that is not in the flow",
            code="CHECKPOINT_STREAM_REMOVED",
            got=", ".join(removed),
            why=why,
            do=f'Keep reading it: pass {name}.filter("false").write_to("noop", name="{name}_unused") to '
            f'tg.start too. If it has another name now, say renames={{"{name}": "new"}}. Else start with a '
            "new checkpoint",
        )
    if added:
        raise StateError(
            "The flow has a stream that the checkpoint does not have",
            code="CHECKPOINT_STREAM_ADDED",
            got=", ".join(added),
            why=why,
            do="Read the new stream in a query of its own, or start this one with a new checkpoint. If it "
            f'had another name before, say renames={{"old": "{added[0]}"}}',
        )


def _compared(flow: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal in a flow and another: the parts that both have."""
    plain: dict[str, Any] = json.loads(json.dumps({**flow, "names": None, "steps": None}))
    for kind in plain.keys() & {"streams", "operators"}:
        # An operator without state is in the names alone.
        known = {*other.get(kind, {}), *other.get("names", {}).get(kind, ())}
        plain[kind] = {name: one for name, one in plain[kind].items() if name in known}
    for one in plain.get("operators", {}).values():
        if isinstance(one, dict) and isinstance(one.get("output"), str):
            # What goes along for operators behind is no part of the state.
            one["output"] = _HIDDEN.sub("", one["output"])
    return plain


def _leave_out_added(old: dict[str, Any], new: dict[str, Any]) -> dict[str, list[str]]:
    """Take out of the new flow what it may have beyond the old one; by join, its new columns.

    A stream may also lose columns: what needs them is compared itself, or cannot be compiled. So may a join:
    those that it stores are compared, too.
    """
    for _, was, now in _both(old, new, "streams", "schema"):
        common = was["schema"].keys() & now["schema"].keys()
        for side in (was, now):
            side["schema"] = {name: kind for name, kind in side["schema"].items() if name in common}
    added = {}
    for operator, was, now in _both(old, new, "operators", "output"):
        added[operator] = [column for column in now["output"] if column not in was["output"]]
        common = was["output"].keys() & now["output"].keys()
        for side in (was, now):
            side["output"] = {column: kind for column, kind in side["output"].items() if column in common}
        for side in ("left", "right"):
            known = was[side]["columns"]
            now[side]["columns"] = [column for column in now[side]["columns"] if column in known]
    return added


def _both(
    old: Mapping[str, Any], new: Mapping[str, Any], kind: str, columns: str
) -> Iterator[tuple[str, Any, Any]]:
    """The streams or operators of both flows that have columns under this name, by name and type."""
    for name, was in old.get(kind, {}).items():
        now = new.get(kind, {}).get(name)
        if all(isinstance(one, dict) and isinstance(one.get(columns), dict) for one in (was, now)):
            yield name, was, now


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """One line per leaf that differs: path: old → new."""
    if isinstance(old, list) and isinstance(new, list):
        old, new = (dict(enumerate(side)) for side in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            below = f"{path}.{key}" if path else str(key)
            yield from _differences(old.get(key, _ABSENT), new.get(key, _ABSENT), below)
    elif old is _ABSENT and isinstance(new, dict):
        yield f"{path}: in this flow only"
    elif new is _ABSENT and isinstance(old, dict):
        yield f"{path}: in the checkpoint only"
    elif _text(old) != _text(new):  # as text: 1, 1.0 and true are equal in Python and not in a schema
        yield f"{path}: {_text(old)} → {_text(new)}"


def _text(value: Any) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value)


SEGMENTS = "segments"
#: The newest batches whose files a sweep between two batches leaves alone.
BEHIND = 8
_BATCH = re.compile(r"(\d{10,})-")
_log = logging.getLogger(__name__)


def referenced(pieces: Iterable[Piece]) -> set[str]:
    """All files that hold rows or matched bits of these pieces."""
    return {file for piece in pieces for file in files_of(piece)}


def sweep(store: Store, manifest: Manifest | None) -> list[str]:
    """Delete every segment file that the manifest does not name, and torn atomic writes; what was deleted.

    StateError for a file that it names and that is not there: if a checkpoint was copied by hand while its
    query ran, the start notices, not the first batch that reads the file.
    """
    needed = referenced(manifest.pieces) if manifest else set()
    found = store.list(SEGMENTS)
    gone = sorted(needed.difference(found))
    if gone:
        raise missing(store.url, gone[0])
    rubbish = [path for path in found if path not in needed]
    # The lock lies at the root: another run may be writing its own request for it right now.
    rubbish += [path for path in store.list(temporary=True) if "/" in path]
    if rubbish:
        _log.debug("Deleting %d files of attempts that failed", len(rubbish))
    return _deleted(store, rubbish)


def sweep_behind(store: Store, manifest: Manifest) -> list[str]:
    """Delete the segment files of older batches that the manifest does not name; what was deleted."""
    needed, before = referenced(manifest.pieces), manifest.batch + 1 - BEHIND
    found = ((path, _BATCH.match(path.rpartition("/")[2])) for path in store.list(SEGMENTS))
    return _deleted(
        store, [path for path, of in found if of and int(of.group(1)) < before and path not in needed]
    )


def drop_unreferenced(store: Store, before: Sequence[Piece], after: Sequence[Piece]) -> list[str]:
    """Delete the files that were needed before and are not any more; what was deleted."""
    if isinstance(after, Pieces) and after.made_of(before) and after.released is not None:
        return _deleted(store, sorted(after.released))
    return _deleted(store, sorted(referenced(before) - referenced(after)))


def _deleted(store: Store, paths: list[str]) -> list[str]:
    for path in paths:
        store.delete(path)
    return paths
