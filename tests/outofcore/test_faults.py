"""What can go wrong with a table on disk, and what is said of it."""

import errno
import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet as pq

from damvi import DAMVIClassifier, FastTreeClassifier, ParquetTable
from damvi.outofcore import cache as caches
from damvi.outofcore import training
from damvi.outofcore.cache import BinCache

from .test_on_disk import frame_of, write


def fit(path, y="label", weight=None, **settings):
    model = DAMVIClassifier(n_estimators=4, random_state=0, **settings)
    return model.fit(path, y, sample_weight=weight)


def test_a_damaged_row_group_is_named_by_file_and_number(tmp_path):
    frame = frame_of()
    write(tmp_path, frame, sizes=(700, 800), group=200)
    path = tmp_path / "part-1.parquet"
    about = pq.read_metadata(path)
    column = about.row_group(2).column(0)
    damaged = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    damaged[start : start + column.total_compressed_size] = os.urandom(
        column.total_compressed_size
    )
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"cannot read .*part-1\.parquet, row group 2"):
        fit(tmp_path)


def test_what_is_no_parquet_is_named(tmp_path):
    (tmp_path / "a.parquet").write_text("id,label\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.parquet is not a parquet file"):
        fit(tmp_path)
    with pytest.raises(FileNotFoundError, match="no parquet files found"):
        fit(tmp_path / "nothing-*.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no parquet files found"):
        fit(tmp_path / "empty")


def test_files_must_be_alike(tmp_path):
    frame = frame_of()
    frame.to_parquet(tmp_path / "a.parquet")
    frame.rename(columns={"a": "other"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has a different schema"):
        fit(tmp_path)


@pytest.mark.parametrize(
    ("change", "settings", "said"),
    [
        ({}, {"y": "lable"}, "has no column 'lable'; its columns are a, b"),
        ({}, {"weight": "wait"}, "has no column 'wait'"),
        ({"when": pd.Timestamp("2025-01-01")}, {}, "column 'when' .* timestamp"),
        ({"a": np.inf}, {}, "column 'a' contains infinity"),
        ({"label": None}, {}, "rows have no label"),
        ({"label": "one"}, {}, "only one class"),
        ({"weight": -1.0}, {"weight": "weight"}, "finite and nonnegative"),
        ({"weight": 0.0}, {"weight": "weight"}, "all weights are zero"),
    ],
)
def test_wrong_tables_are_refused_with_the_culprit(tmp_path, change, settings, said):
    frame = frame_of(400).assign(**change)
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=said):
        fit(tmp_path / "t.parquet", **settings)


def test_a_class_without_weight_is_named(tmp_path):
    frame = frame_of(400)
    frame.loc[frame["label"] == "rare", "weight"] = 0.0
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="all rows of class 'rare' have zero weight"):
        fit(tmp_path / "t.parquet", weight="weight")


def test_texts_that_are_no_categories_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("damvi.outofcore.parquet.MOST_CATEGORIES", 20)
    frame = frame_of(400)
    frame["id"] = [f"customer {i}" for i in range(400)]
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'id' has more than 20 distinct strings"):
        fit(tmp_path / "t.parquet")


def test_settings_that_need_memory_are_refused(tmp_path):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    from sklearn.tree import DecisionTreeClassifier

    for settings, said in (
        ({"estimator": DecisionTreeClassifier()}, "needs all rows in memory"),
        ({"bootstrap": False}, "sampled with replacement"),
        ({"warm_start": True}, "warm_start needs all rows in memory"),
    ):
        with pytest.raises(ValueError, match=said):
            fit(path, **settings)
    with pytest.raises(TypeError, match="y must be the name of a column"):
        fit(path, y=np.zeros(400))
    with pytest.raises(TypeError, match="X_unlabeled cannot be used"):
        DAMVIClassifier().fit(path, "label", X_unlabeled=np.zeros((3, 6)))
    with pytest.raises(ValueError, match="max_features"):
        fit(path, estimator=FastTreeClassifier(max_features=-3))


