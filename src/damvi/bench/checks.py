"""Checks that the paper's text does not make, and that a reader of it will ask for."""

from __future__ import annotations

from .claims import UNTESTED, Claim, best_claim, verdict
from .layout import score
from .names import PAPER_METHODS, REFERENCE, SHORT, label, order_methods
from .paper import agrees, paper_entry
from .tables import Table


def our_checks(f1: Table, ap: Table) -> list[Claim]:
    """Does DAMVI score as it did in the paper, and who wins when others are let in?"""
    checks = [_reproduced(table, d) for table in (f1, ap) for d in table.datasets]
    others = order_methods(set(f1.methods) - set(PAPER_METHODS))
    if others:
        for table, losses in ((f1, 0), (ap, 1)):
            text = (
                f"DAMVI is best in {SHORT[table.metric]} on all datasets"
                f"{' but one' * losses}, with {', '.join(others)} let in."
            )
            checks.append(best_claim(table, losses, text, ours=True))
    return [check for check in checks if check]


def _reproduced(table: Table, dataset: str) -> Claim | None:
    ours, paper = table[REFERENCE, dataset], paper_entry(table.metric, REFERENCE, dataset)
    if paper is None or ours.status == "missing":
        return None
    text = f"{label(dataset)}: DAMVI's {SHORT[table.metric]} agrees with the paper's."
    within = agrees(ours, paper)
    figures = (
        f"Ours {score(ours.mean)}±{score(ours.std, 3)}, the paper's {score(paper.mean)}"
        f"±{score(paper.std, 3)}"
    )
    if within is None:
        return Claim(text, UNTESTED, f"{figures}.", ours=True)
    apart = abs((ours.mean or 0) - paper.mean)
    room = score((ours.std or 0) + paper.std)
    figures += f": {score(apart)} apart, where {room} is allowed."
    return Claim(text, verdict(within), figures, ours=True)
