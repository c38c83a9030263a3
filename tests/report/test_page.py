"""The page stands alone, takes no harm from hostile names, and stays small."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from damvi import DAMVIClassifier
from damvi.hashing import row_hashes
from damvi.io import TrainingRows
from damvi.model import Model
from damvi.report import render, summarise, write_report
from damvi.report.page import HEATS, digest, heat, json_for_script
from damvi.tables import Schema, TargetOfMany

from .toy import HOSTILE, make_class_model, make_class_table, make_model, make_table


class Elements(HTMLParser):
    """All elements of a page, with their attributes and texts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module", params=["two classes", "four classes"])
def hostile_page(request):
    make = (make_table, make_model)
    if request.param == "four classes":
        make = (make_class_table, make_class_model)
    model = make[1](make[0](600, 0, HOSTILE))
    return render(summarise(model, make[0](400, 1, HOSTILE), name=HOSTILE))


def test_hostile_names_and_values_are_text(hostile_page):
    page = Elements(hostile_page)
    assert [tag for tag, _ in page.found if tag in ("img", "iframe", "object", "b")].count(
        "img"
    ) == 0
    assert [tag for tag, _ in page.found].count("script") == 2  # the data and the code
    assert not any(name.startswith("on") for _, at in page.found for name in at)
    assert any(HOSTILE in text for text in page.texts)
    assert any("<b>bold</b>" in text for text in page.texts)


def test_nothing_is_asked_of_any_network(hostile_page):
    page = Elements(hostile_page)
    asking = {"src", "srcset", "action", "data", "poster", "formaction", "background"}
    for tag, attributes in page.found:
        assert not asking & attributes.keys(), tag
        assert attributes.get("href", "#").startswith("#")
        assert "style" not in attributes  # the policy would refuse it
    assert "@import" not in hostile_page
    assert not re.search(r"url\(", hostile_page)


