"""A dataset fitted in blocks is the table fitted in memory, encoded by the same schema."""

import numpy as np
import pandas as pd
import pytest

from damvi import DAMVIClassifier
from damvi.hashing import row_hashes
from damvi.model import dataset, fit_dataset, metric_for, prepare, prepare_dataset
from damvi.outofcore import parquet
from damvi.tables import read_table


def table(n=900, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n).round(2)
    shop = rng.choice(["north", "south", "NA"], n)
    risk = np.log(amount) + (shop == "NA") + rng.normal(size=n) / 2
    cuts = np.quantile(risk, [0.85, 0.93][: n_classes - 1])
    label = np.searchsorted(cuts, risk).astype(float)
    label[rng.random(n) < 0.05] = np.nan
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="h")
    frame = pd.DataFrame(
        {
            "payment_id": np.arange(n),
            "amount": [f"{a:,.2f}" for a in amount],
            "when": when,
            "shop": pd.Series(shop).where(rng.random(n) > 0.03),
            "code": pd.Categorical(rng.choice(["01", "02", "3"], n)),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "odd": np.where(rng.random(n) < 0.01, np.inf, rng.normal(size=n)),
            "country": "FR",
            "kind": label,
        }
    )
    frame.index = frame.index + 7  # kept by pandas in a column of its own
    return frame


def write(folder, frame, sizes=(500, 1, 399), group=170):
    folder.mkdir(exist_ok=True)
    start = 0
    for number, size in enumerate(sizes):
        part = frame.iloc[start : start + size]
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=group)
        start += size
    assert start == len(frame)
    return folder


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_ROWS", 64)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_fit_in_memory(tmp_path, n_classes):
    frame = table(n_classes=n_classes)
    frame.to_parquet(tmp_path / "one.parquet")
    whole = prepare(read_table(tmp_path / "one.parquet"), "kind")
    parts, n_judged = prepare_dataset(write(tmp_path / "d", frame), "kind")
    assert n_judged == len(whole.y)
    assert parts.schema == whole.schema
    assert parts.target == whole.target
    assert np.array_equal(parts.y, whole.y)
    metric = metric_for(whole.target)
    model, comparison = fit_dataset(parts, metric, n_jobs=2)
    other = DAMVIClassifier(
        bootstrap="poisson",
        stratified=True,
        threshold=metric.threshold,
        pos_label=True if n_classes == 2 else None,
        random_state=0,
    ).fit(whole.X, whole.y)
    fitted = model.classifier
    assert np.array_equal(fitted.weights_, other.weights_)
    assert np.array_equal(fitted.threshold_, other.threshold_)
    assert np.array_equal(fitted.vote(whole.X), other.vote(whole.X))
    assert fitted.classes_.dtype == other.classes_.dtype
    assert np.array_equal(fitted.classes_, other.classes_)
    vote = other.decision_.out_of_sample_vote
    assert np.array_equal(model.training.vote, vote, equal_nan=True)
    assert np.array_equal(model.training.hashes, row_hashes(whole.X, whole.y))
    assert np.array_equal(model.training.labels, whole.y)
    assert model.scores["rows"] == len(whole.y)
    assert [*comparison.figures] == ["DAMVI"]
    assert "need all rows in memory" in comparison.verdicts[0]
    voters = model.scores["voters"]
    assert voters["of_fit"]
    assert voters["rows"] == len(whole.y)


@pytest.mark.slow
def test_votes_on_chosen_rows_are_those_in_memory(tmp_path):
    from damvi.decision import crossfit_thresholds
    from damvi.evaluation import voters_of_fit

    frame = table().dropna(subset="kind")
    write(tmp_path / "d", frame, sizes=(len(frame),))
    parts, _ = prepare_dataset(tmp_path / "d", "kind")
    model, _ = fit_dataset(parts, metric_for(parts.target))
    whole = prepare(frame.reset_index(drop=True), "kind")
    other = DAMVIClassifier(
        bootstrap="poisson",
        stratified=True,
        threshold="f1",
        pos_label=True,
        random_state=0,
    ).fit(whole.X, whole.y)
    decision, weighting = other.decision_, other.decision_.weighting
    cuts = crossfit_thresholds(
        decision.out_of_sample_vote,
        weighting.votes.targets,
        "f1",
        weighting.folds,
        order=decision.order,
        smooth=True,
    )
    assert model.scores["voters"] == voters_of_fit(other, cuts)


