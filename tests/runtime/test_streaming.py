"""A stream is answered as its rows come, and as `predict` answers them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures_trained import toy_rows

from de3bert.data.stream import Row
from de3bert.errors import De3Error
from de3bert.runtime import streaming
from de3bert.runtime.streaming import HELD_ROWS, Ahead, StreamCounts, answered

OWN = ("label", "score", "exit_layer", "layers")
TEXTS = [text for text, _ in toy_rows(90, 5)]


def row(number: int, text: str | None, **columns: Any) -> Row:
    fault = "" if text is not None else "no text"
    return Row(number, "line", {"text": text, **columns}, text, fault, len(text or ""))


def rows(texts: list[str | None]) -> list[Row]:
    return [row(number, text) for number, text in enumerate(texts, start=1)]


def everything(
    model: Any, source: Any, tally: StreamCounts | None = None, **options: Any
) -> list[dict]:
    options = {"policy": model.policy(policy=options.pop("policy", "full")), **options}
    with Ahead(source) as ahead:
        windows = answered(model, ahead, OWN, tally or StreamCounts(), **options)
        return [document for window in windows for document in window]


@pytest.mark.parametrize("policy", ["entropy < 0.3", "patience(2)", "bandit"])
def test_the_answers_are_those_of_predict(classifier, policy):
    classifier.policy(policy=policy)
    options = settings(
        max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )

    @options
    @given(
        st.integers(1, 40), st.integers(1, 20), st.integers(1, 4), st.sets(st.integers(0, 89)),
    )  # fmt: skip
    def check(batch_size: int, first: int, window: int, bad: set[int]) -> None:
        texts = [None if at in bad else text for at, text in enumerate(TEXTS)]
        classifier.forget()
        expected = classifier.predict([text for text in texts if text is not None], policy=policy)
        classifier.forget()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streaming, "FIRST", first)
            patch.setattr(streaming, "WINDOW", window)
            found = everything(classifier, rows(texts), policy=policy, batch_size=batch_size)
        assert [document["text"] for document in found] == texts
        answers = [document for document in found if "error" not in document]
        assert [(each["label"], each["exit_layer"]) for each in answers] == [
            (each.label, each.exit_layer) for each in expected
        ]

    check()


def test_faults_stand_in_their_place_and_are_counted(classifier):
    tally = StreamCounts()
    found = everything(classifier, rows(["good", None, "bad", None]), tally)
    assert found[1] == {"error": "no text", "line": 2, "text": None}
    assert ["error" in document for document in found] == [False, True, False, True]
    assert (tally.rows, tally.faults) == (4, 2)
    assert "2 of 4 rows could not be answered (line 2, line 4)" in str(tally)


def test_columns_that_have_our_names_are_kept_under_others(classifier):
    own = {"label": "x", "error": "y", "line": 7}
    sound, bad = everything(classifier, [row(1, "good", **own), row(2, None, **own)])
    assert (sound["input_label"], sound["input_error"], sound["line"]) == ("x", "y", 7)
    assert (bad["input_label"], bad["input_error"], bad["input_line"]) == ("x", "y", 7)
    assert (bad["error"], bad["line"]) == ("no text", 2)


def test_strict_answers_what_came_before(classifier):
    with Ahead(rows(["good", "bad", None, "fine"])) as ahead:
        policy = classifier.policy(policy="full")
        windows = answered(classifier, ahead, OWN, StreamCounts(), policy=policy, strict=True)
        given: list[dict] = []
        with pytest.raises(De3Error, match="line 3: no text"):
            collect(windows, given)
    assert [document["text"] for document in given] == ["good", "bad"]


def collect(windows: Iterator[list[dict]], given: list[dict]) -> None:
    for window in windows:
        given.extend(window)


def test_cut_texts_are_counted_over_the_stream(classifier):
    tally = StreamCounts()
    everything(classifier, rows([" ".join(["good"] * 60), "bad"] * 30), tally, batch_size=2)
    assert tally.cut == 30


def test_a_pause_in_the_input_is_no_reason_to_wait(classifier):
    more = threading.Event()

    def pausing() -> Iterator[Row]:
        yield row(1, "good")
        yield row(2, "bad")
        assert more.wait(30)
        yield row(3, "fine")

    with Ahead(pausing()) as ahead:
        policy = classifier.policy(policy="full")
        windows = answered(classifier, ahead, OWN, StreamCounts(), policy=policy)
        texts: list[str] = []
        while len(texts) < 2:
            texts += [document["text"] for document in next(windows)]
        assert texts == ["good", "bad"]
        more.set()
        assert [document["text"] for document in next(windows)] == ["fine"]
        assert next(windows, None) is None


def test_only_so_much_is_read_ahead():
    read = []

    def endless() -> Iterator[Row]:
        for number in itertools.count(1):
            read.append(number)
            yield row(number, "a")

    with Ahead(endless()) as ahead:
        ahead.check(None)
        deadline = time.monotonic() + 10
        while len(read) <= HELD_ROWS and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(read) <= HELD_ROWS + 1
        assert [each.number for each in ahead.take(3)] == [1, 2, 3]
    assert not ahead._thread.is_alive()


def test_long_rows_are_few_rows():
    long = [row(number, "x" * (3 << 20)) for number in range(40)]
    with Ahead(long) as ahead:
        seen = 0
        while taken := ahead.take(1000):
            assert len(taken) <= 3
            assert len(ahead._held) <= 7
            seen += len(taken)
    assert seen == 40


def test_what_is_wrong_with_the_source_comes_after_the_rows_before_it():
    def breaking() -> Iterator[Row]:
        yield row(1, "a")
        raise De3Error("broken off")

    with Ahead(breaking()) as ahead:
        ahead.check(None)
        assert len(ahead.take(5)) == 1
        with pytest.raises(De3Error, match="broken off"):
            ahead.take(5)
    with Ahead(iter(_raise())) as ahead, pytest.raises(De3Error, match="at once"):
        ahead.check(None)


def _raise() -> Iterator[Row]:
    raise De3Error("at once")
    yield  # pragma: no cover


def test_a_reader_that_waits_for_ever_does_not_hold_up_the_end():
    forever = threading.Event()

    def stuck() -> Iterator[Row]:
        yield row(1, "a")
        forever.wait(60)

    start = time.monotonic()
    with Ahead(stuck()) as ahead:
        ahead.check(0.1)
        assert len(ahead.take(5)) == 1
    assert time.monotonic() - start < 5
    forever.set()
