"""Damaged and hostile files: one class of error, no crash, and nothing is run."""

import io
import json
import os
import pickle
import re
import sys
import time
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from damvi import (
    DAMVIClassifier,
    DAMVIVotingClassifier,
    FastTreeClassifier,
    load,
    save,
)
from damvi.io import ModelFileError
from damvi.io.container import (
    MANIFEST,
    Writer,
    array_from_bytes,
    array_to_bytes,
    pack,
    unpack,
)
from damvi.voters import FastForestClassifier, NumberEncoder, strong_pool
from damvi.voters.columns import scaled_table

from .models import DATA, X4, Y4, X, Y, frame, same, whole_model
from .test_round_trips import check


def content_of(model, tmp_path_factory, save=save):
    path = tmp_path_factory.mktemp("sound") / "model.damvi"
    save(model, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    voter = FastTreeClassifier(categorical_features=[0])
    model = DAMVIClassifier(voter, n_estimators=6, random_state=0)
    model.fit(np.column_stack([np.round(X[:, 0]), X[:, 1:]]), Y)
    content = content_of(model, tmp_path_factory)
    assert b"damvi model 1\n" in content[:20]
    return content


@pytest.fixture(scope="module")
def class_trees(tmp_path_factory):
    """Of four classes, with factors that were tuned."""
    model = DAMVIClassifier(n_estimators=5, threshold="macro_f1", random_state=0)
    return content_of(model.fit(X4, Y4), tmp_path_factory)


def pool_of(n_classes, last, tmp_path_factory):
    """Trees of scikit-learn of all kinds, and one more voter."""
    named = [
        ("extra", ExtraTreesClassifier(2)),
        ("boosted", HistGradientBoostingClassifier(max_iter=2)),
        ("last", last),
    ]
    model = DAMVIVotingClassifier(named, cv=2, calibration="isotonic", random_state=0)
    return content_of(model.fit(*DATA[n_classes]), tmp_path_factory)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """Of two classes."""
    return pool_of(2, LogisticRegression(), tmp_path_factory)


@pytest.fixture(scope="module")
def class_pool(tmp_path_factory):
    return pool_of(4, FastForestClassifier(2), tmp_path_factory)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return content_of(whole_model(), tmp_path_factory)


@pytest.fixture(scope="module")
def class_whole(tmp_path_factory):
    return content_of(whole_model(4), tmp_path_factory)


@pytest.fixture(scope="module")
def sound(trees, whole, pool, class_trees, class_whole, class_pool):
    """One of each."""
    return [trees, whole, pool, class_trees, class_whole, class_pool]


def refused(content, tmp_path, match="cannot load", **options):
    path = tmp_path / "hostile.damvi"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path, **options)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def opened(content, tmp_path):
    path = tmp_path / "sound.damvi"
    path.write_bytes(content)
    members = unpack(path)
    return json.loads(members.pop(MANIFEST)), members


def sealed(said, members):
    """A file with a digest that fits, as any attacker can make."""
    return pack({MANIFEST: json.dumps(said).encode(), **members})


def test_300_random_corruptions_are_300_clean_errors(sound, tmp_path):
    rng = np.random.RandomState(0)
    for trial in range(300):
        content = bytearray(sound[trial % len(sound)])
        here, there = np.sort(rng.randint(0, len(content), 2)).tolist()
        match trial // len(sound) % 5:
            case 0:
                content[here] ^= 1 << rng.randint(8)
            case 1:
                del content[here:]
            case 2:
                content[here:here] = rng.bytes(1 + rng.randint(50))
            case 3:
                del content[here : here + 1 + rng.randint(50)]
            case 4:
                middle = (here + there) // 2
                swapped = content[middle:there] + content[here:middle]
                if swapped == content[here:there]:
                    swapped = bytes(len(swapped)) + b"\0"
                content[here:there] = swapped
        refused(bytes(content), tmp_path)


