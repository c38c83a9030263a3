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
    assert {name for name in LEVEL if not name.startswith("_")} <= named


def test_every_file_that_asks_for_two_classes_or_more_is_listed(sections):
    asking = {name: functions_that_ask(path) for name, path in FILES.items()}
    asking = {name: found for name, found in asking.items() if found}
    section = sections["Two classes and more"]
    listed = files_in_table(section)
    assert not not_in(asking, listed)
    assert not [one for one in listed if not any(fnmatch(name, one) for name in asking)]
    most = int(re.search(r"At most (\d+) functions", section)[1])
    assert sum(map(len, asking.values())) <= most


def test_every_long_file_has_its_reason(sections):
    long = {name for name, path in FILES.items() if len(lines(path)) > LONG}
    listed = files_in_table(sections["Written by hand"])
    assert not not_in(long, listed)
    assert not [one for one in listed if not any(fnmatch(name, one) for name in FILES)]


def not_in(names, patterns):
    return [name for name in names if not any(fnmatch(name, one) for one in patterns)]


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def functions_that_ask(path):
    """The functions, and classes, with code that depends on two classes or more."""
    found = set()

    def look(node, within):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            within = (*within, node.name)
        if asks(node):
            found.add(within)
        for child in ast.iter_child_nodes(node):
            look(child, within)

    look(ast.parse(path.read_text(encoding="utf-8")), ())
    return found


def asks(node):
    if isinstance(node, ast.Attribute):
        return node.attr in ("is_binary", "is_many", "many", "several")
    if isinstance(node, ast.If | ast.IfExp):
        names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
        # A target has a list of its classes if they are three or more.
        parts = {part.attr for part in _parts(node.test) if isinstance(part, ast.Attribute)}
        return bool(names & {"two", "many", "alone"} or parts & {"classes", "alone"})
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    numbers = {side.value for side in sides if isinstance(side, ast.Constant)}
    return any(_depends(ast.unparse(side), numbers) for side in sides)


def _parts(test):
    """What a condition asks the truth of, without its ands, ors and nots."""
    if isinstance(test, ast.UnaryOp):
        return _parts(test.operand)
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in _parts(value)]
    return [test]


def _depends(what, numbers):
    """Whether to compare this with one of these numbers is to ask for two or more."""
    if re.fullmatch(r"len\(.*reported\)", what):
        return bool(numbers & {1, 2})
    counted = re.fullmatch(r"len\([\w.\['\"]*(class|label|name)[\w'\"\]]*\)", what)
    if what.endswith("n_classes") or counted:
        return bool(numbers & {2, 3})
    named = re.search(r"vote|score|gain|chance|apart", what)
    shape = named and re.search(r"ndim$|shape\[1\]$", what)
    return bool(shape) and bool(numbers & {1, 2, 3})


def test_what_is_not_promised_of_other_machines_is_said():
    pages = ROOT / "docs"
    assert "3e-14" in (pages / "design.md").read_text(encoding="utf-8")
    for page in ("distributed.md", "large_tables.md"):
        assert "last bits" in (pages / page).read_text(encoding="utf-8")
    for estimator in (damvi.DAMVIClassifier, damvi.DAMVIVotingClassifier):
        assert "last bits" in estimator.__doc__