def test_bins_are_removed_with_the_model_and_kept_where_a_folder_is_named(tmp_path):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    model = fit(ParquetTable(tmp_path / "t.parquet"))
    folder = model.votes_.blocks.cache.folder
    assert (folder / "codes").stat().st_size == 400 * 7
    del model
    assert not folder.exists()
    kept = tmp_path / "bins"
    first = fit(ParquetTable(tmp_path / "t.parquet", cache=kept))
    weights = first.weights_
    del first
    before = (kept / "codes").stat().st_mtime_ns
    again = fit(ParquetTable(tmp_path / "t.parquet", cache=kept))
    assert (kept / "codes").stat().st_mtime_ns == before
    assert np.array_equal(again.weights_, weights)


def test_two_fits_at_once_do_not_share_a_folder(tmp_path):
    one = BinCache(tmp_path / "bins", "a", (0, 10), 2)
    two = BinCache(tmp_path / "bins", "a", (0, 10), 2)
    assert one.folder != two.folder


def test_a_folder_that_is_named_serves_many_models(tmp_path):
    kept, path = tmp_path / "bins", tmp_path / "t.parquet"
    frame_of(400).to_parquet(path)
    table = ParquetTable(path, cache=kept)
    first = fit(table)
    second = fit(table, votes="oob")  # while the first lives
    assert second.votes_.blocks.cache.folder == kept
    assert not (tmp_path / "bins-1").exists()
    votes = second.oob_decision_function_
    del first
    other = fit(ParquetTable(path, columns=["a", "b"], cache=kept))
    assert other.votes_.blocks.cache.folder == tmp_path / "bins-1"
    assert np.array_equal(second.reweigh().oob_decision_function_, votes, equal_nan=True)
    del second
    fit(ParquetTable(path, columns=["a"], cache=kept))
    assert (kept / "codes").stat().st_size == 400


@pytest.mark.skipif(os.name != "posix", reason="it has no mode bits")
def test_temporary_bins_are_for_one_user_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(caches.tempfile, "gettempdir", lambda: str(tmp_path))
    one = BinCache(None, "a", (0, 10), 2)
    assert one.folder.stat().st_mode & 0o077 == 0
    one.removed_when_unused()
    two = BinCache(None, "a", (0, 10), 2)
    assert two.folder != one.folder
    folder = one.folder
    del one
    assert not folder.exists()
    assert BinCache(None, "a", (0, 10), 2).folder == folder


@pytest.mark.skipif(os.name != "posix", reason="it has no flock")
def test_a_lock_that_was_just_removed_is_no_lock(tmp_path, monkeypatch):
    import fcntl

    def late(*given):
        (tmp_path / "lock").unlink()

    monkeypatch.setattr(fcntl, "flock", late)
    assert caches._lock(tmp_path / "lock") is None
    assert caches._lock(tmp_path / "gone" / "lock") is None


def test_bins_of_other_data_are_thrown_away(tmp_path):
    kept, path = tmp_path / "bins", tmp_path / "t.parquet"
    frame = frame_of(400)
    frame.to_parquet(path)
    fit(ParquetTable(path, cache=kept))
    other = frame_of(400, seed=9)
    other.to_parquet(path)
    X = other.drop(columns="label")
    ours = fit(ParquetTable(path, cache=kept))
    model = fit(X, other["label"], bootstrap="poisson")
    assert np.array_equal(ours.predict(X), model.predict(X))
    assert np.array_equal(ours.weights_, model.weights_)


def test_rows_to_predict_are_no_path(tmp_path):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    model = fit(tmp_path / "t.parquet")
    for path in (tmp_path / "t.parquet", "t.parquet"):
        with pytest.raises(
            TypeError, match=r"X is the path '.*t\.parquet', but must be a table; read"
        ):
            model.predict(path)


