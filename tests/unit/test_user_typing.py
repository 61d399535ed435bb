"""A type checker accepts the whole public interface, and reports wrong arguments on their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

#: Packages that come without types.
UNTYPED = ("pandas.*", "pyarrow.*", "py4j.*", "datasketches.*", "fsspec.*", "llvmlite.*")
SRC = Path(__file__).parents[2] / "src"


GOOD = Path(__file__).with_name("typed_user_script.py").read_text(encoding="utf-8")

#: A wrong line each, and what the checker should call it.
WRONG = [
    ('orders.join(tracks, on="cell", within="1 minute", how="iner")', "arg-type"),
    ('orders.join(tracks, on="cell", within=20)', "arg-type"),
    ('orders.join(tracks, on="cell", within=("-1 minute", "1 minute"))', "arg-type"),
    ('orders.join(tracks, "cell", "inner", within="1 minute")', "call-arg|misc"),
    ('orders.join(tracks_df, on="cell", within="1 minute")', "arg-type"),
    ('orders.join(tracks, "cell", within="1 minute", prefix="r_")', "call-arg"),
    ('tg.stream(orders_df, name="a", time="ts", lateness=10)', "arg-type"),
    ('tg.stream(orders_df, time="ts", lateness="1 second")', "call-arg"),
    ('tg.stream(orders_df, "orders", time="ts")', "call-arg|misc"),
    ('orders.window("1 minute", "10 seconds")', "call-arg|misc"),
    ('orders.window("1 minute", by=1)', "arg-type"),
    ('orders.window("1 minute").agg(n=1)', "arg-type"),
    ('orders.match(["fare > 1"])', "list-item"),
    ("orders.filter(lambda row: True)", "arg-type"),
    ('near.write_to("parquet", "out", mode="overwrite")', "arg-type"),
    ('near.write_to("parquet", "out", max_lose=0.1)', "call-arg"),
    ("tg.start(near)", "arg-type"),
    ('tg.start(out, goal="2 seconds")', "arg-type"),
    ('tg.start(out, shed="partial")', "arg-type"),
    ("tg.start(out, balance=policies.FastJoin())", "arg-type"),
    ("tg.start(out, trigger=1)", "arg-type"),
    ('tg.start(out, watermark="fastest")', "arg-type"),
    ('tg.start(out, check_point="ck")', "call-arg"),
    ("tg.Goal(latency=2)", "arg-type"),
    ('tg.Shed(join="window-reduction")', "arg-type"),
    ('tg.Shed(repair="when idle")', "arg-type"),
    ('tg.Shed("partial")', "call-arg|misc"),
    ('tg.Balance(strategy="ls-stream")', "arg-type"),
    ('policies.FastJoin(search="random")', "arg-type"),
    ("tg.start(out).status()", "operator"),
    ('tg.start(out).receipts(by="day")', "arg-type"),
    ("tg.start(out).set_goal(2)", "arg-type"),
    ("tg.start(out).last_progress.batch_id", "union-attr"),
    ("tg.start(out).recent_progress[0].latency.p99_seconds", "attr-defined"),
    ("tg.row_window(1.5)", "arg-type"),
    ("tg.between(5, 10)", "arg-type"),
    ("tg.tumbling(5)", "attr-defined"),
    ("testing.run(near, [])", "arg-type"),
]


def checked(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    file = tmp_path / "script.py"
    file.write_text(script, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\n[mypy-{','.join(UNTYPED)}]\nignore_missing_imports = True\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("MYPYPATH", str(SRC))
    monkeypatch.chdir(tmp_path)
    found, failed, code = api.run(
        ["--config-file", "mypy.ini", "--cache-dir", str(tmp_path / "cache"), "script.py"]
    )
    assert not failed, failed
    return found, code


def test_the_package_says_that_it_is_typed() -> None:
    assert (SRC / "tidegate" / "py.typed").is_file()


def test_right_use_has_no_errors_and_wrong_use_an_error_on_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both scripts in one file, because reading Spark's types takes most of the time."""
    script = GOOD + "".join(f"    {line}\n" for line, _ in WRONG)
    first = GOOD.count("\n") + 1
    found, _ = checked(tmp_path, script, monkeypatch)
    errors = dict[int, list[str]]()
    for line, kind in re.findall(r"^script\.py:(\d+): error: .*\[([a-z-]+)\]$", found, re.MULTILINE):
        errors.setdefault(int(line), []).append(kind)
    assert "error" not in re.sub(r"(?m)^script\.py:.*\n|^Found .*\n", "", found), found
    in_good = {line: kinds for line, kinds in errors.items() if line < first}
    assert not in_good, found
    missed = {
        text: errors.get(first + place, [])
        for place, (text, kind) in enumerate(WRONG)
        if not any(re.fullmatch(kind, one) for one in errors.get(first + place, []))
    }
    assert not missed, found
