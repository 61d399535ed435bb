"""Makes the description of an output from what the user gave to `write_to` and `write_to_table`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.api.goal import check_loss
from tidegate.api.names import checked_name, path_text
from tidegate.api.nodes import Node, Output
from tidegate.errors import FlowError
from tidegate.quantities import Duration, duration_us, is_number, is_whole

#: Spark formats that need a path.
FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "avro", "xml")


def checked_output(
    node: Node,
    target: str | Callable[..., None] | None,
    path: str | os.PathLike[str] | None,
    *,
    table: str | None = None,
    name: str | None,
    mode: str,
    keys: Sequence[str],
    partition_by: str | Sequence[str],
    options: Mapping[str, Any] | None,
    max_loss: float | None,
    max_gap: int | Duration | None,
    priority: float,
    repair_column: str | None,
    commit_every: Duration | None = None,
) -> Output:
    """An output, or the error for a setting that cannot work."""
    given_name = None if name is None else checked_name(name, "output")
    label = "the output" if name is None else f"output {name!r}"
    _check_mode(mode, keys, label)
    check_loss(max_loss, label)
    _check_gap(max_gap, label)
    _check_priority(priority, label)
    limits: dict[str, Any] = {
        "max_loss": max_loss,
        "max_gap": max_gap,
        "priority": float(priority),
        "repair_column": None if repair_column is None else checked_name(repair_column, "column"),
        "commit_every_us": None
        if commit_every is None
        else commit_every_us(commit_every, label, writes_files=path is not None and not callable(target)),
    }
    layout = _columns(partition_by, label)
    if callable(target):
        _refuse_beside_a_function(path=path, options=options, partition_by=layout)
        return Output(node, given_name, function=target, **limits)
    texts = _texts(options, label)
    if table is not None:
        where: dict[str, Any] = {
            "table": table,
            "format": None if target is None else _format(target),
        }
    else:
        where = _files(target, path)
    return Output(node, given_name, **where, options=texts, partition_by=layout, **limits)


def _files(target: object, path: object) -> dict[str, Any]:
    target = _format(target)
    if path is None and target in FILE_FORMATS:
        raise FlowError(
            f"A {target} output needs a path",
            code="OUTPUT_PATH_MISSING",
            do=f'Say where files go: write_to({target!r}, "out/pairs")',
        )
    return {
        "format": target,
        "path": None if path is None else path_text(path, f"The path of a {target} output"),
    }


def _format(target: object) -> str:
    if not isinstance(target, str) or not target:
        raise FlowError(
            "An output is a Spark format or a function",
            code="OUTPUT_TARGET_TYPE",
            got=repr(target),
            do='Write for example write_to("parquet", "out/pairs") or write_to(my_function)',
        )
    return target


def checked_table(table: object) -> str:
    """The name of a table, or the error for what is not one."""
    if not isinstance(table, str) or not table.strip():
        raise FlowError(
            "The table of an output is not a name",
            code="OUTPUT_TABLE_TYPE",
            got=repr(table),
            do='Write for example write_to_table("db.near")',
        )
    return table


def _texts(options: object, label: str) -> dict[str, str]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise FlowError(
            f"The options of {label} are not a dict of texts",
            code="OUTPUT_OPTIONS_TYPE",
            got=_without_values(options),
            do='Write options={"compression": "zstd"}',
        )
    # Spark writes True as "true".
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }


def _columns(given: object, label: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else (given,)
    if not all(isinstance(name, str) and name for name in names):
        raise FlowError(
            f"partition_by of {label} takes names of columns",
            code="OUTPUT_PARTITION_BY_TYPE",
            got=repr(given),
            do='Write partition_by=["day"]',
        )
    return tuple(str(name) for name in names)


def _check_mode(mode: object, keys: object, label: str) -> None:
    if mode != "append" or keys not in ((), []):
        raise FlowError(
            f"The rows of {label} can only be appended",
            code="OUTPUT_MODE_UNSUPPORTED",
            got=f"mode={mode!r}, keys={keys!r}",
            why="Merging by key needs a sink that can update rows",
            do="Leave out mode and keys, or merge in a function: write_to(my_function)",
        )


def _refuse_beside_a_function(**given: object) -> None:
    named = [name for name, value in given.items() if value]
    if named:
        raise FlowError(
            "A function takes no path, no options and no partition_by",
            code="OUTPUT_FUNCTION_SETTINGS",
            got=", ".join(f"{name}={_without_values(given[name])}" for name in named),
            why="They would be ignored",
            do="Let the function know them itself, or name a Spark format",
        )


def _without_values(given: object) -> str:
    """What was given, for an error; of options only the names, because a value may be a password."""
    if isinstance(given, Mapping):
        return f"{{{', '.join(f'{name!r}: …' for name in given)}}}"
    return repr(given)


def commit_every_us(given: Duration, label: str, *, writes_files: bool) -> int:
    """How long files may wait to be published with others; FlowError where there are none."""
    if not writes_files:
        raise FlowError(
            f"Only files can wait for commit_every, and {label} writes none",
            code="OUTPUT_COMMIT_EVERY_WITHOUT_FILES",
            got=repr(given),
            why="Functions, tables and formats without a path get the rows of each batch before its commit",
            do='Leave it out, or write files: write_to("parquet", "out/pairs", commit_every="30 seconds")',
        )
    return duration_us(given, f"commit_every of {label}")


def _check_gap(given: object, label: str) -> None:
    gap = duration_us(given, f"max_gap of {label}") if isinstance(given, Duration) else given
    if given is not None and not is_whole(gap):
        raise FlowError(
            f"max_gap of {label} is neither a number of windows nor a duration",
            code="OUTPUT_MAX_GAP_RANGE",
            got=repr(given),
            why="With a gap of zero, no window could ever be dropped",
            do="Write max_gap=10 or max_gap='5 minutes'; leave it out if no window may be missing",
        )


def _check_priority(given: object, label: str) -> None:
    if not is_number(given, 0) or given == 0:
        raise FlowError(
            f"The priority of {label} is not a weight",
            code="OUTPUT_PRIORITY_RANGE",
            got=repr(given),
            why="With a weight of zero it would lose everything first",
            do="Give a finite number above zero; the default is 1",
        )