def test_an_empty_file(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(ModelFileError, match="it is empty; copy it again, or fit"):
        load(tmp_path / "x")


def test_every_byte_of_the_first_lines_counts(trees, tmp_path):
    for place in range(len(b"damvi model 1\nsha256 ") + 65):
        content = bytearray(trees)
        content[place] ^= 0x10
        refused(bytes(content), tmp_path)


def test_corruption_under_a_fitting_digest(sound, tmp_path):
    """Random changes of the payload, sealed anew: an error, or a model that answers."""
    rng = np.random.RandomState(1)
    path = tmp_path / "hostile.damvi"
    for trial in range(120):
        content = sound[trial % len(sound)]
        head, payload = content[: content.index(b"PK")], content[content.index(b"PK") :]
        changed = bytearray(payload)
        for _ in range(1 + trial % 4):
            changed[rng.randint(len(changed))] = rng.randint(256)
        digest = sha256(bytes(changed)).hexdigest().encode()
        first = head.split(b"\n")[0]
        path.write_bytes(first + b"\nsha256 " + digest + b"\n" + bytes(changed))
        try:
            loaded = load(path)
        except ModelFileError:
            continue
        loaded = getattr(loaded, "classifier", loaded)
        if "names" not in getattr(loaded, "feature_names_in_", ()):
            loaded.vote(X)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_random_numbers_in_any_array(request, n_classes, tmp_path):
    """Each array in turn, with one odd number; what loads must answer without a crash."""
    names = ("trees", "pool") if n_classes == 2 else ("class_trees", "class_pool")
    rng = np.random.RandomState(2)
    path = tmp_path / "hostile.damvi"
    n_errors = 0
    for name in names:
        said, members = opened(request.getfixturevalue(name), tmp_path)
        arrays = [name for name in members if name.endswith(".npy")]
        for name in arrays[:: 4 if len(arrays) > 200 else 1]:
            array = array_from_bytes(members[name], name)
            if array.dtype.kind == "U" or array.size == 0:
                continue
            odd = (-1, 2**31 - 1, 10**4)[rng.randint(3)]
            changed = array.copy()
            with np.errstate(all="ignore"):
                changed.flat[rng.randint(array.size)] = np.array(odd).astype(array.dtype)
            path.write_bytes(sealed(said, {**members, name: array_to_bytes(changed)}))
            try:
                load(path).predict(X)
            except ValueError:  # ModelFileError is one
                n_errors += 1
    assert n_errors > 10


def find(said, kind):
    """The first object of a kind in a manifest."""
    if isinstance(said, dict):
        if str(said.get("is", "")).endswith(kind):
            return said
        said = list(said.values())
    if isinstance(said, list):
        for item in said:
            if (found := find(item, kind)) is not None:
                return found
    return None


def set_node(column, value, inner=True):
    def change(nodes):
        places = np.arange(len(nodes))
        where = np.flatnonzero(
            (nodes[:, 1] != places) if inner else (nodes[:, 1] == places)
        )
        nodes[where[0], column] = value
        return nodes

    return change


def flat(place, value):
    def change(array):
        array.flat[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("kind", "array", "change", "match"),
    [
        ("Forest", "nodes", set_node(0, 99), "features out of range"),
        ("Forest", "nodes", set_node(0, -1), "features out of range"),
        ("Forest", "nodes", set_node(1, 0, inner=False), "corrupt|invalid content"),
        ("Forest", "nodes", set_node(1, 10**6), "children outside"),
        ("Forest", "nodes", set_node(1, -5), "children before"),
        ("Forest", "nodes", set_node(1, 2**31 - 1), "children outside"),
        ("Forest", "nodes", set_node(2, -1), "thresholds out of range"),
        ("Forest", "nodes", set_node(2, 300), "thresholds out of range"),
        ("Forest", "nodes", set_node(2, 7, inner=False), "leaves with children"),
        ("Forest", "nodes", set_node(3, 7), "unknown kind of splits"),
        ("Forest", "nodes", lambda a: a.astype(np.int64), "nodes has dtype int64"),
        ("Forest", "nodes", lambda a: a.astype(np.float32), "nodes has dtype float32"),
        ("Forest", "nodes", lambda a: a[:, :3], "nodes has shape"),
        ("Forest", "nodes", lambda a: a[:0], "corrupt|invalid content"),
        ("Forest", "nodes", np.asfortranarray, "not C-contiguous"),
        ("Forest", "roots", flat(1, 10**9), "corrupt|invalid content"),
        ("Forest", "roots", flat(1, -1), "corrupt|invalid content"),
        ("Forest", "roots", flat(1, 2**63 - 1), "corrupt|invalid content"),
        ("Forest", "set_starts", flat(1, 10**9), "set_starts are not increasing"),
        ("Forest", "sets", lambda a: a[:, :8], "sets has shape"),
        ("Forest", "sets", lambda a: a[:0], "corrupt|invalid content"),
        ("Forest", "weights", lambda a: -a, "weights out of range"),
        ("Forest", "weights", lambda a: 0 * a, "nodes without weight"),
        ("Forest", "weights", lambda a: 0 * a + 2**62 + 1, "weights out of range"),
        ("Forest", "rows", lambda a: -a, "nodes without rows"),
        ("Forest", "importances", lambda a: a * np.nan, "not finite"),
        ("Forest", "importances", lambda a: a[:, :2], "corrupt|invalid content"),
        ("Binning", "cuts", flat(3, np.nan), "cuts are NaN"),
        ("Binning", "cuts", lambda a: a[::-1].copy(), "cuts out of order"),
        ("Binning", "starts", flat(1, 2**40), "corrupt|invalid content"),
        ("Binning", "starts", lambda a: a[:-1], "corrupt|invalid content"),
        ("Binning", "category_codes", lambda a: a + np.uint8(200), "codes out of range"),
        ("Binning", "n_codes", flat(1, 10**6), "codes"),
        ("Binning", "categorical", flat(1, 7), "categorical is not 0 or 1"),
    ],
)
def test_hostile_trees_with_a_fitting_digest(trees, kind, array, change, match, tmp_path):
    said, members = opened(trees, tmp_path)
    name = find(said, kind)["state"][array]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


def trained(said, kind):
    return find(said["classifier"]["fitted"], kind)["trained"]


FOREST, BOOSTED = "ExtraTreesClassifier", "HistGradientBoostingClassifier"


@pytest.mark.parametrize(
    ("kind", "column", "change", "match"),
    [
        (FOREST, "left_child", flat(0, 0), "children before"),
        (FOREST, "left_child", flat(0, 10**9), "children outside"),
        (FOREST, "right_child", flat(0, -1), "nodes with one child"),
        (FOREST, "right_child", flat(0, 1), "exactly one parent"),
        (FOREST, "feature", flat(0, 50), "features out of range"),
        (FOREST, "feature", flat(0, -2), "features out of range"),
        (FOREST, "feature", flat(0, 2**31 - 2), "features out of range"),
        (FOREST, "threshold", flat(0, np.nan), "thresholds are NaN"),
        (FOREST, "left_child", lambda a: a[:-1], "nodes"),
        (FOREST, "feature", lambda a: a.astype(np.float64), "feature has dtype float64"),
        (FOREST, "n_nodes", flat(0, 10**9), "nodes out of range"),
        (FOREST, "values", lambda a: a * np.nan, "not finite"),
        (FOREST, "values", lambda a: a[:, :1].copy(), "values has shape"),
        (FOREST, "classes", lambda a: a[:1], "values has shape"),
        (FOREST, "classes", lambda a: np.arange(300), "values has shape|classes"),
        (FOREST, "seeds", lambda a: -a, "seeds out of range"),
        (BOOSTED, "left", flat(0, 0), "children before"),
        (BOOSTED, "right", flat(0, 10**6), "children outside"),
        (BOOSTED, "feature_idx", flat(0, 50), "features out of range"),
        (BOOSTED, "feature_idx", flat(0, 2**31 - 2), "features out of range"),
        (BOOSTED, "num_threshold", lambda a: a * np.nan, "NaN"),
        (BOOSTED, "is_categorical", lambda a: 0 * a + 1, "sets out of range"),
        (BOOSTED, "is_leaf", lambda a: 0 * a, "children before"),
        (BOOSTED, "value", lambda a: a * np.nan, "value has numbers out of range"),
        (BOOSTED, "n_nodes", lambda a: a[:-1], "nodes do not add up"),
        (BOOSTED, "n_sets", lambda a: a + 1, "sets"),
        (BOOSTED, "classes", lambda a: np.arange(3), "start"),
        (BOOSTED, "start", lambda a: np.zeros(3), "start"),
        (BOOSTED, "start", flat(0, np.inf), "not finite"),
    ],
)
def test_hostile_trees_of_scikit_learn(pool, kind, column, change, match, tmp_path):
    said, members = opened(pool, tmp_path)
    name = trained(said, kind)[column]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize("kind", [FOREST, BOOSTED])
@pytest.mark.parametrize("n", [5, 7, 10**9, -1, None])
def test_another_number_of_features(pool, kind, n, tmp_path):
    """It read beyond the rows of the table."""
    said, members = opened(pool, tmp_path)
    trained(said, kind)["n_features"] = n
    refused(sealed(said, members), tmp_path, "features|columns")


def test_boosting_with_categories(tmp_path):
    """It could not be saved, and a forged preprocessor could drop columns."""
    table = frame()
    table["sizes"] = table["sizes"].cat.rename_categories({0: -1, 1: 0, 2: 7})
    named = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    plain = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 3])
    for voter, columns in ((plain, np.round(X)), (named, table)):
        voter.fit(columns, Y)
        model = DAMVIVotingClassifier([("boosted", voter)], cv="prefit", random_state=0)
        check(model.fit(columns, Y), columns, tmp_path)
        content = (tmp_path / "model.damvi").read_bytes()
        said, members = opened(content, tmp_path)
        name = trained(said, BOOSTED)["categorical"]["at"]
        for odd in ([0], [0, 0], np.zeros(len(columns.T), bool)):
            hostile = {**members, name: array_to_bytes(np.array(odd, dtype=bool))}
            refused(sealed(said, hostile), tmp_path, "categories")
    strange = table.assign(names=table["names"].cat.set_categories(["b", "new", "a"]))
    again = load(tmp_path / "model.damvi").estimators_[0]
    same(named.predict_proba(strange), again.predict_proba(strange))


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """A linear model of the strong pool, with its preprocessing."""
    voters = dict(strong_pool(0, extended=True))
    linear = make_pipeline(scaled_table(), LogisticRegression())
    named = [("linear", linear), ("spline_linear", voters["spline_linear"])]
    trees = make_pipeline(NumberEncoder(), ExtraTreesClassifier(2, random_state=0))
    named.append(("extra_trees", trees))
    model = DAMVIVotingClassifier(named, cv=2, random_state=0).fit(frame(), Y)
    return content_of(model, tmp_path_factory)


