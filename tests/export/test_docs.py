"""The examples of docs/export.md run."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.mark.skipif(not PAGE.exists(), reason="a source package without its docs")
def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    assert (tmp_path / "model.onnx").stat().st_size > 0
