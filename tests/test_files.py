"""Whole files: the old one or the new one, never a half."""

import json

import pytest

from damvi import _files as module
from damvi._files import write_whole


def test_whole_files_replace_and_leave_no_parts(tmp_path, monkeypatch):
    write_whole(tmp_path / "x.json", json.dumps([1]))
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_whole(tmp_path / "x.json", "half")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "[1]"