def state(said, kind):
    """Of the first of a kind that is fitted."""
    waiting = [said["classifier"]["fitted"]]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if str(one.get("is")).endswith(kind) and any(
                k[-1] == "_" for k in one["state"]
            ):
                return one["state"]
            one = list(one.values())
        waiting.extend(reversed(one) if isinstance(one, list) else [])
    return None


@pytest.mark.parametrize(
    ("kind", "array", "change", "match"),
    [
        ("StandardScaler", "mean_", lambda a: a[:-1], "StandardScaler.mean_ expects 5"),
        ("StandardScaler", "scale_", lambda a: a[:1], "StandardScaler.scale_ expects 1"),
        ("SimpleImputer", "statistics_", lambda a: a[:-1], "statistics_ expects 5"),
        ("NumberEncoder", "empty_", lambda a: a[:-1], "NumberEncoder expects 7"),
    ],
)
def test_steps_that_take_other_columns(linear, kind, array, change, match, tmp_path):
    said, members = opened(linear, tmp_path)
    name = state(said, kind)[array]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


def drop_names(said):
    state(said, "ColumnTransformer")["transformers_"][1]["items"][1] = "drop"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (drop_names, "is given|refers|expects"),
        (
            lambda said: state(said, "LogisticRegression").update(n_features_in_=3),
            "expects 3",
        ),
        (lambda said: state(said, "StandardScaler").update(n_features_in_=3), "expects 3"),
        (
            lambda said: state(said, "ColumnTransformer").update(n_features_in_=3),
            "expects 3",
        ),
        (lambda said: state(said, "OneHotEncoder")["categories_"].pop(), "expects|refers"),
        (lambda said: state(said, "RankScaler")["knots_"].pop(), "expects|refers|splines"),
        (lambda said: trained(said, FOREST).update(n_features=7), "expects 7|out of"),
        (lambda said: state(said, "LogisticRegression").update(n_jobs=10**6), "n_jobs"),
    ],
)
def test_what_a_step_makes_is_what_the_next_one_takes(linear, change, match, tmp_path):
    """A preprocessor that dropped columns was loaded, and answered otherwise."""
    said, members = opened(linear, tmp_path)
    change(said)
    refused(sealed(said, members), tmp_path, match)


