"""The project's papers, workflows and recipe agree with the Makefile and the sources."""

import importlib.util
import inspect
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import damvi

from .test_architecture import LAYERS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="not part of the package")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def script(name):
    """A script of the project as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def targets():
    """The Makefile's targets, with their commands."""
    found, name = {}, None
    for line in read("Makefile").splitlines():
        if target := re.match(r"([\w.%/-]+):(?!=)", line):
            name = target[1]
            found[name] = []
        elif line.startswith("\t") and name:
            found[name].append(line.strip())
    return found


@pytest.fixture(scope="module")
def jobs():
    """All jobs, by file and name."""
    return {
        f"{path.stem}: {name}": job
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
    }


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def is_target(name, targets):
    if name.startswith("bench-"):
        return (ROOT / "benchmarks" / f"{name.removeprefix('bench-')}.py").exists()
    return name in targets


def test_workflows_and_papers_name_targets_that_there_are(jobs, targets):
    run = [line for job in jobs.values() for line in commands(job)]
    named = {name for line in run for name in re.findall(r"\bmake ([\w-]+)", line)}
    benchmarks = jobs["weekly: benchmarks"]["strategy"]["matrix"]["name"]
    named = named - {"bench-"} | {f"bench-{name}" for name in benchmarks}
    assert len(named) > 10
    for paper in ("CONTRIBUTING.md", "SECURITY.md", ".github/pull_request_template.md"):
        named |= set(re.findall(r"`make ([\w-]+)", read(paper)))
    assert not [name for name in named if not is_target(name, targets)]


def test_make_alone_tells_of_targets_that_there_are(targets):
    told = set(re.findall(r'"make ([\w-]+)', " ".join(targets["help"])))
    kept = {name for name in targets if re.fullmatch(r"[\w-]+", name)}
    assert told - kept == {"bench-NAME"}


def test_windows_runs_what_make_would(jobs, targets):
    """It has no make, and another layout of environments."""
    *_, tests = commands(jobs["tests: windows"])
    assert [f".venv/bin/{tests}"] == targets["test-fast"]


def test_all_versions_of_python_are_tested(jobs, project):
    versions = [line.split()[-1] for line in project["classifiers"] if ":: 3." in line]
    for system in ("linux", "macos", "windows"):
        assert jobs[f"tests: {system}"]["strategy"]["matrix"]["python"] == versions


def test_jobs_end_and_have_no_more_rights_than_they_need(jobs):
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
        used = re.findall(r"uses: (.*)", text)
        pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
        assert all(pinned.fullmatch(one) for one in used), path
        assert text.count("persist-credentials: false") == text.count("actions/checkout")
    for name, job in jobs.items():
        assert 1 <= job["timeout-minutes"] <= 120, name
    rights = {
        name: job["permissions"] for name, job in jobs.items() if "permissions" in job
    }
    assert rights == {
        "release: publish": {"id-token": "write"},
        "release: announce": {"contents": "write"},
    }


def test_the_recipe_asks_for_what_the_package_asks_for(project):
    recipe = yaml.safe_load(read("recipe/recipe.yaml"))
    python, *others = recipe["requirements"]["run"]
    assert [line.replace(" ", "") for line in others] == project["dependencies"]
    least = recipe["context"]["python_min"]
    limits = python.removeprefix("python ").replace("${{ python_min }}", least)
    assert limits == project["requires-python"]
    built = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert [recipe["requirements"]["host"][-1].replace(" ", "")] == built
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry == f"damvi = {project['scripts']['damvi']}"
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]


def test_the_versions_agree():
    release = script("benchmarks/release.py")
    said = release.versions()
    newest = said.pop("CHANGELOG.md")
    assert set(said.values()) == {damvi.__version__}
    assert newest == damvi.__version__.partition(".dev")[0]


def test_a_tag_is_released_once_everything_speaks_of_it(tmp_path, monkeypatch):
    release = script("benchmarks/release.py")
    assert release.problems("v9.9.9")
    for place in release.PLACES:
        text = read(place).replace("0.1.0.dev0", "0.1.0")
        text = text.replace("## 0.1.0 - not released yet", "## 0.1.0 - 2026-12-01")
        text = text.replace(
            "\nversion: 0.1.0\n", "\nversion: 0.1.0\ndate-released: 2026-12-01\n"
        )
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text, encoding="utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    if damvi.__version__ == "0.1.0.dev0":
        assert release.problems("v0.1.0") == []
        assert len(release.problems("0.1.0")) == 1
        assert len(release.problems("v0.2.0")) == 4


def test_the_citation_has_what_its_schema_requires():
    """`make check-workflows` asks the schema itself."""
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset")
    cited = [citation, citation["preferred-citation"], *citation["references"]]
    for one in cited:
        assert {"title", "authors", "type"} <= set(one)
        for author in one["authors"]:
            assert "name" in author or {"family-names", "given-names"} <= set(author)
    assert citation["message"]
    assert citation["license"] == "BSD-3-Clause"


def test_the_picture_has_the_layers():
    rows = {}
    for y, name in re.findall(r'class="part"[^>]* y="([\d.]+)"[^>]*>(\w+)<', house()):
        rows.setdefault(float(y), []).append(name)
    drawn = [name for _, names in sorted(rows.items()) for name in names]
    wanted = [name for names in reversed(LAYERS) for name in names.split()]
    assert drawn == wanted, "make house draws the picture anew"


def house():
    return read("docs/images/house.svg")


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_imports(tmp_path):
    drawing = script("docs/house.py")
    pairs = set(drawing.imports())
    assert {("classifier", "voters"), ("cli", "model")} <= pairs
    drawing.main([str(tmp_path / "house.svg")])
    drawn = (tmp_path / "house.svg").read_text(encoding="utf-8")
    assert re.findall(r">(\w+)</text>", drawn) == re.findall(r">(\w+)</text>", house())


@pytest.mark.parametrize(
    "paper", ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CHANGELOG.md"]
)
def test_links_of_the_papers_lead_somewhere(paper):
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(paper)):
        assert "://" in link or (ROOT / link).exists(), link


def test_forms_for_issues_are_forms():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.stem != "config":
            assert {"name", "description", "body"} <= set(form)
            assert all(part["type"] in ("markdown", "textarea") for part in form["body"])


def test_fit_returns_what_it_is_called_on_to_a_type_checker():
    """And the decorator of scikit-learn, which has no types, does not hide it."""
    from damvi._compat import fit_context
    from damvi.voters import FastForestClassifier

    for name in ("DAMVIClassifier", "DAMVIVotingClassifier", "FastTreeClassifier"):
        assert getattr(damvi, name).fit.__annotations__["return"] == "Self"
    assert FastForestClassifier.fit.__annotations__["return"] == "Self"
    assert fit_context.__annotations__["return"] == "Callable[[F], F]"


@pytest.mark.parametrize(
    "estimator",
    [
        "DAMVIClassifier",
        "DAMVIVotingClassifier",
        "FastForestClassifier",
        "FastTreeClassifier",
    ],
)
def test_every_parameter_is_documented_once(estimator):
    from damvi import voters

    one = getattr(voters, estimator, None) or getattr(damvi, estimator)
    lines = inspect.cleandoc(one.__doc__).splitlines()
    named = [line.partition(" : ")[0] for line in lines if " : " in line]
    documented = [name for names in named for name in names.split(", ")]
    for parameter in one._get_param_names():
        assert documented.count(parameter) == 1, parameter
