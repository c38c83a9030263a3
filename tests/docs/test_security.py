"""SECURITY.md: its example runs, and a signature is what a digest is not."""

import os
import shutil
import subprocess
import sys

import pytest
from sklearn.datasets import make_classification

from damvi import DAMVIClassifier, load, save

from .pages import PAGES, ROOT, blocks

pytestmark = pytest.mark.skipif(not PAGES, reason="the guide is not part of the package")


@pytest.mark.slow
def test_a_forged_file_has_a_digest_that_fits_and_a_signature_that_does_not(tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no OpenSSH here")
    X, y = make_classification(200, random_state=0)
    path = tmp_path / "model.damvi"
    save(DAMVIClassifier(n_estimators=2, random_state=0).fit(X, y), path)
    (tmp_path / "damvi").write_text(f'#!/bin/sh\nexec {sys.executable} -m damvi "$@"\n')
    (tmp_path / "damvi").chmod(0o755)
    (block,) = blocks((ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert block.language == "bash"
    paths = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    run = [block.code, {**os.environ, "PATH": paths}]
    said = _run(*run, tmp_path)
    assert 'Good "damvi-model" signature for models@example.org' in said
    assert "scikit-learn" in said
    save(DAMVIClassifier(n_estimators=3, random_state=1).fit(X, y), path)
    load(path)
    verify = block.code.partition("install -m")[1] + block.code.partition("install -m")[2]
    with pytest.raises(subprocess.CalledProcessError):
        _run(verify, run[1], tmp_path)


def _run(code, environment, folder):
    return subprocess.run(
        ["bash", "-e", "-c", code],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