def test_a_table_is_looked_at_again_for_each_fit(tmp_path):
    table = ParquetTable(tmp_path)
    frame_of(400).to_parquet(tmp_path / "a.parquet")
    fit(table)
    frame = frame_of(300, seed=9)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_parquet(tmp_path / "b.parquet")
    twice = pd.concat([frame, frame], ignore_index=True)
    model = fit(twice.drop(columns="label"), twice["label"], bootstrap="poisson")
    assert np.array_equal(fit(table).weights_, model.weights_)


@pytest.mark.parametrize("n_rows", [400, 250, 900])
@pytest.mark.parametrize("step", ["_read_targets", "_find_bins", "_write_codes"])
def test_files_that_change_between_passes_are_noticed(tmp_path, monkeypatch, step, n_rows):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    work = getattr(training, step)

    def change_first(*given):
        frame_of(n_rows, seed=1).to_parquet(tmp_path / "t.parquet")
        return work(*given)

    monkeypatch.setattr(training, step, change_first)
    with pytest.raises(ValueError, match=r"t\.parquet changed while it was read"):
        fit(tmp_path / "t.parquet")


def test_disks_without_locks(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", none)
    assert BinCache(tmp_path / "bins", "a", (0, 10), 2).folder == tmp_path / "bins"


@pytest.mark.parametrize("random_state", [None, 0])
def test_bins_that_no_fit_can_go_on_from_are_not_left_behind(
    tmp_path, monkeypatch, random_state
):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(caches.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_write_codes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        DAMVIClassifier(random_state=random_state).fit(tmp_path / "t.parquet", "label")
    gc.collect()
    left = [*(tmp_path / "temporary").iterdir()]
    assert len(left) == (random_state is not None)


def test_bins_of_files_that_must_be_mended_are_not_left_behind(tmp_path, monkeypatch):
    frame_of(400).assign(a=np.inf).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(caches.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    with pytest.raises(ValueError, match="infinity"):
        fit(tmp_path / "t.parquet")
    gc.collect()
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_full_disk_is_seen_beforehand(tmp_path, monkeypatch):
    frame_of(400).to_parquet(tmp_path / "t.parquet")
    usage = caches.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(caches.shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(OSError, match="use another folder"):
        fit(ParquetTable(tmp_path / "t.parquet", cache=tmp_path / "bins"))


KILLED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
from damvi import DAMVIClassifier, ParquetTable
from damvi.outofcore.cache import BinCache
finish, done = BinCache.finish, []
def finish_some(self, part):
    finish(self, part)
    done.append(part)
    if len(done) == 3:
        os.kill(os.getpid(), signal.{signal})
BinCache.finish = finish_some
model = DAMVIClassifier(n_estimators=4, random_state=0)
model.fit(ParquetTable(sys.argv[1], cache=sys.argv[2]), "label")
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGINT"])
def test_an_interrupted_fit_goes_on_from_its_bins(tmp_path, signal, monkeypatch):
    frame = frame_of()
    (tmp_path / "data").mkdir()
    write(tmp_path / "data", frame, sizes=(700, 800), group=200)
    code = textwrap.dedent(KILLED).replace("{signal}", signal)
    source = str(Path(caches.__file__).parents[2])
    ended = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "data", tmp_path / "bins"],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
    )
    assert ended.returncode != 0
    written = []
    finish = BinCache.finish
    monkeypatch.setattr(
        BinCache, "finish", lambda self, part: (written.append(part), finish(self, part))
    )
    ours = fit(ParquetTable(tmp_path / "data", cache=tmp_path / "bins"))
    assert sorted(written) == [3, 4, 5, 6, 7]
    model = fit(frame.drop(columns="label"), frame["label"], bootstrap="poisson")
    assert np.array_equal(ours.weights_, model.weights_)


def test_progress_is_shown_for_each_pass(tmp_path, capsys):
    frame_of(400, text=True).to_parquet(tmp_path / "t.parquet")
    fit(tmp_path / "t.parquet", verbose=1)
    shown = capsys.readouterr().err
    for what in ("labels", "categories", "bins", "Binning", "voters"):
        assert what in shown
