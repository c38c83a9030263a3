"""The page of many classes stands alone, takes no harm from names, and stays small."""

import re

import numpy as np
import pandas as pd
import pytest

from damvi import DAMVIClassifier
from damvi.fingerprint import row_prints
from damvi.io import Model, Target, Training
from damvi.report import summarise, write_report
from damvi.report.class_page import HEATS, heat
from damvi.report.page import digest, render
from damvi.tables import Schema

from .class_toy import make_class_model, make_class_table
from .test_page import Elements
from .toy import HOSTILE


@pytest.fixture(scope="module")
def page():
    model = make_class_model(make_class_table(width=HOSTILE))
    return render(summarise(model, make_class_table(400, 1, HOSTILE), name=HOSTILE))


def test_hostile_classes_columns_and_values_are_text(page):
    found = Elements(page)
    tags = [tag for tag, _ in found.found]
    assert tags.count("img") == 0
    assert tags.count("script") == 2  # the data and the code
    assert not any(name.startswith("on") for _, at in found.found for name in at)
    assert sum(HOSTILE in text for text in found.texts) > 20
    assert any("<b>bold</b>" in text for text in found.texts)


def test_nothing_is_asked_of_any_network(page):
    asking = {"src", "srcset", "action", "data", "poster", "formaction", "background"}
    for tag, attributes in Elements(page).found:
        assert not asking & attributes.keys(), tag
        assert attributes.get("href", "#").startswith("#")
        assert "style" not in attributes  # the policy would refuse it
    assert not re.search(r"url\(|@import", page)


def test_the_policy_allows_this_style_and_this_script_alone(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    policy = policy.replace("&#39;", "'")
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert f"style-src '{digest(style)}'" in policy
    assert f"script-src '{digest(script)}'" in policy
    assert "unsafe" not in policy


def test_those_who_do_not_see_it_can_read_it(page):
    found = Elements(page)
    tags = [tag for tag, _ in found.found]
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption")
    for tag, attributes in found.found:
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        if tag == "svg":
            assert attributes["role"] == "img"
    labelled = {at["for"] for tag, at in found.found if tag == "label"}
    named = {at["id"] for tag, at in found.found if tag in ("input", "select")}
    assert named <= labelled
    ids = [at["id"] for _, at in found.found if "id" in at]
    assert len(ids) == len(set(ids))


def test_cells_are_as_dark_in_the_script(page):
    assert f"heats = [{', '.join(map(str, HEATS))}]" in page
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
    training = Training(
        row_prints(encoded, labels),
        classifier._decision.unseen_vote,
        labels.astype(np.uint8),
    )
    return frame, Model(classifier, schema, Target("kind", classes=names), training)


def test_sixteen_classes_with_long_names_stay_below_three_megabytes(tmp_path):
    frame, model = many_classes(16, 20_000, "class {} " + "x" * 60)
    path = tmp_path / "report.html"
    said = write_report(model, frame, path)
    assert said["weights"]
    assert path.stat().st_size < 3_000_000


def test_very_many_classes_have_no_slider_and_say_so(tmp_path):
    frame, model = many_classes(60, 3000)
    path = tmp_path / "report.html"
    said = write_report(model, frame, path)
    page = path.read_text(encoding="utf-8")
    assert said["weights"] is None
    assert "There is no slider" in page
    assert 'id="confusion"' not in page
    assert "Shown are 20 of 60 classes" in page
    assert "The 15 most frequent of 60 are shown" in page
    assert path.stat().st_size < 3_000_000
