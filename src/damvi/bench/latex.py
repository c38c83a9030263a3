"""Grids as LaTeX that needs no package."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from .layout import Box, Grid, one_line

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "≠": r"$\neq$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "…": "...",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}
_ACCENTS = dict(zip("\u0300\u0301\u0302\u0303\u0308\u0327", "`'^~\"c", strict=True))


def latex_escape(text: str) -> str:
    """Any text as LaTeX of no package; what it cannot set becomes a question mark.

    >>> print(latex_escape("a_b & 5 % é"))
    a\\_b \\& 5 \\% \\'{e}
    """
    return "".join(map(_latex_character, one_line(text)))


def _latex_character(c: str) -> str:
    if c in _LATEX:
        return _LATEX[c]
    if c.isascii():
        return c
    base, *accents = list(unicodedata.normalize("NFKD", c))
    if base.isascii() and base.isalpha() and len(accents) == 1 and accents[0] in _ACCENTS:
        return f"\\{_ACCENTS[accents[0]]}{{{base}}}"
    return "?"


def to_latex(grid: Grid) -> str:
    """A ``table`` with a plain ``tabular``: no package is needed."""

    def shown(box: Box) -> str:
        text = latex_escape(box.text)
        text = f"\\textbf{{{text}}}" if box.bold else text
        text = f"\\textit{{{text}}}" if box.italic else text
        marks = r"$\,\downarrow$" * box.down + r"$\,\neq$" * box.apart
        note = f"$^{{{box.note}}}$" if box.note else ""
        return text + latex_escape(box.tail) + marks + note

    columns = "l" * grid.stub + "|" + "c" * (len(grid.head) - grid.stub)
    lines = [
        r"\begin{table}[p]",
        f"\\caption{{{latex_escape(grid.caption)}}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}\renewcommand{\arraystretch}{1.15}",
        f"\\begin{{tabular}}{{{columns}}}",
        r"\hline",
        " & ".join(map(latex_escape, grid.head)) + r" \\ \hline",
    ]
    for number, row in enumerate(grid.rows):
        rule = r"\hline " if number in grid.rules else ""
        # Braces keep a first place that starts with [ from being read as \\'s option.
        lines.append(rule + "{}" + " & ".join(map(shown, row)) + r" \\")
    lines += [r"\hline", r"\end{tabular}"]
    for number, note in enumerate(grid.notes, 1):
        lines += ["", f"$^{{{number}}}$ {latex_escape(note)}"]
    return "\n".join([*lines, r"\end{table}", ""])


def latex_document(tables: Iterable[str]) -> str:
    """A whole document around tables, wide enough for six datasets."""
    return "\n".join(
        [
            r"\documentclass[a4paper]{article}",
            r"\setlength{\textwidth}{18cm}\setlength{\oddsidemargin}{-1cm}",
            r"\setlength{\textheight}{25cm}\setlength{\topmargin}{-2cm}",
            r"\begin{document}",
            *tables,
            r"\end{document}",
            "",
        ]
    )