def test_the_policy_allows_this_style_and_this_script_alone(hostile_page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', hostile_page)[1]
    policy = policy.replace("&#39;", "'")
    (style,) = re.findall(r"<style>(.*?)</style>", hostile_page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", hostile_page, re.DOTALL)
    assert "default-src 'none'" in policy
    assert f"style-src '{digest(style)}'" in policy
    assert f"script-src '{digest(script)}'" in policy
    assert "unsafe" not in policy


def test_those_who_do_not_see_it_can_read_it(hostile_page):
    page = Elements(hostile_page)
    tags = [tag for tag, _ in page.found]
    assert {"header", "main", "footer"} <= set(tags)
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption")
    for tag, attributes in page.found:
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-labelledby"]
    labelled = {at["for"] for tag, at in page.found if tag == "label"}
    named = {at["id"] for tag, at in page.found if tag in ("input", "select")}
    assert named <= labelled
    ids = [at["id"] for _, at in page.found if "id" in at]
    assert len(ids) == len(set(ids))


def test_json_cannot_leave_its_element():
    text = json_for_script({"a": "</script>&\u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)


@pytest.mark.slow
def test_a_wide_and_long_table_stays_below_three_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 60))
    frame = pd.DataFrame(X, columns=[f"column {j} {'x' * 60}" for j in range(60)])
    frame["text"] = ["long " * 50] * len(frame)
    bad = X[:, 0] + rng.normal(size=len(X)) > 1
    frame["fraud"] = np.where(bad, "yes", "no")
    model = make_model(frame.assign(id="x")[:3000])
    path = tmp_path / "report.html"
    write_report(model, frame.assign(id="x")[3000:], path)
    assert path.stat().st_size < 1_500_000


def test_the_old_page_stays_if_the_new_one_fails(model, fresh_rows, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="column is missing"):
        write_report(model, fresh_rows.drop(columns="noise"), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_without_jinja_it_says_what_to_install(model, fresh_rows, monkeypatch):
    said = summarise(model, fresh_rows)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'damvi\[report\]'"):
        render(said)


@pytest.mark.parametrize(
    ("cost", "ratio", "unit"), [(None, 10, 1), ([2.0, 50.0], 25, 2), ([4.0, 1.0], 0.25, 4)]
)
def test_the_slider_starts_at_the_costs_of_the_fit(model, fresh_rows, cost, ratio, unit):
    said = summarise(replace(model, scores={**model.scores, "cost": cost}), fresh_rows)
    (text,) = re.findall(r'id="live-data">(.*?)</script>', render(said), re.DOTALL)
    slider = json.loads(text)["cuts"]
    assert slider["ratios"][slider["start"]] == ratio
    assert slider["unit"] == unit
    assert slider["ratios"] == sorted(slider["ratios"])


def test_training_rows_have_thresholds_of_their_own(model, fitted, fresh_rows):
    own = "each fold of training rows has its own threshold"
    assert own not in render(summarise(model, fresh_rows))
    assert own in render(summarise(model, fitted))


def test_as_many_rows_are_listed_as_are_flagged(model, fitted):
    said = summarise(model, fitted)
    rows = [at for tag, at in Elements(render(said)).found if "data-place" in at]
    listed = sum("hidden" not in at for at in rows)
    assert listed == min(said["classes"][1]["named"]["part"], len(rows))


def test_how_plain_models_did_is_told(model, fresh_rows):
    figure = {"value": 0.5, "low": 0.4, "high": 0.6, "spread": 0.1}
    scores = {
        "models": {"DAMVI": {"f1": figure}, "plain forest": {"f1": figure, "ap": figure}},
        "verdicts": ["A plain forest alone does better <here>."],
        "rows_judged": 600,
    }
    page = render(summarise(replace(model, scores=scores), fresh_rows))
    assert "A plain forest alone does better &lt;here&gt;." in page
    assert "Compared with baselines" in page


def test_times_of_training_are_rounded(model, fresh_rows):
    spent = {"weighted vote": 1250.440386753, "plain forest": 0.11017}
    made = model.made | {"seconds": spent, "settings": {"cost": 0.123456}}
    page = render(summarise(replace(model, made=made), fresh_rows))
    assert "weighted vote 1,250.4, plain forest 0.1<" in page
    assert "cost 0.123456" in page


def test_cells_are_as_dark_in_the_script(hostile_page):
    assert f"heats = [{', '.join(map(str, HEATS))}]" in hostile_page
    assert [heat(part, 100) for part in (0, 1, 2, 24, 25, 75)] == [0, 0, 1, 2, 3, 5]


def many_classes(n_classes, n, name="{}"):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 4)) + np.column_stack([labels % 5, labels // 5, labels, labels])
    frame = pd.DataFrame(X, columns=list("abcd"))
    names = tuple(name.format(f"{c:03d}") for c in range(n_classes))
    frame["kind"] = np.array(names)[labels]
    schema = Schema.infer(frame, "kind")
    encoded = schema.encode(frame)
    classifier = DAMVIClassifier(n_estimators=10, random_state=0).fit(encoded, labels)
    training = TrainingRows(
        row_hashes(encoded, labels),
        classifier.decision_.out_of_sample_vote,
        labels.astype(np.uint8),
    )
    return frame, Model(classifier, schema, TargetOfMany("kind", classes=names), training)


@pytest.mark.slow
def test_sixteen_classes_with_long_names_stay_below_three_megabytes(tmp_path):
    frame, model = many_classes(16, 20_000, "class {} " + "x" * 60)
    path = tmp_path / "report.html"
    said = write_report(model, frame, path)
    assert said["weights"]
    assert path.stat().st_size < 3_000_000


@pytest.mark.slow
def test_very_many_classes_have_no_slider_and_say_so(tmp_path):
    frame, model = many_classes(60, 3000)
    path = tmp_path / "report.html"
    said = write_report(model, frame, path)
    page = path.read_text(encoding="utf-8")
    assert said["weights"] is None
    assert "There is no slider" in page
    assert 'id="confusion"' not in page
    assert "Shown are the 20 rarest of 60 classes" in page
    assert "The 15 most frequent of 60 are shown" in page
    assert path.stat().st_size < 3_000_000