# Files that cost more than their size.


def collide(n):
    return [[{"is": "tuple", "items": []}, 0]] + [[i * (2**61 - 1), i] for i in range(n)]


def test_keys_that_collide(trees, tmp_path):
    """Some 400 KB of them took 18 seconds."""
    said, members = opened(trees, tmp_path)
    for hostile in (
        {"is": "dict", "items": collide(20_000)},
        {"is": "objects", "shape": [20_000], "items": [k for k, _ in collide(19_999)]},
    ):
        said["classifier"]["params"]["random_state"] = hostile
        start = time.process_time()
        refused(sealed(said, members), tmp_path, "collide")
        assert time.process_time() - start < 5


def test_a_tree_that_is_a_chain(trees, tmp_path):
    """17 MB of it took 0.9 GB to ask."""
    said, members = opened(trees, tmp_path)
    stored = find(said, "Forest")["state"]
    n = 100_000
    nodes = np.zeros((2 * n + 1, 4), dtype=np.int32)
    places = np.arange(2 * n + 1)
    nodes[:, 1], nodes[:, 2] = places, 255
    nodes[0, 1], nodes[0, 2] = 1, 3
    nodes[2:-1:2, 1] = places[2:-1:2] + 1
    nodes[2:-1:2, 2] = 3
    hostile = {
        "nodes": nodes,
        "roots": np.array([0, 2 * n + 1]),
        "sets": np.zeros((0, 32), dtype=np.uint8),
        "set_starts": np.zeros(2, dtype=np.int64),
        "weights": np.ones((2 * n + 1, 2), dtype=np.int64),
        "rows": np.ones(2 * n + 1, dtype=np.int32),
        "importances": np.zeros((1, 6)),
    }
    for name, array in hostile.items():
        members[stored[name]["at"]] = array_to_bytes(array)
    refused(sealed(said, members), tmp_path, "more than 4,096 levels")


@pytest.mark.parametrize("n", [10**7, 3, -1, None, 2.5])
def test_a_number_of_classes_that_is_not_there(n, tmp_path):
    """64 rows and 10 million classes took 4.8 GiB."""
    pool = [("constant", DummyClassifier(strategy="prior"))]
    # A constant of our own would leave nothing to learn, and we would say so.
    model = DAMVIVotingClassifier(pool, cv=2, fit_intercept=False)
    model.fit(X, Y)
    save(model, tmp_path / "sound.damvi")
    said, members = opened((tmp_path / "sound.damvi").read_bytes(), tmp_path)
    state(said, "DummyClassifier")["n_classes_"] = n
    refused(sealed(said, members), tmp_path, "wrong number of classes")


