"""A fit that failed goes on from its finished voters, and ends in the same bits."""

import os
import signal
import subprocess
import sys
import time
import warnings

import dask.dataframe as dd
import numpy as np
import pytest

from damvi import DAMVIClassifier, FastTreeClassifier
from damvi.distributed import cluster, fit
from damvi.distributed.checkpoint import Checkpoint, missing

from .conftest import frame_of, same

N = 20


def fresh(**settings):
    return DAMVIClassifier(
        **{"n_estimators": N, "bootstrap": "poisson", "random_state": 0} | settings
    )


@pytest.fixture(scope="module")
def frame():
    return frame_of(300)


@pytest.fixture(scope="module")
def undisturbed(frame):
    return fresh().fit(frame.drop(columns="label"), frame["label"])


@pytest.fixture
def grown(monkeypatch):
    """The voters that are grown rather than read."""
    voters, keep = [], Checkpoint.keep

    def noted(self, lot, forest):
        voters.extend(lot)
        keep(self, lot, forest)

    monkeypatch.setattr(Checkpoint, "keep", noted)
    return voters


def interrupted(frame, client, folder, monkeypatch, after=2, parts=2, error=None):
    """A fit that ends when so many lots are done."""
    keep, done = Checkpoint.keep, []

    def end_early(self, lot, forest):
        keep(self, lot, forest)
        done.append(lot)
        if len(done) == after:
            raise error or KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "keep", end_early)
        with pytest.raises(type(error) if error else KeyboardInterrupt):
            fit(fresh(), cut(frame, parts), "label", client=client, cache=folder)
    return sorted(voter for lot in done for voter in lot)


def cut(frame, parts):
    return dd.from_pandas(frame, npartitions=parts)


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, OSError("gone"), RuntimeError("killed")])
def test_the_same_bits(here, frame, undisturbed, tmp_path, monkeypatch, grown, error):
    kept = interrupted(frame, here, tmp_path, monkeypatch, error=error)
    assert 0 < len(kept) < N
    grown.clear()
    # In other partitions, since that is what one does if memory was short.
    model = fit(fresh(), cut(frame, 5), "label", client=here, cache=tmp_path)
    assert sorted([*kept, *grown]) == list(range(N))
    same(model, undisturbed, frame.drop(columns="label"))


def test_another_number_of_threads(here, frame, undisturbed, tmp_path, monkeypatch, grown):
    monkeypatch.setattr(cluster.Cluster, "n_threads", 1)
    kept = interrupted(frame, here, tmp_path, monkeypatch, after=3)
    monkeypatch.setattr(cluster.Cluster, "n_threads", 2)
    grown.clear()
    model = fit(fresh(), cut(frame, 2), "label", client=here, cache=tmp_path)
    assert sorted([*kept, *grown]) == list(range(N))
    same(model, undisturbed, frame.drop(columns="label"))


def test_a_named_folder_serves_other_weights_and_more_voters(here, frame, tmp_path, grown):
    table = cut(frame, 2)
    fit(fresh(), table, "label", client=here, cache=tmp_path)
    assert len(grown) == N
    model = fit(fresh(n_estimators=N + 4), table, "label", client=here, cache=tmp_path)
    assert sorted(grown[N:]) == list(range(N, N + 4))  # by threads, in any order
    X = frame.drop(columns="label")
    same(model, fresh(n_estimators=N + 4).fit(X, frame["label"]), X)
    fit(fresh(threshold="f1", votes="oob"), table, "label", client=here, cache=tmp_path)
    assert len(grown) == N + 4


def changed_value(frame):
    frame.loc[17, "a"] += 10
    return frame


def two_rows_swapped(frame):
    return frame.iloc[[1, 0, *range(2, len(frame))]].reset_index(drop=True)


def another_label(frame):
    frame.loc[frame.index[frame["label"] == "rare"][0], "label"] = "common"
    return frame


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "settings", "weight"),
    [
        (changed_value, {}, None),
        (two_rows_swapped, {}, None),
        (another_label, {}, None),
        (None, {"random_state": 1}, None),
        (None, {"max_samples": 0.5}, None),
        (None, {"stratified": True}, None),
        (None, {"estimator": FastTreeClassifier(max_depth=3)}, None),
        (None, {}, "weight"),
    ],
)
def test_voters_of_another_fit_are_not_taken(
    here, frame, tmp_path, grown, change, settings, weight
):
    table = cut(frame, 2)
    fit(fresh(), table, "label", client=here, cache=tmp_path)
    if weight is not None:  # the same columns, so that weights alone are new
        table = table.assign(extra=table[weight])
    if change is not None:
        table = cut(change(frame.copy()), 2)
    grown.clear()
    fit(fresh(**settings), table, "label", weight and "extra", client=here, cache=tmp_path)
    assert sorted(grown) == list(range(N))


