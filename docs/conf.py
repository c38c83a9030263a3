"""The site of the guide and the reference; `make docs` builds it, without a network."""

import re
import sys
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
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "command_reference",  # beside this file
]
exclude_patterns = ["_build"]
smartquotes = False  # they would join the two dashes of an option
html_theme = "furo"
html_title = "damvi"
html_copy_source = False

myst_heading_anchors = 3

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


def _skip_inherited(app, what, name, obj, skip, options):
    """What scikit-learn puts into every estimator is told in its own pages."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.startswith("sklearn.") else None


def setup(app):
    app.connect("autodoc-process-docstring", _own_footnotes, priority=400)
    app.connect("autodoc-skip-member", _skip_inherited)