def test_more_values_than_the_size_of_a_file_allows(trees, tmp_path):
    said, members = opened(trees, tmp_path)
    rng = np.random.RandomState(0)
    said["odd"] = [[[]] * int(n) for n in rng.randint(0, 20, 200_000)]
    refused(sealed(said, members), tmp_path, "too many values")


def test_objects_that_hold_the_same_twice_and_again(trees, tmp_path):
    """40 levels of them would be walked 2**40 times."""
    said, members = opened(trees, tmp_path)
    held = {"is": "sklearn.preprocessing.Normalizer", "number": 10**6}
    held["state"] = {"copy": True, "norm": "l2"}
    options = dict.fromkeys(("n_jobs", "transformer_weights")) | {"verbose": False}
    options["verbose_feature_names_out"] = True
    for level in range(1, 40):
        again = {"is": "same", "as": 10**6 + level - 1}
        both = [{"is": "tuple", "items": [name, None]} for name in "ab"]
        both[0]["items"][1], both[1]["items"][1] = held, again
        held = {
            "is": "sklearn.pipeline.FeatureUnion",
            "number": 10**6 + level,
            "state": {"transformer_list": both, **options},
        }
    said["classifier"]["params"]["estimator"] = held
    refused(sealed(said, members), tmp_path, "refer to each other too often")


@pytest.mark.parametrize("name", ["RandomState", "MT19937", "Philox"])
def test_generators_that_would_read_beyond_their_numbers(trees, name, tmp_path):
    said, members = opened(trees, tmp_path)
    if name == "RandomState":
        random = np.random.RandomState(0)
    else:
        random = np.random.Generator(getattr(np.random, name)(0))
    writer = Writer()
    stored = writer.write(random)
    said["classifier"]["params"]["random_state"] = stored
    numbers = {f"arrays/{900 + i}.npy": v for i, v in enumerate(writer.members.values())}
    text = json.dumps(stored)
    for old, new in zip(writer.members, numbers, strict=True):
        text = text.replace(f'"{old}"', f'"{new}"')
    stored = json.loads(re.sub(r'(pos", )\d+', r"\g<1>1000000", text))
    said["classifier"]["params"]["random_state"] = stored
    refused(sealed(said, {**members, **numbers}), tmp_path, "random generator")


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(trees, kind, tmp_path):
    def change(archive, members):
        for name, content in members.items():
            archive.writestr(name, content, kind)

    refused(zipped(tmp_path, trees, change), tmp_path, "unexpected compression")


def fitted(said):
    return said["classifier"]["fitted"]