def test_damaged_files_are_passed_over(here, frame, undisturbed, tmp_path, grown):
    table = cut(frame, 2)
    fit(fresh(), table, "label", client=here, cache=tmp_path)
    (folder,) = tmp_path.iterdir()
    first, second, third, *_ = sorted(folder.iterdir())
    content = bytearray(first.read_bytes())
    content[-100] ^= 1
    first.write_bytes(content)
    third.write_bytes(second.read_bytes()[:-1])
    second.rename(folder / "0-1000.voters")
    (folder / "notes.txt").write_text("mine")
    (folder / "5-3.voters").write_bytes(b"")
    grown.clear()
    model = fit(fresh(), table, "label", client=here, cache=tmp_path)
    lots = [range(*map(int, file.stem.split("-"))) for file in (first, second, third)]
    assert sorted(grown) == sorted(voter for lot in lots for voter in lot)
    same(model, undisturbed, frame.drop(columns="label"))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_systems_folder_is_used_and_left_clean(
    here, frame, undisturbed, temporary, monkeypatch, grown
):
    kept = interrupted(frame, here, None, monkeypatch)
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    grown.clear()
    model = fit(fresh(), cut(frame, 2), "label", client=here)
    assert sorted([*kept, *grown]) == list(range(N))
    assert not list(temporary.iterdir())
    same(model, undisturbed, frame.drop(columns="label"))


def test_without_a_seed_nothing_is_kept(here, frame, tmp_path):
    fit(fresh(random_state=None), cut(frame, 2), "label", client=here, cache=tmp_path)
    assert not list(tmp_path.iterdir())


needs_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no such permissions")


@needs_users
@pytest.mark.parametrize("trap", ["link", "open to all", "file"])
def test_a_folder_that_others_can_write_to(
    here, frame, undisturbed, temporary, monkeypatch, trap
):
    interrupted(frame, here, None, monkeypatch)
    (folder,) = temporary.iterdir()
    elsewhere = folder.rename(temporary / "elsewhere")
    if trap == "link":
        folder.symlink_to(elsewhere)
    elif trap == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    before = sorted(elsewhere.iterdir())
    with pytest.warns(
        UserWarning, match="cannot save finished voters in .*choose another folder"
    ):
        model = fit(fresh(), cut(frame, 2), "label", client=here)
    assert sorted(elsewhere.iterdir()) == before
    assert os.path.lexists(folder)
    same(model, undisturbed, frame.drop(columns="label"))
    key = folder.name.rpartition("-")[2]
    folder.rename(temporary / f"damvi-voters-{key}")
    with pytest.raises(OSError, match="remove it"):  # a folder that was asked for
        Checkpoint(temporary, key)


def test_a_full_disk_does_not_end_the_fit(here, frame, undisturbed, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("damvi.distributed.checkpoint.write_whole", full)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = fit(fresh(), cut(frame, 2), "label", client=here, cache=tmp_path)
    assert [str(one.message) for one in told if "No space left" in str(one.message)]
    assert sum("cannot save" in str(one.message) for one in told) == 1
    same(model, undisturbed, frame.drop(columns="label"))


def test_what_is_missing():
    assert missing(5, []) == [range(5)]
    assert missing(5, [range(5)]) == []
    assert missing(9, [range(2), range(4, 5), range(5, 7)]) == [range(2, 4), range(7, 9)]


CLIENT = """
import sys, time
import dask.dataframe as dd
from distributed import Client
from damvi.distributed import fit
from damvi.distributed.checkpoint import Checkpoint
from tests.distributed.test_resume import cut, frame_of, fresh

keep, done = Checkpoint.keep, []
def and_wait(self, lot, forest):
    keep(self, lot, forest)
    done.append(lot)
    if len(done) == 2:
        print("two lots are done", flush=True)
        time.sleep(60)

Checkpoint.keep = and_wait
with Client(sys.argv[1]) as client:
    fit(fresh(), cut(frame_of(300), 3), "label", client=client, cache=sys.argv[2])
"""


@pytest.mark.slow
def test_a_client_that_is_killed(client, frame, undisturbed, tmp_path, grown):
    command = [sys.executable, "-c", CLIENT, client.scheduler.address, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lost:
        assert "done" in lost.stdout.readline()
        lost.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30  # the workers are free again
    while any(client.processing().values()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(client.processing().values())
    (folder,) = tmp_path.iterdir()
    kept = [range(*map(int, file.stem.split("-"))) for file in folder.iterdir()]
    assert len(kept) == 2
    model = fit(fresh(), cut(frame, 2), "label", client=client, cache=tmp_path)
    assert sorted([*np.concatenate(kept), *grown]) == list(range(N))
    same(model, undisturbed, frame.drop(columns="label"))
