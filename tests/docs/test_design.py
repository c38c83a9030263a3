"""What docs/design.md lists is what there is: modules, branches, and long files."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import damvi

from .pages import ROOT

SOURCE = Path(damvi.__file__).parent
FILES = {str(path.relative_to(SOURCE).as_posix()): path for path in SOURCE.rglob("*.py")}
LONG = 300

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "design.md").exists(),
    reason="the guide is not part of the package",
)


@pytest.fixture(scope="module")
def sections():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    titles = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(titles[1::2], titles[2::2], strict=True))


def files_in_table(section):
    """The files in the first column of a table; ``folder/*.py`` is some of a folder."""
    cells = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w/*]+\.py)`", cell)}


def test_the_house_has_all_modules_and_no_others(sections):
    listed = set(
        re.findall(r"\b(\w+\.py|\w+/)(?![\w/])", sections["The house"].partition("###")[0])
    )
    # A folder with nothing but caches is what a package that is gone leaves behind.
    packages = {path.name + "/" for path in SOURCE.iterdir() if [*path.glob("*.py")]}
    wanted = packages | {path.name for path in SOURCE.glob("*.py")}
    assert wanted - listed <= {"__init__.py", "__main__.py"}
    there = {path.name for path in FILES.values()}
    assert {name for name in listed if name.endswith(".py")} <= there


def test_the_layers_are_those_of_the_architecture_test(sections):
    from ..contracts.test_architecture import LEVEL

    table = sections["The house"].partition("### Layers")[2]
    named = set(re.findall(r"`(\w+)`", table))
    assert {name for name in LEVEL if not name.startswith("_")} - named <= {
        "crossfit_kernels"
    }


def test_every_file_that_asks_for_two_classes_or_more_is_listed(sections):
    asking = {name for name, path in FILES.items() if asks(ast.parse(path.read_text()))}
    listed = files_in_table(sections["Two classes and more"])
    assert not not_in(asking, listed)
    assert not [one for one in listed if not any(fnmatch(name, one) for name in asking)]


def test_every_long_file_has_its_reason(sections):
    long = {name for name, path in FILES.items() if len(lines(path)) > LONG}
    listed = files_in_table(sections["Written by hand"])
    assert not not_in(long, listed)
    assert not [one for one in listed if not any(fnmatch(name, one) for name in FILES)]


def not_in(names, patterns):
    return [name for name in names if not any(fnmatch(name, one) for one in patterns)]


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def asks(tree):
    """Whether code anywhere in a file depends on two classes or more."""
    return any(map(_asks, ast.walk(tree)))


def _asks(node):
    if isinstance(node, ast.Attribute):
        return node.attr in ("is_binary", "is_many")
    if isinstance(node, ast.If | ast.IfExp):
        names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
        return bool(names & {"two", "many"})
    if not isinstance(node, ast.Compare) or not isinstance(
        node.comparators[0], ast.Constant
    ):
        return False
    what, number = ast.unparse(node.left), node.comparators[0].value
    counts = what.endswith("n_classes") or (what.startswith("len(") and "class" in what)
    shape = what.endswith("ndim") and re.search(r"vote|score|gain|chance|apart", what)
    return (counts and number in (2, 3)) or (bool(shape) and number in (1, 2, 3))
