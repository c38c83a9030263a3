"""The specification beside an ONNX graph, and the reader that services copy."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import damvi
from damvi.io import export_onnx
from damvi.voters import FastForestClassifier, NumberEncoder, RateEncoder
from damvi.voters.columns import PairColumns

from ..model.tables import as_json, mixed
from ..model.test_row import ODD

EXAMPLES = Path(__file__).parents[2] / "examples/service"

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")


@pytest.fixture(scope="module")
def reader_of():
    sys.path.insert(0, str(EXAMPLES))
    try:
        from onnx_reader import Reader
    finally:
        sys.path.remove(str(EXAMPLES))
    return Reader


@pytest.fixture(scope="module")
def table():
    return mixed()


def pool():
    from lightgbm import LGBMClassifier

    few = {"n_estimators": 9, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    boosted = make_pipeline(
        RateEncoder(), NumberEncoder(), PairColumns(), LGBMClassifier(**few)
    )
    forest = make_pipeline(RateEncoder(), FastForestClassifier(9, random_state=0))
    return [("lightgbm", boosted), ("forest", forest)]


def agree(told, model, row):
    expected = model.predict_row(row)
    assert told["decision"] == expected["decision"]
    assert told["score"] == pytest.approx(expected["score"], abs=1e-6)
    assert told["probability"] == pytest.approx(expected["probability"], abs=1e-6)


@pytest.fixture(scope="module", params=["trees", "pool"])
def exported(request, table, tmp_path_factory, reader_of):
    chosen = "trees" if request.param == "trees" else pool()
    model = damvi.fit(table, "late", pool=chosen, shuffle=True, random_state=0)
    path = tmp_path_factory.mktemp("graph") / "model.onnx"
    written = export_onnx(model, path)
    assert written["feeder"] == f"{path}.json"
    return model, reader_of(path)


@pytest.mark.slow
def test_raw_rows_are_decided_as_by_the_model(table, exported):
    model, read = exported
    rows = as_json(table.iloc[:60])
    for told, row in zip(read(rows), rows, strict=True):
        agree(told, model, row)


@pytest.mark.slow
@pytest.mark.parametrize("exported", ["trees"], indirect=True)
def test_a_value_is_read_as_damvi_does_or_refused(table, exported):
    model, read = exported
    row = as_json(table.iloc[:1])[0]
    n_read = 0
    for name in row:
        for value in [
            one for one in ODD if type(one) in (str, int, float, bool, type(None))
        ]:
            changed = row | {name: value}
            try:
                (told,) = read([changed])
            except ValueError:
                continue
            n_read += 1
            agree(told, model, changed)
    assert n_read > 200
    with pytest.raises(ValueError, match="column 'shop' is missing"):
        read([{name: value for name, value in row.items() if name != "shop"}])


def test_text_is_hashed_as_damvi_hashes_it(table, exported):
    model, read = exported
    column = next(one for one in model.schema.used if one.kind == "text")
    spec = next(one for one in read.spec["columns"] if one["kind"] == "text")
    texts = ["", "a", "Pump  leaks!", "no, no: no", "höher ∑ 年", "x" * 2000, "\ud800 y"]
    for text in [*texts, *table["comment"].iloc[:20]]:
        found = np.array([*read.text_cells(text, spec).values()])
        np.testing.assert_allclose(found, column.encoder.numbers([text])[0], atol=1e-12)


@pytest.mark.slow
def test_three_classes_whose_labels_are_numbers(table, tmp_path, reader_of):
    few = table[["size", "grade", "amount"]]
    noise = np.random.default_rng(1).normal(size=len(few))
    frame = few.assign(state=np.digitize(few["size"].fillna(0) + noise, [0.0, 1.0]) * 10)
    model = damvi.fit(frame, "state", pool="trees", shuffle=True, random_state=0)
    export_onnx(model, tmp_path / "m.onnx")
    rows = as_json(few.iloc[:30])
    for told, row in zip(reader_of(tmp_path / "m.onnx")(rows), rows, strict=True):
        assert told == pytest.approx(model.predict_row(row), abs=1e-12)
        assert type(told["decision"]) is int


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"format": "damvi feeder 9"}, "another format: damvi feeder 9"),
        ({"graph": "00"}, "another graph; export both again"),
    ],
)
@pytest.mark.parametrize("exported", ["trees"], indirect=True)
def test_what_does_not_belong_together_is_refused(
    changed, words, tmp_path, exported, reader_of
):
    model, read = exported
    export_onnx(model, tmp_path / "m.onnx")
    (tmp_path / "m.onnx.json").write_text(json.dumps(read.spec | changed), "utf-8")
    with pytest.raises(ValueError, match=words):
        reader_of(tmp_path / "m.onnx")
