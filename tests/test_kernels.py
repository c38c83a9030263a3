"""Kernels: compiled when they are called, cached, and the same without a compiler."""

import ast
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

import damvi
from damvi._kernels import Kernel
from damvi.voters import sampling

TINY = """
import numpy as np
from damvi import DAMVIClassifier, FastTreeClassifier
rng = np.random.RandomState(0)
X = rng.randint(0, 5, (60, 3)).astype(float)
X[rng.rand(60, 3) < 0.1] = np.nan
y = (np.nan_to_num(X[:, 0]) + X[:, 1] > 5).astype(int)
few = {"max_features": 2, "min_samples_leaf": 2}
names = {"categorical_features": [0]}
for options in ({}, names, few, {"splitter": "random", **names}):
    tree = FastTreeClassifier(random_state=0, **options)
    model = DAMVIClassifier(tree, n_estimators=4, max_samples=0.8, random_state=0).fit(X, y)
    print(model.vote(X).tolist(), model.weights_.tolist())
    print(tree.fit(X, np.nan_to_num(X[:, 2]) % 3 + y).predict_proba(X[:20]).tolist())
"""


def run(warnings="error", **env):
    return subprocess.run(
        [sys.executable, "-W", warnings, "-c", TINY],
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
def test_plain_python_gives_the_same_answers_as_compiled_kernels():
    # Hashes of 64 bits wrap round, which numpy's scalars remark on.
    plain = run("ignore:overflow encountered in scalar", NUMBA_DISABLE_JIT="1")
    assert plain.stdout == run().stdout


@pytest.mark.slow
def test_the_first_fit_says_that_it_compiles_and_the_next_does_not(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert "compiling kernels" in run(**cache).stderr
    assert "compiling" not in run(**cache).stderr


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_written_is_no_failure(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = run(NUMBA_CACHE_DIR=str(blocked / "cache"))
    assert result.stdout == run().stdout


@pytest.mark.slow
def test_numba_waits_until_it_is_needed():
    code = (
        "import sys; from damvi import DAMVIClassifier, FastTreeClassifier;"
        "DAMVIClassifier(FastTreeClassifier()); import damvi.voters.trees.grow;"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_that_call_a_kernel_at_once_share_what_is_compiled():
    one, all_here = Kernel(sampling.draw_by_class.py_func), Barrier(8)

    def compiled(_):
        all_here.wait()
        return one.compiled

    with ThreadPoolExecutor(8) as pool:
        assert len({id(found) for found in pool.map(compiled, range(8))}) == 1


def test_a_kernel_is_pickled_by_its_name():
    kernel = sampling.draw_by_class
    times = np.empty(3, np.uint8)
    none = np.zeros(0, np.uint8)
    kernel(np.uint64(1), 0, none, np.zeros((1, 2), np.uint64), times)  # and so compiled
    content = pickle.dumps(kernel)
    assert len(content) < 100
    assert pickle.loads(content) is kernel


def decorators(function):
    return {one.id for one in function.decorator_list if isinstance(one, ast.Name)}


def test_kernels_take_nothing_from_files_without_kernels():
    # Or a change there would go unnoticed: cached kernels are stamped with a digest of the
    # files that have some.
    root, names, kernels = Path(damvi.__file__).parent, {}, []
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        found = [one for one in functions if decorators(one) & {"kernel", "inlined"}]
        if found:
            names[path.stem] = {one.name for one in functions}
            names[path.stem] |= {
                one.id
                for one in ast.walk(tree)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            }
            kernels.append((path, tree, found))
    assert len(kernels) >= 7
    for path, tree, found in kernels:
        imported = {
            alias.asname or alias.name: node.module
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.level
            for alias in node.names
        }
        used = {
            one.id
            for function in found
            for body in function.body
            for one in ast.walk(body)
            if isinstance(one, ast.Name)
        }
        for name in used & imported.keys():
            home = imported[name].rpartition(".")[2]
            assert name in names.get(home, ()), f"{path.name} takes {name} from {home}"
