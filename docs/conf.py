"""The site of the guide and the reference; `make docs` builds it, without a network."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path

import damvi

sys.path.insert(0, str(Path(__file__).parent))

project = "damvi"
author = "The damvi developers"
copyright = author
release = version = damvi.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_reference",  # beside this file
]
exclude_patterns = ["_build"]
smartquotes = False  # they would join the two dashes of an option
html_theme = "pydata_sphinx_theme"
html_title = "damvi"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_theme_options = {
    "logo": {"text": "damvi"},
    "navbar_align": "left",
    "navbar_start": ["navbar-logo", "version-switcher"],
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # Examples have long lines, and few headings.
    "secondary_sidebar_items": {"*": ["page-toc"], "api/*": ["page-toc"], "gallery/*": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    # One folder for each version beside this file, at the root of the site; where it is
    # served from a folder, DAMVI_VERSIONS says where the file is.
    "switcher": {
        "json_url": os.environ.get("DAMVI_VERSIONS", "/versions.json"),
        "version_match": version,
    },
    "check_switcher": False,
}
html_sidebars = {"index": [], "faq": [], "glossary": []}
copybutton_exclude = ".linenos, .gp, .go"

autosummary_generate = False
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Examples run when they have changed, and their pictures are kept; -D plot_gallery=0 leaves
# them unrun. Each is a script with a title, and an example of damvi's names.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"/(?!plot_)\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("damvi",),
    "reference_url": {"damvi": None},
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "nested_sections": False,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "min_reported_time": 1,
    "write_computation_times": False,
    "copyfile_regex": "",
}
suppress_warnings = ["config.cache"]

# The docstrings are numpydoc's and give the types in words.
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

# Every name of this package must resolve. Words in the place of a type ("array of shape
# (n,)") and other libraries, which only a network would know, are left alone.
nitpick_ignore_regex = [
    ("py:class", r"(?!damvi\.).*"),
    ("py:.*", r"(sklearn|numpy|pandas|matplotlib|onnx|click)\..*"),
]


def _own_footnotes(app, what, name, obj, options, lines):
    """Several docstrings share a page, and each numbers its references from 1."""
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"\[(\d+)\](_|$| )", rf"[#{name}-\1]\2", line)


def _single_attributes(app, what, name, obj, options, lines):
    """Before napoleon: `a_, b_ : float` is two attributes, the last with what is said."""
    for i in reversed(range(len(lines))):
        found = re.fullmatch(r"((?:\w+_, )+)(\w+_)( : .*)?", lines[i])
        if found:
            kind = found[3] or ""
            lines[i : i + 1] = [f"{n}{kind}" for n in (found[1] + found[2]).split(", ")]


def _literal_attributes(app, what, name, obj, options, lines):
    """After napoleon: `weights_` is a name and no reference."""
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"^(:(?:ivar|vartype) \w+)_:", r"\1\\_:", line)


def _skip_inherited(app, what, name, obj, skip, options):
    """What scikit-learn puts into every estimator is told in its own pages."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.startswith("sklearn.") else None


def _summarise(app, name, source):
    """Before what a module holds, a table of its public names, in a line each."""
    if not name.startswith("api/"):
        return

    def with_table(found):
        module, left_out = found[1], (found[2] or "").replace(",", " ").split()
        home = import_module(module)
        names = [
            name
            for name in getattr(home, "__all__", ())
            if callable(getattr(home, name)) and name not in left_out
        ]
        if len(names) < 2:
            return found[0]
        listed = "".join(f"   {one}\n" for one in names)
        where = f".. currentmodule:: {module}\n\n"
        return f"{where}.. autosummary::\n   :nosignatures:\n\n{listed}\n{found[0]}"

    automodule = r"\.\. automodule:: (\S+)\n(?:   :exclude-members: (.*)\n)?"
    source[0] = re.sub(automodule, with_table, source[0])


PAPERS = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}


def _read_papers(app, name, source):
    """The project's papers lie beside `docs`, and link to each other and into it."""
    found = re.fullmatch(r"```{include} \.\./(\w+\.md)\n```\n", source[0])
    if found:
        text = (Path(__file__).parents[1] / found[1]).read_text(encoding="utf-8")
        for paper, page in PAPERS.items():
            text = text.replace(f"]({paper})", f"]({page})")
        source[0] = text.replace("](docs/", "](")


def setup(app):
    app.connect("source-read", _read_papers)
    app.connect("source-read", _summarise)
    app.connect("autodoc-process-docstring", _own_footnotes, priority=400)
    app.connect("autodoc-process-docstring", _single_attributes, priority=400)
    app.connect("autodoc-process-docstring", _literal_attributes, priority=600)
    app.connect("autodoc-skip-member", _skip_inherited)