def classes(said):
    return said["classifier"]["classes"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda said: trained(said, FOREST).update(max_features=0), "max_features_"),
        (lambda said: trained(said, FOREST).pop("classes"), "values"),
        (lambda said: trained(said, FOREST).update(names=["a"]), "names"),
        (
            lambda said: find(fitted(said), FOREST)["params"].update(n_jobs=10**6),
            "its n_jobs is 1000000",
        ),
        (
            lambda said: find(fitted(said), FOREST)["params"].update(odd=1),
            "different param",
        ),
        (lambda said: fitted(said).update(threshold_=None), "threshold_"),
        (lambda said: fitted(said).update(n_features_in_=-1), "n_features_in_"),
        (lambda said: fitted(said).update(voters_=None), "voters"),
        (lambda said: fitted(said).pop("weights_"), "incomplete"),
        (lambda said: fitted(said).update(__class__="x"), "incomplete"),
        (lambda said: said["classifier"]["params"].update(odd=1), "parameters"),
        (lambda said: classes(said).update(pos_label="x"), "pos_label_"),
        (lambda said: classes(said).update(order=5), "class order|refers"),
        (lambda said: classes(said).update(odd=5), "incomplete"),
        (lambda said: said["classifier"].update(estimator="os.system"), "unknown kind"),
        (lambda said: said["classifier"].update(estimator=None), "unknown kind"),
        (lambda said: said["classifier"].update(estimator="DAMVIClassifier"), "parameters"),
        (lambda said: said.pop("classifier"), "content is invalid"),
        (lambda said: said.update(versions=[]), "content is invalid"),
        (lambda said: fitted(said).update(tuning_={"is": "os.system"}), "unknown kind"),
        (
            lambda said: fitted(said).update(
                tuning_={"is": "os.system", "number": 10**6, "state": {}}
            ),
            "unknown type 'os.system'",
        ),
        (
            lambda said: fitted(said).update(
                tuning_={"is": "sklearn.tree.Pipeline", "number": 10**6, "state": {}}
            ),
            "unknown type",
        ),
        (
            lambda said: fitted(said).update(weights_=fitted(said)["row_hashes_"]),
            "used twice",
        ),
        (
            lambda said: fitted(said).update(weights_={"is": "array", "at": "../x"}),
            "is missing",
        ),
        (lambda said: fitted(said).update(tuning_={"is": "same", "as": 10**9}), "invalid"),
        (lambda said: fitted(said).update(oob_decision_function_=[1.0]), "oob"),
    ],
)
def test_hostile_manifests(pool, change, match, tmp_path):
    said, members = opened(pool, tmp_path)
    change(said)
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    ("array", "change", "match"),
    [
        ("weights", lambda a: -a, "weights out of range"),
        ("weights", lambda a: 0 * a, "nodes without weight"),
        ("weights", lambda a: a[:, :3].copy(), "voters' classes|without weight"),
        ("weights", lambda a: np.tile(a, 2), "voters' classes"),
        ("weights", lambda a: np.tile(a, 65), "wrong number of classes"),
        ("weights", lambda a: a[:, :1].copy(), "wrong number of classes"),
        ("weights", lambda a: a[:, :2].copy(), "not int64"),
        ("weights", lambda a: a.astype(np.int64), "not int32"),
        ("weights", lambda a: a.astype(np.float64), "not int32"),
        ("weights", lambda a: a[:-1], "shape"),
        ("weights", lambda a: a[:, 0].copy(), "shape"),
    ],
)
def test_hostile_votes_of_leaves(class_trees, array, change, match, tmp_path):
    said, members = opened(class_trees, tmp_path)
    name = find(said, "Forest")["state"][array]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    ("array", "change", "match"),
    [
        ("threshold_", flat(1, np.nan), "threshold_"),
        ("threshold_", flat(1, np.inf), "threshold_"),
        ("threshold_", flat(1, 0.0), "threshold_"),
        ("threshold_", flat(1, -2.0), "threshold_"),
        ("threshold_", flat(1, 77.0), "threshold_"),
        ("threshold_", lambda a: a[:3], "threshold_"),
        ("threshold_", lambda a: a.astype(np.float32), "threshold_"),
        ("order", flat(0, 9), "class order"),
        ("order", lambda a: a * 0, "class order"),
        ("order", lambda a: a[:3], "class order"),
        ("order", lambda a: a.astype(np.float64), "class order"),
        ("classes", lambda a: a[:3], "invalid"),
        ("classes", lambda a: a * 0, "classes_"),
        ("classes", lambda a: a[:1], "classes_"),
        ("classes", lambda a: np.arange(300), "classes_"),
        ("classes", lambda a: a.reshape(2, 2), "classes_"),
        ("classes", lambda a: a[:2], "class order"),
        ("weights_", flat(0, np.nan), "weights_"),
    ],
)
def test_hostile_classes_and_factors(class_trees, array, change, match, tmp_path):
    said, members = opened(class_trees, tmp_path)
    name = (fitted(said) | classes(said))[array]["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))
    refused(sealed(said, members), tmp_path, match)


def decided(said):
    return said["classifier"]["decided"]


def curves_of(said):
    return find(fitted(said), "ClassCurves")["state"]["curves"]["items"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda said: fitted(said).update(threshold_=0.0), "threshold_|refers"),
        (lambda said: classes(said).update(pos_label=1), "pos_label_"),
        (lambda said: decided(said).update(calibrator=0.5), "calibrator"),
        (
            lambda said: decided(said)["calibrator"]["state"]["curves"]["items"].pop(),
            "cal",
        ),
        (lambda said: decided(said)["tuning"]["state"].update(threshold=None), "tuning"),
        (lambda said: decided(said)["tuning"]["state"].update(honest_f1=[1.0]), "tuning"),
        (
            lambda said: find(fitted(said), "PoolVoters")["state"].update(voting="x"),
            "voting",
        ),
        (
            lambda said: find(fitted(said), "PoolVoters")["state"].update(voting="hard"),
            "calibrators",
        ),
    ],
)
def test_hostile_manifests_of_many_classes(class_pool, change, match, tmp_path):
    said, members = opened(class_pool, tmp_path)
    change(said)
    refused(sealed(said, members), tmp_path, match)


def test_curves_and_classes_of_voters(class_pool, tmp_path):
    said, members = opened(class_pool, tmp_path)
    state = find(fitted(said), "PoolVoters")["state"]
    name = state["classes"]["at"]
    for odd in (np.arange(3), np.arange(4)[::-1].copy(), np.arange(1, 5), np.zeros(4, int)):
        hostile = {**members, name: array_to_bytes(odd)}
        refused(sealed(said, hostile), tmp_path, "voters' classes")
    held = curves_of(said).pop()["state"]
    for array in held.values():
        members.pop(array["at"])
    refused(sealed(said, members), tmp_path, "calibrators")


