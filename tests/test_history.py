"""Batches over time: one line each, the same rows once, whole at any moment."""

import json
import multiprocessing
import os
import re

import numpy as np
import pytest

from damvi import history
from damvi.history import Batch, add_batch, read_history
from damvi.report.drift_page import history_charts

from .test_drift import fitted_model, table


@pytest.fixture(scope="module")
def model():
    return fitted_model()


@pytest.mark.slow
def test_batches_add_up_and_labels_come_later(model, tmp_path):
    path = tmp_path / "batches.jsonl"
    new = table(600, seed=1)
    first = model.drift(new.drop(columns="bad"), history=path, name="May")
    assert [one.name for one in first.batches] == ["May"]
    assert (first.answered, first.achieved) == (0, {})
    model.drift(table(500, seed=2, labels=False), history=path, name="June")
    shuffled = new.sample(frac=1, random_state=0)  # the same rows, with answers now
    later = model.drift(shuffled, history=path)
    may, june = later.batches
    assert (may.name, may.rows, may.answered) == ("May", 600, 600)
    assert may.date == first.batches[0].date
    assert may.answered_on
    assert not june.answered_on
    assert may.expected["precision"] == pytest.approx(
        first.batches[0].expected["precision"], abs=0.02
    )
    real = model.evaluate(new).figures.overall
    for name in ("precision", "recall", "f1", "ap"):
        assert may.achieved[name] == pytest.approx(real[name].value)
        assert may.within(name) in (True, False)
    assert sum(map(bool, map(may.within, may.achieved))) >= 3
    # Seen again without answers, what is known of them stays.
    again = model.drift(new.drop(columns="bad"), history=path)
    assert again.batches[0].achieved == may.achieved
    assert again.batches[0].answered_on == may.answered_on
    assert read_history(path) == again.batches
    assert len(path.read_text().splitlines()) == 2
    page = again.page()
    assert page.count('<svg id="history-') == 4
    assert "Batch by batch" in page


def test_another_model_has_batches_of_its_own(tmp_path):
    path = tmp_path / "history.jsonl"
    for model, flagged in (("one", 5), ("other", 9), ("one", 5)):
        batches = add_batch(path, Batch("May", "same rows", 100, flagged, model=model))
    assert [(batch.model, batch.flagged) for batch in batches] == [("one", 5), ("other", 9)]


def test_some_answers_are_set_against_what_was_expected_of_these_rows(model):
    new = table(600, seed=3).astype({"bad": object})
    new.loc[new["amount"] < 40, "bad"] = None
    found = model.drift(new)
    assert 0 < found.answered < 600
    assert found.beside["recall"].value != found.expected.overall["recall"].value
    assert [len(line) for line in found.figures] == [5] * 4
    told = json.loads(json.dumps(found.as_dict()))
    assert told["answered"] == found.answered
    assert told["expected"]["figures"]["ap"]["low"] < told["achieved"]["ap"] + 0.3
    with pytest.raises(ValueError, match="no column 'ugly' of labels"):
        model.drift(new, target="ugly")


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"no json",
        b"[1]",
        b"\xff\xfe\x00",
        b'{"name": "a", "fingerprint": "f", "rows": -1, "flagged": 0}',
        b'{"name": 3, "fingerprint": "f", "rows": 1, "flagged": 0}',
        b'{"name": "a", "fingerprint": "f", "rows": 1, "flagged": 0, "more": 1}',
        b'{"name": "a", "fingerprint": "f", "rows": 1, "flagged": 0, '
        b'"expected": {"ap": [NaN, 0, 1]}}',
        b'{"name": "a", "fingerprint": "f", "rows": 1, "flagged": 0, "achieved": [1]}',
    ],
)
def test_a_damaged_file_is_named_and_left_alone(line, tmp_path):
    path = tmp_path / "batches.jsonl"
    add_batch(path, Batch("May", "m", 10, 1))
    content = path.read_bytes() + line + b"\n"
    path.write_bytes(content)
    said = re.escape(str(path)) + " is not a valid damvi drift history: line "
    with pytest.raises(ValueError, match=said):
        add_batch(path, Batch("June", "j", 10, 1))
    assert path.read_bytes() == content
    assert [*tmp_path.iterdir()] == [path]


def _add(path, numbers):
    for k in numbers:
        add_batch(path, Batch(f"batch {k}", str(k), 10, 1))


@pytest.mark.skipif(os.name != "posix", reason="it forks")
def test_writers_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "batches.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(path, range(k, 24, 3))) for k in range(3)]
    for one in writers:
        one.start()
    for one in writers:
        one.join(60)
    assert {one.name for one in read_history(path)} == {f"batch {k}" for k in range(24)}


def test_a_file_that_stays_in_use_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "WAIT", 0.1)
    monkeypatch.setattr(history, "lock_file", lambda file: False)
    with pytest.raises(TimeoutError, match="in use by another process"):
        add_batch(tmp_path / "batches.jsonl", Batch("May", "m", 10, 1))


def test_charts_of_many_batches():
    rng = np.random.default_rng(0)
    batches = []
    for k in range(100):
        low, value, high = np.sort(rng.random(3)).tolist()
        expected = {"macro_f1": [value, low, high]} if k % 7 else {}
        achieved = {"macro_f1": 0.5} if k % 2 else {}
        batches.append(
            Batch(f"<b>{k}</b>", str(k), 9, 1, "P(y|x)", expected, achieved=achieved)
        )
    [(title, svg)] = history_charts(batches)
    assert title == "macro F1"
    assert "<b>" not in svg
    assert svg.count("<circle") < 2 * 60
    assert history_charts([]) == []
