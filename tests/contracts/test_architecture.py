"""Imports point one way, and the package imports nothing heavy until it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import damvi

ROOT = Path(damvi.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

# What each part may import of this package (itself always; the version is everyone's).
ALLOWED = {
    "_blas": set(),
    "_files": set(),
    "_jit": {"_compat"},
    "_leave_out": {"_jit"},
    "_threads": set(),
    "certificate": {"fingerprint"},
    "decision": {"_blas"},
    "fingerprint": set(),
    "folds": set(),
    "moments": {"_blas"},
    "risks": {"moments"},
    "diversity": {"moments", "risks"},
    "plots": {"diversity"},
    "reweighting": {"moments"},
    "solvers": {"_blas", "moments"},
    "voters": {"_blas", "_compat", "_jit", "_threads", "census", "folds", "reading"},
    "census": set(),
    "_class_vote": {"_jit"},
    "_unseen_vote": {"_jit"},
    "crossfit": {
        "_class_vote",
        "_leave_out",
        "_threads",
        "_unseen_vote",
        "moments",
        "solvers",
    },
    "reading": {"_compat"},
    "progress": set(),
    "datasets": {"tables"},
    "_compat": set(),
    "shrinkage": {"moments"},
    "unseen_moments": {"_blas", "moments"},
    "unlabelled": {
        "_blas",
        "_compat",
        "_threads",
        "moments",
        "reading",
        "solvers",
        "unseen_moments",
        "voters",
    },
    "ballots": {"crossfit", "moments", "reweighting", "unlabelled", "unseen_moments"},
    "class_ballots": {"ballots", "crossfit", "moments", "reweighting", "unseen_moments"},
    "teaching": {
        "_compat",
        "ballots",
        "crossfit",
        "electing",
        "folds",
        "progress",
        "unlabelled",
        "voters",
    },
    "enlisting": {
        "_compat",
        "ballots",
        "class_ballots",
        "fingerprint",
        "teaching",
        "unlabelled",
    },
    "weighing": {"ballots", "class_ballots", "crossfit", "moments", "shrinkage", "solvers"},
    "class_judging": {"class_ballots", "decision"},
    "choosing": {
        "ballots",
        "class_ballots",
        "class_judging",
        "decision",
        "weighing",
    },
    "pruning": {"choosing", "crossfit", "decision", "moments", "solvers", "weighing"},
    "contest": {
        "ballots",
        "census",
        "class_ballots",
        "decision",
        "reading",
        "weighing",
    },
    "electing": {
        "_compat",
        "ballots",
        "class_ballots",
        "contest",
        "crossfit",
        "decision",
        "folds",
        "progress",
        "reading",
        "voters",
    },
    "revising": {
        "ballots",
        "choosing",
        "class_ballots",
        "contest",
        "decision",
        "enlisting",
        "pruning",
        "weighing",
    },
    "blocks": {
        "_files",
        "_jit",
        "_threads",
        "census",
        "contest",
        "crossfit",
        "fingerprint",
        "folds",
        "progress",
        "voters",
    },
    "enrolling": {"blocks", "fingerprint", "revising", "voters"},
    "showing": set(),
    "classifier": {
        "_compat",
        "decision",
        "enrolling",
        "reading",
        "showing",
        "solvers",
        "unlabelled",
        "voters",
    },
    "streaming": {
        "_blas",
        "ballots",
        "classifier",
        "crossfit",
        "moments",
        "reading",
        "reweighting",
        "solvers",
        "unseen_moments",
        "weighing",
    },
    "distributed": {
        "blocks",
        "census",
        "classifier",
        "enrolling",
        "fingerprint",
        "progress",
        "voters",
    },
    "baselines": {"_compat", "classifier", "reading"},
    "bench": {"_files", "baselines", "classifier"},
    "tables": set(),
    "io": {
        "_compat",
        "_files",
        "classifier",
        "decision",
        "tables",
        "voters",
    },
    "evaluation": {"fingerprint", "io", "tables"},
    "explanation": {"evaluation", "io"},
    "report": {
        "_files",
        "certificate",
        "decision",
        "evaluation",
        "explanation",
        "io",
        "tables",
    },
    "modelling": {
        "_threads",
        "blocks",
        "classifier",
        "decision",
        "distributed",
        "evaluation",
        "fingerprint",
        "io",
        "progress",
        "tables",
        "teaching",
        "unlabelled",
        "voters",
    },
    "__main__": {"cli"},
    "cli": {
        "_files",
        "baselines",
        "bench",
        "blocks",
        "classifier",
        "datasets",
        "distributed",
        "evaluation",
        "explanation",
        "io",
        "modelling",
        "progress",
        "report",
        "risks",
        "tables",
    },
}


def module_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def part_of(path):
    return (*module_of(path), "__init__")[1]


def imported(path):
    """Every module that a file imports, anywhere in it, as tuples of names."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            if len(base) > 1 or base != ("damvi",):
                yield base
            else:
                yield from ((*base, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "-".join(module_of(path)))
def test_imports_point_one_way(path):
    part = part_of(path)
    if part == "__init__":
        return
    assert part in ALLOWED, f"say in ALLOWED what {part} may import"
    ours = {names[1] for names in imported(path) if names[0] == "damvi"}
    assert ours <= ALLOWED[part] | {part, "__version__"}


@pytest.mark.parametrize(
    "part", ["decision", "diversity", "moments", "risks", "reweighting", "solvers"]
)
def test_the_mathematics_knows_nothing_of_estimators(part):
    for path in SOURCES:
        if part_of(path) == part:
            sklearn = {names for names in imported(path) if names[0] == "sklearn"}
            assert sklearn <= {("sklearn", "exceptions")}, path


def test_private_names_of_other_libraries_are_touched_in_one_place():
    for path in SOURCES:
        if part_of(path) == "_compat":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                private = [n for n in names if n.startswith("_") and n != "__future__"]
                assert not private, (path, names)


@pytest.mark.parametrize(
    "code",
    [
        "import damvi",
        "import damvi; dir(damvi), damvi.__version__",
        "from damvi.cli import main; main(['--help'], standalone_mode=False)",
        "from damvi.cli import main; main(['demo', '--help'], standalone_mode=False)",
        "from damvi.cli import main; main(['datasets', '--help'], standalone_mode=False)",
        "from damvi.cli import main; main(['info', '--help'], standalone_mode=False)",
        "from damvi.cli import main; main(['export', '--help'], standalone_mode=False)",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code):
    heavy = ["sklearn", "scipy", "numpy", "pandas", "matplotlib"]
    check = f"import sys; print('loaded:', [m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT.parent)},
    )
    assert run.stdout.splitlines()[-1] == "loaded: []"


def test_the_public_names_resolve():
    for name in [*damvi.__all__, *damvi._MODULES]:
        assert name in dir(damvi)
        assert getattr(damvi, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        damvi.nonsense  # noqa: B018