@pytest.mark.parametrize(
    ("part", "name", "change", "match"),
    [
        ("training", "vote", lambda a: a[:, :3].copy(), "inconsistent"),
        ("training", "vote", lambda a: a[:, 0].copy(), "inconsistent"),
        ("training", "labels", lambda a: a + np.uint8(1), "labels out of range"),
        ("training", "labels", lambda a: a > 0, "unknown kind"),
        ("training", "labels", lambda a: a[:-1], "inconsistent"),
        ("training", "blocks", lambda a: a[:-1], "inconsistent"),
        ("training", "blocks", lambda a: a.astype(np.int64), "unknown kind"),
        ("training", "blocks", lambda a: a - np.int16(1), "invalid blocks"),
        ("training", "blocks", lambda a: 0 * a, "invalid blocks"),
    ],
)
def test_hostile_training_rows(class_whole, part, name, change, match, tmp_path):
    said, members = opened(class_whole, tmp_path)
    at = said[part][name]["at"]
    members[at] = array_to_bytes(change(array_from_bytes(members[at], at)))
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    "classes",
    [["a", "b", "c", "d"], {"is": "tuple", "items": ["a", "b", "c"]}]
    + [{"is": "tuple", "items": items} for items in (["a"], [1, 2, 3, 4], ["a"] * 4)],
    ids=str,
)
def test_hostile_labels(class_whole, classes, tmp_path):
    said, members = opened(class_whole, tmp_path)
    said["target"]["classes"] = classes
    refused(sealed(said, members), tmp_path, "target|fit each other|out of range")


def test_two_classes_of_one_name(whole, tmp_path):
    said, members = opened(whole, tmp_path)
    said["target"]["negative"] = said["target"]["positive"]
    refused(sealed(said, members), tmp_path, "the same name")


def test_hostile_json(trees, tmp_path):
    said, members = opened(trees, tmp_path)
    text = json.dumps(said)
    for hostile, match in [
        ("[" * 10**6, "content is invalid"),
        ('{"a":' * 10**5 + "1" + "}" * 10**5, "content is invalid"),
        ("", "has 0 bytes"),
        ("[]", "has no model"),
        ("\ud800", "content is invalid"),
        (text.replace('"fitted"', '"params": {}, "fitted"', 1), "duplicate keys"),
        (text.replace('"threshold_": 0.0', '"threshold_": NaN', 1), "NaN"),
        (text.replace('"threshold_": 0.0', '"threshold_": ' + "9" * 5000, 1), "invalid"),
        (text[:-1], "content is invalid"),
    ]:
        raw = hostile.encode("utf-8", "surrogatepass")
        refused(pack({MANIFEST: raw, **members}), tmp_path, match)
    big = pack({MANIFEST: b'"' + b"ab" * 2**25 + b'"', **members})
    refused(big, tmp_path, "bytes")


def zipped(tmp_path, content, change):
    """The file with its archive written anew by ``change(archive, members)``."""
    said, members = opened(content, tmp_path)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        change(archive, {MANIFEST: json.dumps(said).encode(), **members})
    digest = sha256(out.getvalue()).hexdigest()
    return f"damvi model 1\nsha256 {digest}\n".encode() + out.getvalue()


