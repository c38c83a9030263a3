"""The scripts in benchmarks/ are run by hand; what they import must exist all the same."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("script", sorted(BENCHMARKS.rglob("*.py")), ids=lambda s: s.name)
def test_names_that_a_script_imports_exist(script: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        if node.module.partition(".")[0] != "damvi":
            continue
        module = import_module(node.module)
        for name in node.names:
            found = hasattr(module, name.name) or find_spec(f"{node.module}.{name.name}")
            if not found:
                missing.append(f"{node.module}.{name.name}")
    assert not missing
