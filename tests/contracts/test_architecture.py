"""Layers hold, private names stay private, and nothing heavy is imported before its use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import damvi

ROOT = Path(damvi.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

# From the ground up: a module imports its own layer and those below, never one above.
LAYERS = [
    "_compat _files _kernels hashing messages",
    "labels validation folds votes moments risks solvers "
    "weighting selection unlabeled decision",
    "voters",
    "outofcore",
    "classifier voting",
    "distributed streaming certificate diversity plots",
    "tables io datasets",
    "evaluation explanation report drift history review",
    "model benchmark contenders",
    "cli __main__",
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}

# What other libraries offer under a leading underscore, and call public.
OFFERED = {"_asdict", "_exit", "_fields", "_replace"}
# scikit-learn's for estimators, and Dask's for what a lazy frame will hold.
OFFERED |= {"_validate_params", "_meta"}


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def part_of(path):
    return (*module_of(path), "__init__")[1]


def imported(path):
    """Every module that a file imports, anywhere in it, as tuples of names."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]
    for node in ast.walk(tree_of(path)):
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
def test_a_module_imports_its_own_layer_and_those_below(path):
    part = part_of(path)
    if part == "__init__":
        return
    assert part in LEVEL, f"say in LAYERS where {part} belongs"
    ours = {names[1] for names in imported(path) if names[0] == "damvi"}
    above = {name for name in ours - {"__version__"} if LEVEL[name] > LEVEL[part]}
    assert not above


def test_the_layers_name_no_module_that_is_gone():
    there = {part_of(path) for path in SOURCES}
    assert set(LEVEL) <= there


@pytest.mark.parametrize(
    "part", ["decision", "diversity", "moments", "risks", "solvers", "weighting"]
)
def test_the_mathematics_knows_nothing_of_estimators(part):
    for path in SOURCES:
        if part_of(path) == part:
            sklearn = {names for names in imported(path) if names[0] == "sklearn"}
            assert sklearn <= {("sklearn", "exceptions"), ("sklearn", "isotonic")}, path


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def own_names(tree):
    """The private names that a file defines: functions, classes, attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "-".join(module_of(path)))
def test_no_file_uses_private_names_of_another(path):
    if part_of(path) == "_compat":  # the only place that touches those of other libraries
        return
    tree = tree_of(path)
    own = {*own_names(tree), *OFFERED}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            on_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inherited = on_self or isinstance(node.value, ast.Call)  # super()
            assert inherited or node.attr in own, (node.lineno, node.attr)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if not node.level:
                names += node.module.split(".")
            assert not [name for name in names if is_private(name) and name not in LEVEL], (
                node.lineno,
                names,
            )


def test_no_file_is_named_after_a_number_of_classes():
    odd = ["class_", "classes", "binary", "multiclass", "many", "two_"]
    names = [path.stem for path in SOURCES]
    assert not [name for name in names if any(name.startswith(word) for word in odd)]


def test_the_estimators_have_no_parents_of_ours():
    from damvi import DAMVIClassifier, DAMVIVotingClassifier, FastTreeClassifier

    for estimator in (DAMVIClassifier, DAMVIVotingClassifier, FastTreeClassifier):
        ours = [kind for kind in estimator.__mro__ if kind.__module__.startswith("damvi")]
        assert ours == [estimator]


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
    for name in damvi.__all__:
        assert name in dir(damvi)
        assert getattr(damvi, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        damvi.nonsense  # noqa: B018