class Trap:
    """What a pickle would run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def trap(tmp_path):
    """A pickle that leaves a trace when it is loaded."""
    content = pickle.dumps(Trap(tmp_path / "sprung"))
    pickle.loads(content)
    assert (tmp_path / "sprung").exists()
    (tmp_path / "sprung").rmdir()
    yield content
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "name", ["model.pkl", "members/9.pkl", "../evil", "/etc/evil", "arrays/9.npy", "a\n"]
)
def test_a_pickle_as_a_member_is_refused(trees, trap, name, tmp_path):
    def change(archive, members):
        for one, content in {**members, name: trap}.items():
            archive.writestr(one, content)

    refused(zipped(tmp_path, trees, change), tmp_path)


def test_a_pickle_as_an_array_is_refused(trees, trap, tmp_path):
    said, members = opened(trees, tmp_path)
    name = fitted(said)["weights_"]["at"]
    out = io.BytesIO()
    np.save(out, np.array([Trap(tmp_path / "sprung")], dtype=object), allow_pickle=True)
    for hostile in (trap, out.getvalue(), members[name][:80] + trap):
        refused(sealed(said, {**members, name: hostile}), tmp_path, name)


SVC_NAME = "sklearn.svm._classes.SVC"


@pytest.fixture(scope="module")
def by_skops(tmp_path_factory):
    """A file with a member that is stored by skops, since its type is trusted."""
    model = DAMVIVotingClassifier([("svc", SVC())], cv=2, random_state=0).fit(X, Y)
    return content_of(
        model,
        tmp_path_factory,
        lambda model, path: save(model, path, trusted=[SVC_NAME]),
    )


def with_member(tmp_path, content, blob, kind=SVC_NAME):
    said, members = opened(content, tmp_path)
    stored = find(said, "skops")
    stored["type"] = kind
    return sealed(said, {**members, stored["at"]: blob})


def test_a_pickle_by_skops_is_refused(by_skops, trap, tmp_path):
    skops = pytest.importorskip("skops.io")
    trusted = {"trusted": [SVC_NAME]}
    refused(with_member(tmp_path, by_skops, trap), tmp_path, "skops cannot read", **trusted)
    voter = make_pipeline(FunctionTransformer(os.mkdir), GaussianNB())
    blob = with_member(tmp_path, by_skops, skops.dumps(voter))
    refused(blob, tmp_path, "posix.mkdir.*run code", **trusted)
    # What a member says of itself is not believed.
    blob = with_member(tmp_path, by_skops, skops.dumps(GaussianNB()))
    refused(blob, tmp_path, "GaussianNB, and loading these could run code", **trusted)
    shrunk = skops.dumps(SVC().fit(X, Y), compression=zipfile.ZIP_DEFLATED)
    refused(
        with_member(tmp_path, by_skops, shrunk),
        tmp_path,
        "expand beyond its size",
        **trusted,
    )


def test_skops_is_not_asked_about_types_that_nobody_trusts(by_skops, tmp_path, monkeypatch):
    """Its older releases ran code that a file named."""
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    refused(by_skops, tmp_path, "SVC, and loading these could run code")
    refused(
        by_skops, tmp_path, "could run code", trusted=["sklearn.naive_bayes.GaussianNB"]
    )


def test_a_skops_that_runs_code_is_refused(by_skops, tmp_path, monkeypatch):
    skops = pytest.importorskip("skops")
    path = tmp_path / "model.damvi"
    path.write_bytes(by_skops)
    model = load(path, trusted=[SVC_NAME])
    for old in ("0.11.0", "0.9", "0.12.dev0"):
        monkeypatch.setattr(skops, "__version__", old)
        match = f"skops {old} can run code.*skops>=0.13"
        with pytest.raises(ImportError, match=match):
            load(path, trusted=[SVC_NAME])
        with pytest.raises(ImportError, match=match):
            save(model, path, trusted=[SVC_NAME])


def test_bombs_and_doubles_are_refused(trees, tmp_path):
    def shrunk(archive, members):
        for name, content in members.items():
            archive.writestr(name, content + b" " * 10**7, zipfile.ZIP_DEFLATED)

    def doubled(archive, members):
        for name, content in members.items():
            archive.writestr(name, content)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(name, content)

    refused(zipped(tmp_path, trees, shrunk), tmp_path, "would unpack to")
    refused(zipped(tmp_path, trees, doubled), tmp_path, "twice")


def header(shape, dtype="<f8"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (118 - len(text) - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "hostile",
    [
        header((10**15,)),
        header((2**62, 4)) + bytes(64),
        header((-1,)) + bytes(8),
        header((-1, -1)) + bytes(8),
        header((1,), "|O") + bytes(8),
        header((1,), "|V8") + bytes(8),
        header((1,), "<U0"),
        header("__import__('os').mkdir('x')") + bytes(8),
        b"\x93NUMPY\x03\x00" + bytes(100),
        b"",
    ],
)
def test_absurd_arrays_are_refused_before_any_memory_is_asked_for(hostile):
    with pytest.raises(ModelFileError, match=r"a\.npy"):
        array_from_bytes(hostile, "a.npy")


def test_the_members_are_those_that_are_documented(class_trees, tmp_path):
    path = tmp_path / "model.damvi"
    path.write_bytes(class_trees)
    assert all(name == MANIFEST or name.startswith("arrays/") for name in unpack(path))


def test_other_formats_say_what_to_do(trees, tmp_path):
    refused(
        trees.replace(b"model 1", b"model 2", 1), tmp_path, "created by a newer damvi.*pip"
    )
    refused(trees.replace(b"model 1", b"model 0", 1), tmp_path, "fit the model again")
    refused(b"", tmp_path, "it is empty; copy it again")
    refused(pickle.dumps({"a": 1}), tmp_path, "not a damvi model file")
    refused(b"a,b\n1,2\n", tmp_path, "not a damvi model file")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.damvi")


def test_a_save_that_fails_leaves_the_old_file(trees, tmp_path, monkeypatch):
    path = tmp_path / "model.damvi"
    path.write_bytes(trees)
    model = load(path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("damvi._files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(model, path)
    assert path.read_bytes() == trees
    assert os.listdir(tmp_path) == ["model.damvi"]


def test_folders_and_processes_are_not_the_file_s_to_choose(tmp_path):
    """A cache of pickles that somebody else may write to would run code in a refit."""
    X, y = make_classification(200, weights=[0.8], random_state=0)
    pipe = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path / "c"))
    forest = RandomForestClassifier(5, n_jobs=64, random_state=0)
    pool = DAMVIVotingClassifier([("pipe", pipe), ("forest", forest)], cv=2).fit(X, y)
    save(pool, tmp_path / "m.damvi")
    model = load(tmp_path / "m.damvi")
    for one in (model.estimators[0][1], model.estimators_[0]):
        steps = [one, *(getattr(one, name, None) for name in ("estimator", "estimator_"))]
        assert all(getattr(step, "memory", None) is None for step in steps)
    assert model.estimators[1][1].n_jobs <= os.cpu_count()
    assert np.array_equal(model.predict_proba(X), pool.predict_proba(X))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_no_model_file(tmp_path):
    os.mkfifo(tmp_path / "m.damvi")
    with pytest.raises(ModelFileError, match="not a regular file"):
        load(tmp_path / "m.damvi")
