"""What differs between the page of two classes and that of many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import class_words, words
from .class_page import class_basis, fill_classes
from .two_page import fill_two


@dataclass(frozen=True)
class View:
    """A page: its files, and what its template needs beside the summary.

    Attributes
    ----------
    template : str
    styles, scripts : tuple of str
        Files that are put together, in this order.
    fill : callable
        From the summary to the values of the template.
    lead : callable
        From the summary to what a manager wants to know, in two sentences.
    basis : callable
        From the summary to which rows this is about.
    """

    template: str
    styles: tuple[str, ...]
    scripts: tuple[str, ...]
    fill: Callable[[dict[str, Any]], dict[str, Any]]
    lead: Callable[[dict[str, Any]], str]
    basis: Callable[[dict[str, Any]], dict[str, str]]


TWO = View(
    "page.html.j2",
    ("page.css",),
    ("shared.js", "cuts.js"),
    fill_two,
    words.lead,
    words.basis,
)
MANY = View(
    "classes.html.j2",
    ("page.css", "classes.css"),
    ("shared.js", "classes.js"),
    fill_classes,
    class_words.lead,
    class_basis,
)


def view_of(said: dict[str, Any]) -> View:
    """The page that a summary is for."""
    return MANY if "classes" in said else TWO
