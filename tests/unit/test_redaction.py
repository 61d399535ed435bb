"""Nobody reads a password in an error, a warning, a log, an inspection or a repr."""

from __future__ import annotations

import copy
import logging
import pickle

import pytest
from tests.unit.state.samples import a_manifest, a_plan

from tidegate.api.nodes import Output, Source
from tidegate.api.streams import Stream
from tidegate.cli.main import main
from tidegate.errors import FlowError, StateError, TidegateError, explain
from tidegate.observe.query_log import QueryLog
from tidegate.redaction import without_secrets
from tidegate.state.checkpoint import Checkpoint
from tidegate.state.store.store import open_store

SECRET = "hush/+hush"
URL = f"memory://me:{SECRET}@bucket/ck?token={SECRET}"
SHOWN = "memory://me:***@bucket/ck?token=***"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("s3://AKIA:a/b+c@bucket/ck", "s3://AKIA:***@bucket/ck"),
        ("'ftp://u:p@w@host/x', next", "'ftp://u:***@host/x', next"),
        ("redis://:pw@host", "redis://:***@host"),
        (
            "jdbc:mysql://host/db?user=me&password=pw&ssl=true",
            "jdbc:mysql://host/db?user=me&password=***&ssl=true",
        ),
        ("jdbc:sqlserver://h;user=me;PWD=pw;x=1", "jdbc:sqlserver://h;user=me;PWD=***;x=1"),
        ("abfss://c@a/x?sv=1&sig=abc%2B&se=2", "abfss://c@a/x?sv=1&sig=***&se=2"),
        (
            "gs://b/c?fs.s3a.secret.key=x,access_token=y,client-secret=z",
            "gs://b/c?fs.s3a.secret.key=***,access_token=y,client-secret=z",
        ),
    ],
)
def test_secrets_of_urls_are_hidden(given: str, shown: str) -> None:
    assert without_secrets(given) == shown


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account/x",
        "hdfs://host:9000/user@home",
        "a == b ? c",
        "file:///x?design=1",
        "k: v@w",
    ],
)
def test_texts_without_secrets_stay_as_they_are(text: str) -> None:
    assert without_secrets(text) == text


def test_errors_and_warnings_hide_secrets_in_all_their_parts() -> None:
    cause = OSError(f"cannot open {URL}")
    error = StateError(f"No {URL}", code="X", got=cause, why=URL, do=URL, details={"output": URL})
    for one in (error, pickle.loads(pickle.dumps(error)), copy.copy(error), error.prefixed(URL)):
        assert SECRET not in f"{one} {one!r} {[str(part) for part in one.details.values()]}"
        assert SHOWN in str(one)
    assert SECRET not in explain(URL, got=URL, why=URL, do=URL)


def test_a_checkpoint_hides_the_secrets_of_its_url_in_what_it_says(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Checkpoint(URL), Checkpoint(URL)
    first.open("one")
    first.plans.write(a_plan(0))
    first.commit(a_manifest(0))
    try:
        with pytest.raises(TidegateError, match="CHECKPOINT_IN_USE") as in_use:
            second.open("two")
        with pytest.raises(TidegateError) as missing:
            first.store.read("manifests/0.json")
    finally:
        first.close()
    assert SECRET not in str(in_use.value)
    assert SECRET not in str(missing.value)
    open_store(f"{URL}/receipts").write_atomic("0000000000.json", b"torn\n")
    with caplog.at_level(logging.WARNING):
        first.receipts.read()
    assert "damaged" in caplog.text
    assert SECRET not in caplog.text
    for more in ([], ["--json"]):
        assert main(["inspect", URL, *more]) == 0
    assert main(["inspect", f"{URL}&key=elsewhere"]) == 2
    said = capsys.readouterr()
    assert "***" in said.out
    assert "***" in said.err
    assert SECRET not in said.out + said.err


def test_the_log_of_a_query_hides_secrets(caplog: pytest.LogCaptureFixture) -> None:
    log = QueryLog("near")
    with caplog.at_level(logging.INFO):
        log.started("0.1", URL, ["orders"], ["near"], "none")
        log.ended(OSError(f"cannot reach {URL}"))
    assert caplog.text.count(SHOWN) == 2
    assert SECRET not in caplog.text


def test_outputs_and_errors_about_their_options_show_no_values() -> None:
    source = Source(None, "ts", "orders", 0, None, None)
    output = Output(source, format="jdbc", path=URL, options={"password": SECRET, "url": URL})
    assert SHOWN in repr(output)
    assert SECRET not in repr(output)
    wrong = {"password": SECRET, 7: URL}
    with pytest.raises(FlowError) as options:
        Stream(source).write_to("jdbc", options=wrong)  # type: ignore[arg-type]
    with pytest.raises(FlowError) as function:
        Stream(source).write_to(print, options={"password": SECRET})
    for error in (options, function):
        assert "password" in str(error.value)
        assert SECRET not in str(error.value)