def test_columns_are_judged_by_rows_of_all_classes(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(dataset, "MOST_GROUPS", 2)
    monkeypatch.setattr(dataset, "ENOUGH_OF_A_CLASS", 2)
    frame = table()
    frame["kind"] = 0
    frame.iloc[[300, 650], frame.columns.get_loc("kind")] = 1
    frame["flag"] = frame["kind"] * 3.0
    frame.iloc[2, frame.columns.get_loc("flag")] = 3.0  # else it equals the target
    write(tmp_path / "d", frame)
    seen = []
    judge_columns = dataset.judge_columns

    def look(sample, target, y, *args, **kwargs):
        seen.append((sample, y))
        return judge_columns(sample, target, y, *args, **kwargs)

    monkeypatch.setattr(dataset, "judge_columns", look)
    for _ in range(2):
        parts, n_judged = prepare_dataset(tmp_path / "d", "kind")
    assert n_judged == 60
    (sample, y), (again, _) = seen
    pd.testing.assert_frame_equal(sample, again)
    assert sample["kind"].sum() == y.sum() == 2
    assert sample["payment_id"].is_monotonic_increasing
    assert np.array_equal(sample["kind"], frame["kind"].iloc[sample["payment_id"]])
    kinds = {column.name: column.kind for column in parts.schema.columns}
    assert kinds["payment_id"] == "dropped"
    other, _ = prepare_dataset(tmp_path / "d", "kind", seed=1)
    assert not seen[-1][0]["payment_id"].equals(sample["payment_id"])
    assert len(other.y) == len(frame)


def test_a_column_that_is_rarely_another_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "SAMPLE_ROWS", 20)
    frame = table().assign(flag=0, word="usual", gap=1.0)
    prepared, _ = prepare_dataset(write(tmp_path / "same", frame), "kind")
    kinds = {column.name: column.kind for column in prepared.schema.columns}
    assert {kinds[name] for name in ("flag", "word", "gap", "country")} == {"dropped"}
    row = np.flatnonzero(frame["kind"].isna())[0]  # never in the sample
    frame.iloc[row, frame.columns.get_loc("flag")] = 1
    frame.iloc[row, frame.columns.get_loc("word")] = "other"
    frame.iloc[row, frame.columns.get_loc("gap")] = np.nan
    parts, _ = prepare_dataset(write(tmp_path / "d", frame), "kind", drop=["gap"])
    kinds = {column.name: column.kind for column in parts.schema.columns}
    assert kinds["flag"] == "number"
    assert kinds["word"] == "category"
    assert kinds["gap"] == kinds["country"] == "dropped"
    parts, _ = prepare_dataset(tmp_path / "d", "kind")
    assert "gap" in parts.schema.features


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.assign(kind=np.nan), "missing in every row"),
        (lambda f: f.assign(kind=1), "only one class"),
        (lambda f: f.assign(kind=f["when"]), "has type timestamp"),
        (lambda f: f.drop(columns="kind"), "no target column 'kind'"),
        (lambda f: f[["country", "kind"]], "no columns are left to train on"),
    ],
)
def test_what_cannot_be_fitted(tmp_path, change, words):
    write(tmp_path / "d", change(table()))
    with pytest.raises(ValueError, match=words):
        prepare_dataset(tmp_path / "d", "kind")


def test_too_many_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MOST_LABELS", 500)
    write(tmp_path / "d", table())
    with pytest.raises(ValueError, match="more than 500 different values"):
        prepare_dataset(tmp_path / "d", "amount")


def test_a_feature_may_be_called_as_the_target(tmp_path):
    frame = table().rename(columns={"kind": "when (weekday)"})
    parts, _ = prepare_dataset(write(tmp_path / "d", frame), "when (weekday)")
    assert "when (weekday)" in parts.schema.features
    assert parts.X.encoder.label not in parts.schema.features
    model, _ = fit_dataset(parts, metric_for(parts.target))
    assert model.classifier.n_features_in_ == len(parts.schema.features)


def test_what_only_folders_tell_is_told(tmp_path):
    frame = table()
    for year in (2024, 2025):
        write(tmp_path / f"year={year}", frame)
    prepared, _ = prepare_dataset(tmp_path, "kind")
    assert any("not used (year)" in said for said in prepared.warnings)
    one, _ = prepare_dataset(tmp_path / "year=2024", "kind")
    assert not any("folder names" in said for said in one.warnings)
