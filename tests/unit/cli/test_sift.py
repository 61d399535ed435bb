"""`tidegate sift`, end to end: in this process through files, and as a process of its own through pipes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pytest

from tidegate.cli.main import main
from tidegate.cli.sift import format_of
from tidegate.edge import source
from tidegate.edge.node import Node
from tidegate.edge.sifter_folder import SifterFolder
from tidegate.errors import FlowError
from tidegate.sift.filter.sifter import Sifter
from tidegate.sift.queries.axes import Axis
from tidegate.sift.regions import Domain, Regions

HALVES = Regions(
    Domain(np.zeros(1), np.ones(1)),
    np.zeros(1, np.int32),
    np.array([0.5]),
    np.array([[~0, ~1]], np.int32),
)
#: Drops everything below one half, nothing above.
SIFTER = Sifter((Axis("x"),), HALVES, np.array([1.0, 0.0]), version=1)
TURNED = replace(SIFTER, thresholds=np.array([0.0, 1.0]), version=2)
X = [0.1, 0.9, 0.2, 0.8, None, 0.3]
JSON = b"".join(json.dumps({"id": i, "x": x}).encode() + b"\n" for i, x in enumerate(X))
CSV = b"id,x\r\n" + b"".join(f"{i},{'' if x is None else x}\r\n".encode() for i, x in enumerate(X))


def run(tmp_path: Path, rows: bytes, *more: str, sifter: Sifter = SIFTER, ending: str = "rows") -> bytes:
    """The rows that came out; exit code 0."""
    (tmp_path / "filter").write_bytes(sifter.to_bytes())
    (tmp_path / f"in.{ending}").write_bytes(rows)
    files = ["--in", str(tmp_path / f"in.{ending}"), "--out", str(tmp_path / "out")]
    assert main(["sift", "--filter", str(tmp_path / "filter"), *files, *more]) == 0
    return (tmp_path / "out").read_bytes()


def lines(rows: bytes, *numbers: int) -> bytes:
    every = rows.splitlines(keepends=True)
    return b"".join(every[number] for number in numbers)


def arrow(columns: dict[str, pa.Array]) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    return bytes(sink.getvalue())


def test_json_lines_pass_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, JSON) == lines(JSON, 1, 3, 4)
    assert capsys.readouterr().err == (
        "tidegate sift: offered 6, kept 3, dropped 3 (50.0%), sampled 0, bad lines 0; sifter version 1\n"
    )


def test_csv_lines_pass_byte_for_byte_behind_their_header(tmp_path: Path) -> None:
    assert run(tmp_path, CSV) == lines(CSV, 0, 2, 4, 5)


def test_arrow_batches_keep_their_schema(tmp_path: Path) -> None:
    rows = {"id": pa.array(range(6)), "x": pa.array(X), "kind": pa.array(list("aabbcc")).dictionary_encode()}
    with pa.ipc.open_stream(run(tmp_path, arrow(rows))) as reader:
        table = reader.read_all()
    assert table.schema == pa.table(rows).schema
    assert table["id"].to_pylist() == [1, 3, 4]
    assert table["kind"].to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize("length", [6, 100, -20])
def test_an_arrow_stream_that_breaks_off_is_told(
    tmp_path: Path, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        run(tmp_path, arrow({"x": pa.array([0.1, 0.9] * 100)})[:length])
    error = capsys.readouterr().err
    assert "[SIFT_INPUT_DAMAGED]" in error
    assert ("offered" in error) == (length == -20)


def test_the_filter_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "filter.json").write_text(json.dumps(SIFTER.to_json()))
    assert run(tmp_path, JSON, "--filter", str(tmp_path / "filter.json")) == lines(JSON, 1, 3, 4)


@pytest.mark.parametrize(("form", "rows"), [("json", b""), ("json", b"\n \n"), ("csv", b""), ("arrow", b"")])
def test_no_rows_are_no_rows(tmp_path: Path, form: str, rows: bytes) -> None:
    assert run(tmp_path, rows, "--format", form) == b""


def test_bad_lines_are_counted_told_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = JSON + b"oops\n" + JSON + b'{"x": "0.9"}\n' + b"more\n" * 10
    assert run(tmp_path, rows, "--format", "json") == lines(JSON, 1, 3, 4) * 2
    error = capsys.readouterr().err
    assert "line 7 is not a row: invalid JSON" in error
    assert 'line 14 is not a row: x is not a number: "0.9"' in error
    assert error.count("is not a row") == 5
    assert "offered 12, kept 6, dropped 6 (50.0%), sampled 0, bad lines 12" in error


def test_lines_are_numbered_through_all_pieces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "PIECE_BYTES", 16)
    assert (
        run(tmp_path, CSV + b"7,many\r\n" + b"8,0.9\r\n" * 20) == lines(CSV, 0, 2, 4, 5) + b"8,0.9\r\n" * 20
    )
    assert "line 8 is not a row: x is not a number: 'many'" in capsys.readouterr().err


def test_bad_lines_pass_if_asked_for(tmp_path: Path) -> None:
    rows = CSV + b"7,many\r\n8,0.9\r\n"
    assert run(tmp_path, rows, "--keep-bad", "--mark", "sampled").splitlines()[-2:] == [
        b"7,many",
        b"8,0.9,false",
    ]


def test_samples_are_marked_in_every_format(tmp_path: Path) -> None:
    sampling = replace(SIFTER, sample_share=0.5)
    x = np.full(200, 0.1)
    as_json = b"".join(b'{"x": %g}\n' % v for v in x)
    as_csv = b"x\n" + b"".join(b"%g\n" % v for v in x)
    mark = ("--mark", "is, sampled", "--node", "east")
    out = [json.loads(line) for line in run(tmp_path, as_json, *mark, sifter=sampling).splitlines()]
    kept = len(out)
    assert 60 < kept < 140
    assert out == [{"x": 0.1, "is, sampled": True}] * kept
    table = list(csv.reader(run(tmp_path, as_csv, *mark, sifter=sampling).decode().splitlines()))
    assert table == [["x", "is, sampled"]] + [["0.1", "true"]] * kept
    with pa.ipc.open_stream(run(tmp_path, arrow({"x": pa.array(x)}), *mark, sifter=sampling)) as reader:
        assert reader.read_all().to_pydict() == {"x": [0.1] * kept, "is, sampled": [True] * kept}


@pytest.mark.parametrize("rows", [CSV, arrow({"id": pa.array([1]), "x": pa.array([0.9])})])
def test_a_mark_that_the_rows_have_already_is_refused(
    tmp_path: Path, rows: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        run(tmp_path, rows, "--mark", "id")
    assert "[SIFT_MARK_COLUMN_EXISTS]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "rows", [b'{"y": 1}\n{"z": 2}\n', b"y,z\n1,2\n", arrow({"y": pa.array([1]), "z": pa.array([1])})]
)
def test_a_missing_column_is_named_unless_allowed(
    tmp_path: Path, rows: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        run(tmp_path, rows)
    error = capsys.readouterr().err
    assert "[SIFT_COLUMN_MISSING] The rows have no column x. Got: columns y, z." in error
    assert "--allow-missing" in error
    assert run(tmp_path, rows, "--allow-missing") == rows
    assert "dropped 0" in capsys.readouterr().err


def test_counts_of_each_region_are_written(tmp_path: Path) -> None:
    run(tmp_path, JSON, "--counts", str(tmp_path / "counts"), "--node", "east")
    counts = json.loads((tmp_path / "counts").read_text())
    assert counts["node"] == "east"
    assert (counts["offered"], counts["dropped"], counts["version"]) == (6, 3, 1)
    assert (counts["regions_offered"], counts["regions_dropped"]) == ([3, 3], [3, 0])


@pytest.mark.parametrize(
    ("file", "first", "form"),
    [
        ("a.NDJSON", b"x,y", "json"),
        ("a.csv", b"{", "csv"),
        ("a.arrows", b"", "arrow"),
        (None, b' \n{"x": 1}', "json"),
        (None, b"x,y\n", "csv"),
        (None, b"\xff\xff\xff\xff\x10\x00", "arrow"),
        ("rows.txt", b"", "csv"),
    ],
)
def test_the_format_is_told_by_the_name_or_the_first_bytes(file: str | None, first: bytes, form: str) -> None:
    assert format_of(file, first) == form


@pytest.mark.parametrize("first", [b"ARROW1\0\0", b'[{"x": 1}]', b"PAR1\x15\x00"])
def test_rows_of_no_known_format_are_refused(first: bytes) -> None:
    with pytest.raises(FlowError, match="SIFT_INPUT_FORMAT_UNKNOWN"):
        format_of(None, first)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "[SIFT_FILTER_MISSING]"),
        (["--filter", "{tmp}/nowhere"], "[SIFT_FILTER_UNREADABLE]"),
        (["--filter", "{tmp}/torn"], "[SIFTER_UNREADABLE]"),
        (["--follow", "{tmp}/empty"], "[SIFT_FILTER_MISSING]"),
        (["--filter", "{tmp}/good", "--in", "{tmp}/nowhere"], "[SIFT_IO_FAILED]"),
        (
            ["--filter", "{tmp}/good", "--in", "{tmp}/good", "--out", "{tmp}/good"],
            "[SIFT_OUTPUT_IS_INPUT]",
        ),
        (["--filter", "{tmp}/good", "--node", "../east"], "[SIFT_NODE_NAME_INVALID]"),
        (["--filter", "{tmp}/good", "--in", "{tmp}/text.arrow"], "[SIFT_INPUT_DAMAGED]"),
    ],
)
def test_wrong_use_is_one_line(
    tmp_path: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good").write_bytes(SIFTER.to_bytes())
    (tmp_path / "torn").write_bytes(SIFTER.to_bytes()[:-9])
    (tmp_path / "text.arrow").write_bytes(JSON)
    given = [word.format(tmp=tmp_path) for word in more]
    assert main(["sift", "--out", str(tmp_path / "out"), *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_wrong_type_of_an_arrow_column_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        run(tmp_path, arrow({"x": pa.array(["0.9"])}))
    assert (
        "[SIFT_COLUMN_TYPE_UNSUPPORTED] Column x cannot be sifted. Got: a column of type string has"
        in capsys.readouterr().err
    )


def test_ctrl_c_ends_it_with_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "filter").write_bytes(SIFTER.to_bytes())
    # Between the first piece and the next, which never comes.
    monkeypatch.setattr(
        Node, "tick", lambda node: os.kill(os.getpid(), signal.SIGINT) if node.counts().offered else None
    )
    reader, writer = os.pipe()
    os.write(writer, JSON)
    files = ["--in", f"/dev/fd/{reader}", "--out", str(tmp_path / "out"), "--format", "json"]
    assert main(["sift", "--filter", str(tmp_path / "filter"), *files]) == 130
    assert "offered 6, kept 3" in capsys.readouterr().err
    for fd in (reader, writer):
        os.close(fd)


# ------------------------------------------------------------------------------- as a process of its own


@pytest.fixture
def folder(tmp_path: Path) -> str:
    SifterFolder(str(tmp_path)).publish(SIFTER)
    return str(tmp_path)


@pytest.fixture
def edge(folder: str) -> Iterator[subprocess.Popen[bytes]]:
    """`tidegate sift --follow`, fed through pipes."""
    command = [sys.executable, "-m", "tidegate", "sift", "--follow", folder, "--node", "east"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        yield process
        process.kill()


def opened(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def feed(process: subprocess.Popen[bytes], rows: bytes) -> None:
    opened(process.stdin).write(rows)
    opened(process.stdin).flush()


def test_rows_leave_at_once_and_a_new_sifter_is_picked_up_on_the_way(
    edge: subprocess.Popen[bytes], folder: str
) -> None:
    out, told = opened(edge.stdout), opened(edge.stderr)
    feed(edge, b'{"x": 0.1}\n{"x": 0.9}\n')
    # The input is still open: the row came out of a piece that was not full.
    assert out.readline() == b'{"x": 0.9}\n'
    (Path(folder) / "sifter-0-9.json").write_text("torn")
    SifterFolder(folder).publish(TURNED)
    assert b"sifter-0-9.json is passed over" in told.readline()
    assert b"sifter version 2" in told.readline()
    feed(edge, b'{"x": 0.1}\n{"x": 0.9}\n')
    assert out.readline() == b'{"x": 0.1}\n'
    feed(edge, b'{"x": 0.')  # an unfinished line is not a row
    os.kill(edge.pid, signal.SIGTERM)
    assert edge.wait() == 0
    assert b"offered 4, kept 2, dropped 2 (50.0%)" in told.readline()
    (counts,) = SifterFolder(folder).counts()
    assert (counts.version, counts.offered, counts.dropped) == (2, 4, 2)
    assert (counts.regions_offered, counts.regions_dropped) == ((1, 1), (0, 1))


def test_nobody_reading_ends_it_with_counters_and_neither_spark_nor_pandas_is_needed(folder: str) -> None:
    program = (
        "import sys\n"
        "sys.modules['pyspark'] = sys.modules['pandas'] = None\n"
        "from tidegate.cli.main import main\n"
        f"raise SystemExit(main(['sift', '--follow', {folder!r}]))\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe) as edge:
        opened(edge.stdout).close()
        feed(edge, CSV)
        assert edge.wait() == 0
        error = opened(edge.stderr).read()
    assert b"the reader of the output has closed it" in error
    assert b"offered 0, kept 0" in error
    assert b"Traceback" not in error
    assert b"Exception" not in error
