"""The public homes of the data, and what is pinned of each file there.

The Scania archive and the Kaggle file are pinned by their SHA-256. For the other two
archives we found no published checksum, so what they hold is pinned instead: ``catalogue``
has the digest of each table we have seen, and the size of every other one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Download:
    """One file to fetch, or to place by hand where ``by_hand`` says how to get it."""

    url: str
    file: str
    sha256: str = ""
    by_hand: str = ""


DOWNLOADS = {
    "collection": Download(
        "https://zenodo.org/record/61452/files/benchmark-imbalanced-learn.tar.gz",
        "benchmark-imbalanced-learn.tar.gz",
    ),
    "scania": Download(
        "https://archive.ics.uci.edu/static/public/421/aps+failure+at+scania+trucks.zip",
        "aps_failure_at_scania_trucks.zip",
        sha256="5504d0402f54faaf97ac0ca085a621645763f5cfea2eb29c592b057d43d4db89",
    ),
    "kdd_cup_2004": Download(
        "https://kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",
        "data_kddcup04.tar.gz",
    ),
    "credit_fraud": Download(
        "https://www.kaggle.com/datasets/mlg-ulb/creditcardfraud",
        "creditcard.csv",
        sha256="76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
        by_hand="Kaggle needs an account",
    ),
}
