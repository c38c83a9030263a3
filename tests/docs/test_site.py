"""The site builds without a warning, which includes every link, and leaves no name out."""

import re
import subprocess
import sys
import zlib
from importlib import import_module

import pytest

import damvi

from .pages import PAGES, ROOT

pytestmark = pytest.mark.skipif(not PAGES, reason="the guide is not part of the package")

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("pydata_sphinx_theme")
    pytest.importorskip("sphinx_gallery")
    folder = tmp_path_factory.mktemp("site")
    strict = ["-q", "-W", "--keep-going", "-n", "-D", "plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", *strict, "docs", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder


def test_the_site_builds_without_warnings(site):
    assert (site / "index.html").is_file()


def test_the_commands_are_told_as_they_are_typed(site):
    page = (site / "commands.html").read_text(encoding="utf-8")
    assert "--cost-miss" in page
    assert "damvi datasets fetch" in page
    assert "\b" not in page


def test_every_public_name_is_in_the_reference(site):
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", 4)
    shown = {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}
    estimators = ("DAMVIClassifier", "DAMVIVotingClassifier", "FastTreeClassifier")
    expected = {f"damvi.{name}" for name in estimators}
    for part in sorted(damvi._MODULES):
        expected.add(f"damvi.{part}")
        names = getattr(import_module(f"damvi.{part}"), "__all__", [])
        expected |= {f"damvi.{part}.{name}" for name in names}
    elsewhere = {
        "damvi.outofcore.ParquetTable",
        "damvi.voters.FastTreeClassifier",
    }
    assert sorted(expected - elsewhere - shown) == []


def test_the_site_loads_nothing_from_elsewhere(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*\.(?:js|css)', page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link
