"""What is known by name: the paper's datasets and imbalanced-learn's collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Known:
    """One dataset: its size, and where it is had from."""

    name: str
    title: str
    rows: int
    attributes: int
    positives: int | None = None
    """Exact, where we have seen the data; the published ratio stands in elsewhere."""
    ratio: float | None = None
    sources: tuple[tuple[str, str], ...] = ()
    """Downloads that have it, and its file in each, in order of preference."""
    digest: str = ""
    """SHA-256 of the table that the first source holds, see ``digests.table_sha256``."""
    ordered: bool = True
    """Whether the digest tells the order of the rows."""
    notes: tuple[str, ...] = ()


# Attributes, rows and percentage of positives, as the paper's table prints them.
PAPER: dict[str, dict[str, Any]] = {
    "webpage": {"attributes": 300, "rows": 34_780, "percent": 3.03},
    "mammography": {"attributes": 6, "rows": 11_183, "percent": 2.32},
    "scania": {"attributes": 170, "rows": 60_000, "percent": 1.67},
    "protein_homo": {"attributes": 74, "rows": 145_751, "percent": 0.9},
    "credit_fraud": {"attributes": 30, "rows": 284_807, "percent": 0.17},
    "pct_imitation": {"attributes": 17, "rows": 816_099, "percent": 0.02},
}
PAPER["scania_partial"] = PAPER["scania"]

_OTHERS = [
    Known(
        "scania",
        "APS failures of Scania trucks (UCI 421), the training part.",
        60_000,
        170,
        1_000,
        sources=(("scania", "aps_failure_training_set.csv"),),
    ),
    Known(
        "scania_partial",
        "A part of the APS failures of Scania trucks (UCI 421).",
        13_274,
        170,
        242,
        notes=(
            "Only 13,274 of the 60,000 rows of the paper's Scania, 242 of 1,000 positives.",
        ),
    ),
    Known(
        "credit_fraud",
        "Card payments of two days in 2013 (ULB, Kaggle mlg-ulb/creditcardfraud).",
        284_807,
        30,
        492,
        sources=(("credit_fraud", "creditcard.csv"),),
    ),
    Known(
        "pct_imitation",
        "An imitation of PCT, the paper's proprietary telemetry; not the paper's data.",
        816_099,
        17,
        163,
    ),
]
_WEBPAGE_NOTE = (
    "The paper's table prints 3.03 % of positives, which is the rounded ratio of 33:1 that "
    "the collection states, not a count."
)
# Name, what it is about, published ratio, rows, attributes, in the collection's order: the
# first is x1data.npz.
_COLLECTION = [
    ("ecoli", "UCI, target imU", 8.6, 336, 7),
    ("optical_digits", "UCI, target 8", 9.1, 5_620, 64),
    ("satimage", "UCI, target 4", 9.3, 6_435, 36),
    ("pen_digits", "UCI, target 5", 9.4, 10_992, 16),
    ("abalone", "UCI, target 7", 9.7, 4_177, 10),
    ("sick_euthyroid", "UCI, target sick euthyroid", 9.8, 3_163, 42),
    ("spectrometer", "UCI, target >= 44", 11, 531, 93),
    ("car_eval_34", "UCI, targets good and very good", 12, 1_728, 21),
    ("isolet", "UCI, targets A and B", 12, 7_797, 617),
    ("us_crime", "UCI, target > 0.65", 12, 1_994, 100),
    ("yeast_ml8", "LIBSVM, target 8", 13, 2_417, 103),
    ("scene", "LIBSVM, target > one label", 13, 2_407, 294),
    ("libras_move", "UCI, target 1", 14, 360, 90),
    ("thyroid_sick", "UCI, target sick", 15, 3_772, 52),
    ("coil_2000", "KDD CoIL, target minority", 16, 9_822, 85),
    ("arrhythmia", "UCI, target 06", 17, 452, 278),
    ("solar_flare_m0", "UCI, target M->0", 19, 1_389, 32),
    ("oil", "UCI, target minority", 22, 937, 49),
    ("car_eval_4", "UCI, target very good", 26, 1_728, 21),
    ("wine_quality", "UCI, wine, target <= 4", 26, 4_898, 11),
    ("letter_img", "UCI, target Z", 26, 20_000, 16),
    ("yeast_me2", "UCI, target ME2", 28, 1_484, 8),
    ("webpage", "LIBSVM w7a, target minority", 33, 34_780, 300),
    ("ozone_level", "UCI, ozone, data", 34, 2_536, 72),
    ("mammography", "UCI, target minority", 42, 11_183, 6),
    ("protein_homo", "KDD Cup 2004, target minority", 111, 145_751, 74),
    ("abalone_19", "UCI, target 19", 130, 4_177, 10),
]
_POSITIVES = {
    "satimage": 626,
    "letter_img": 734,
    "ozone_level": 73,
    "mammography": 260,
    "protein_homo": 1_296,
    "abalone_19": 32,
}
# Of the very members of the archive; the protein rows were seen in another copy, whose
# order may not be the archive's. Other tables are pinned by rows, attributes and ratio.
_DIGESTS = {
    "satimage": "d28ed44940061d12d01b15bd6da2b8040fb84bca8487406194f2188f83870f5e",
    "letter_img": "958c90827a41f680f6464e02f635e8e325f3407fe5082f19b2db7ba3187609d6",
    "ozone_level": "aed2afa8056379543e21c799c6e4a0367dd0f62dc1b40b94a54cd76a50371686",
    "mammography": "c160794faebf015a279fa450d471ce1bf6544476ddf895c3473a533a879499ba",
    "protein_homo": "96f07bf10a3ff85aa05912130d5731f01930a8fc77b02b4694b733779ae4ead9",
    "abalone_19": "d44f2c3b1b1282426aafb36990f743e023d604b4fe377988e155f3bd35fccee1",
}
# KDD's own archive has the blocks of the proteins; the collection's copy has not.
_BLOCKS = {"protein_homo": (("kdd_cup_2004", "bio_train.dat"),)}

KNOWN: dict[str, Known] = {known.name: known for known in _OTHERS} | {
    name: Known(
        name,
        f"{name} of imbalanced-learn's collection ({about}), doi:10.5281/zenodo.61452.",
        rows,
        attributes,
        _POSITIVES.get(name),
        ratio,
        sources=(*_BLOCKS.get(name, ()), ("collection", f"x{number}data.npz")),
        digest=_DIGESTS.get(name, ""),
        ordered=name != "protein_homo",
        notes=(_WEBPAGE_NOTE,) if name == "webpage" else (),
    )
    for number, (name, about, ratio, rows, attributes) in enumerate(_COLLECTION, start=1)
}
