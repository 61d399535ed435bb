from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from tidegate import errors
from tidegate.errors import BatchFailed, CheckpointInUse, FlowError, StateError, TidegateError, explain


def test_a_message_has_its_four_parts_in_order() -> None:
    message = explain(
        "The window is empty", got="0 seconds", why="No row could match", do="Give a longer window"
    )
    assert message == "The window is empty. Got: 0 seconds. No row could match. Give a longer window."


def test_parts_that_do_not_apply_are_left_out() -> None:
    assert explain("The window is empty") == "The window is empty."
    assert explain("The window is empty", do="Give a longer one") == "The window is empty. Give a longer one."


def test_a_full_stop_that_is_there_already_is_not_doubled() -> None:
    message = explain("It is late.", got=3, why="Because.", do="Wait.")
    assert message == "It is late. Got: 3. Because. Wait."


@pytest.mark.parametrize("got", [0, False, "", []])
def test_what_we_got_is_shown_even_when_it_is_falsy(got: object) -> None:
    assert f"Got: {got}." in explain("Wrong", got=got)


@pytest.mark.parametrize("kind", [FlowError, StateError, CheckpointInUse, BatchFailed])
def test_one_except_clause_catches_every_error_of_tidegate(kind: type[TidegateError]) -> None:
    with pytest.raises(TidegateError, match=r"^\[IT_BROKE\] It broke\.$"):
        raise kind("It broke", code="IT_BROKE")


@pytest.mark.parametrize("kind", [FlowError, StateError, CheckpointInUse, BatchFailed])
def test_an_error_is_the_same_in_another_process(kind: type[TidegateError]) -> None:
    error = kind("It broke", code="IT_BROKE", got=3, do="Wait", details={"batch_id": 7})
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error) == "[IT_BROKE] It broke. Got: 3. Wait."
        assert (again.code, again.details) == ("IT_BROKE", error.details)


def test_an_error_has_a_code() -> None:
    with pytest.raises(TypeError, match="code"):
        FlowError("It broke")  # type: ignore[call-arg]


def test_a_checkpoint_in_use_is_a_problem_of_the_state() -> None:
    assert issubclass(CheckpointInUse, StateError)


def test_every_class_in_the_module_stands_under_the_one_base() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]
    assert TidegateError in classes
    assert [c.__name__ for c in classes if not issubclass(c, TidegateError)] == []


def test_every_error_says_when_it_is_raised() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]
    assert [c.__name__ for c in classes if not c.__doc__] == []
