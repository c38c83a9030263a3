"""Datasets with a rare class, by name: bundled, public, or from a folder."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._files import whole_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["available", "fetch", "load"]

ATTEMPTS = 3
SUBFOLDERS = (".", "paper", "extra")
MAMMOGRAPHY = """\
Mammography: 11,183 spots on mammograms, 260 of them (2.3%) calcifications.

Six standardised image features (f0 to f5); target 1 marks a calcification. 3,334 rows are
exact duplicates of others.

Source: K. Woods et al. (1993), Comparative evaluation of pattern recognition techniques
for detection of microcalcifications in mammography; in the form of the imbalanced-learn
benchmark collection, doi:10.5281/zenodo.61452."""
AI4I = """\
AI4I 2020 predictive maintenance: 10,000 runs of a milling machine, 339 of them (3.4%) with
a machine failure. Synthetic, modelled on industrial data.

Product type (L, M or H for low, medium and high quality; 0, 1 and 2 in ``data``), air and
process temperature, rotational speed, torque and tool wear. Row and product numbers are
left out, and so are the five columns that tell how the machine failed, which leak the
target. Columns are renamed.

Source: S. Matzka (2020), Explainable artificial intelligence for predictive maintenance
applications, Third International Conference on Artificial Intelligence for Industries, 69
to 74; UCI Machine Learning Repository 601, doi:10.24432/C5HS5C. Licence: CC BY 4.0,
https://creativecommons.org/licenses/by/4.0/."""
BUNDLED = {"mammography": MAMMOGRAPHY, "ai4i2020": AI4I}
"""Bundled datasets, with their descriptions."""
QUALITIES = {"L": 0, "M": 1, "H": 2}
"""Product types in the AI4I table, as numbers."""


@dataclass(frozen=True)
class Download:
    """A file to fetch, or to place by hand for the reason in ``by_hand``.

    Two of the archives have no published checksum. Their content is checked instead, by the
    digests of the tables that we have seen and the size of every other.
    """

    url: str
    file: str
    sha256: str | None = None
    by_hand: str = ""


DOWNLOADS = {
    "collection": Download(
        "https://zenodo.org/record/61452/files/benchmark-imbalanced-learn.tar.gz",
        "benchmark-imbalanced-learn.tar.gz",
    ),
    "scania": Download(
        "https://archive.ics.uci.edu/static/public/421/aps+failure+at+scania+trucks.zip",
        "aps_failure_at_scania_trucks.zip",
        "5504d0402f54faaf97ac0ca085a621645763f5cfea2eb29c592b057d43d4db89",
    ),
    "kdd_cup_2004": Download(
        "https://kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",
        "data_kddcup04.tar.gz",
    ),
    "credit_fraud": Download(
        "https://www.kaggle.com/datasets/mlg-ulb/creditcardfraud",
        "creditcard.csv",
        "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
        by_hand="Kaggle requires an account",
    ),
}


@dataclass(frozen=True)
class Known:
    """A public dataset.

    Attributes
    ----------
    title : str
    rows, attributes : int
    positives : int or None
        Exact, if we have seen the data; otherwise see the published ratio.
    ratio : float or None
        Negatives per positive, as published.
    sources : tuple of (str, str)
        Downloads that contain it, and its file in each, in order of preference.
    digest : str
        :func:`table_sha256` of the table in the first source, if pinned.
    ordered : bool
        Whether the digest depends on the order of the rows.
    """

    title: str
    rows: int
    attributes: int
    positives: int | None = None
    ratio: float | None = None
    sources: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    ordered: bool = True


# Name, description, published ratio, rows, attributes, in the order of the collection: the
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
# Positives and digests of the archive's own files; the protein rows were seen in another
# copy, whose order may differ.
_SEEN = {
    "satimage": (626, "d28ed44940061d12d01b15bd6da2b8040fb84bca8487406194f2188f83870f5e"),
    "letter_img": (734, "958c90827a41f680f6464e02f635e8e325f3407fe5082f19b2db7ba3187609d6"),
    "ozone_level": (73, "aed2afa8056379543e21c799c6e4a0367dd0f62dc1b40b94a54cd76a50371686"),
    "mammography": (
        260,
        "c160794faebf015a279fa450d471ce1bf6544476ddf895c3473a533a879499ba",
    ),
    "protein_homo": (
        1_296,
        "96f07bf10a3ff85aa05912130d5731f01930a8fc77b02b4694b733779ae4ead9",
    ),
    "abalone_19": (32, "d44f2c3b1b1282426aafb36990f743e023d604b4fe377988e155f3bd35fccee1"),
}
# KDD's own archive has the query blocks of the proteins; the collection's copy does not.
_BLOCKS = {"protein_homo": (("kdd_cup_2004", "bio_train.dat"),)}

KNOWN: dict[str, Known] = {
    "ai4i2020": Known(
        "Failures of a milling machine (UCI 601, synthetic), doi:10.24432/C5HS5C.",
        10_000,
        6,
        339,
    ),
    "scania": Known(
        "APS failures of Scania trucks (UCI 421), training set.",
        60_000,
        170,
        1_000,
        sources=(("scania", "aps_failure_training_set.csv"),),
    ),
    "credit_fraud": Known(
        "Card payments on two days in 2013 (ULB, Kaggle mlg-ulb/creditcardfraud).",
        284_807,
        30,
        492,
        sources=(("credit_fraud", "creditcard.csv"),),
    ),
} | {
    name: Known(
        f"{name} from imbalanced-learn's collection ({about}), doi:10.5281/zenodo.61452.",
        rows,
        attributes,
        _SEEN.get(name, (None, ""))[0],
        ratio,
        sources=(*_BLOCKS.get(name, ()), ("collection", f"x{number}data.npz")),
        digest=_SEEN.get(name, (None, ""))[1],
        ordered=name != "protein_homo",
    )
    for number, (name, about, ratio, rows, attributes) in enumerate(_COLLECTION, start=1)
}


class Table(NamedTuple):
    """Features, 0/1 target, feature names, group of each row, and target name.

    Groups may be None, and the target name empty.
    """

    data: NDArray[Any]
    target: NDArray[np.int8]
    feature_names: list[str]
    groups: NDArray[Any] | None = None
    target_name: str = ""


def load(
    name: str, *, data_dir: str | os.PathLike[str] | None = None, as_frame: bool = False
) -> Bunch:
    """Load a dataset by name.

    The name is searched in ``data_dir``, in the folder given by the environment variable
    ``DAMVI_DATA``, and in the cache, and is otherwise downloaded. ``"ai4i2020"`` and
    ``"mammography"`` are bundled; only a file in ``data_dir`` takes precedence over them.

    Parameters
    ----------
    name : str
        See :func:`available`.
    data_dir : path, optional
        A folder with ``NAME.parquet`` or ``NAME.csv``, directly or in a ``paper`` or
        ``extra`` subfolder: numeric columns, and ``target``.
    as_frame : bool, default=False
        Whether to add ``frame``, a dataframe with named columns, categories as text, and
        the target, named ``target_name``, as words.

    Returns
    -------
    dataset : Bunch
        ``data`` (n, n_features), NaN if missing, ``target`` (n,) with 1 for the rarer
        class, ``feature_names``, ``groups`` (which rows belong together) or None, ``name``
        and ``DESCR``.

    Examples
    --------
    >>> from damvi.datasets import load
    >>> data = load("mammography")
    >>> data.data.shape, int(data.target.sum())
    ((11183, 6), 260)
    >>> runs = load("ai4i2020", as_frame=True)
    >>> runs.frame[runs.target_name].value_counts().to_dict()
    {'no': 9661, 'yes': 339}
    """
    bundled = name in BUNDLED
    table, title = None, BUNDLED.get(name, "")
    for folder in _folders(data_dir, only_argument=bundled):
        if file := _find(name, folder):
            title = KNOWN[name].title if name in KNOWN else f"{name}: {file}"
            table = _read(file)
            break
    if table is None and bundled:
        table = _mammography() if name == "mammography" else _ai4i2020()
    elif table is None:
        if name not in KNOWN:
            there = sorted(record["name"] for record in available(data_dir))
            near = get_close_matches(str(name), there)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ValueError(
                f"unknown dataset {name!r}; {hint}available: {', '.join(there)}"
            )
        title, table = KNOWN[name].title, _fetched(name, data_dir)[1]
    found = _bunch(name, title, table)
    if as_frame:
        found.target_name, found.frame = _frame(table)
    return found


def _mammography() -> Table:
    with (files(__package__) / "data" / "mammography.npz").open("rb") as stream:
        arrays = np.load(stream)
        X, y = arrays["data"], arrays["target"]
    return Table(X, y, [f"f{j}" for j in range(6)], target_name="calcification")


def _ai4i2020() -> Table:
    import pandas as pd

    with (files(__package__) / "data" / "ai4i2020.csv.gz").open("rb") as stream:
        frame = pd.read_csv(stream, compression="gzip")
    target = (frame.pop("machine_failure") == "yes").to_numpy().astype(np.int8)
    frame["product_type"] = frame["product_type"].map(QUALITIES)
    data = frame.to_numpy(dtype=np.float64)
    return Table(data, target, list(frame.columns), target_name="machine_failure")


def _frame(table: Table) -> tuple[str, pd.DataFrame]:
    """Return the name of the target, and a readable dataframe."""
    import pandas as pd

    frame = pd.DataFrame(np.asarray(table.data), columns=table.feature_names)
    for name in frame:
        values = frame[name].to_numpy()
        if table.target_name == "machine_failure" and name == "product_type":
            frame[name] = [list(QUALITIES)[int(code)] for code in values]
        elif table.target_name and (values == values.round()).all():
            frame[name] = values.astype(np.int64)
    if not table.target_name:
        frame["target"] = np.asarray(table.target)
        return "target", frame
    frame[table.target_name] = np.where(np.asarray(table.target) == 1, "yes", "no")
    return table.target_name, frame


def available(data_dir: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """List the datasets that :func:`load` knows: public ones, and those in folders.

    Parameters
    ----------
    data_dir : path, optional
        A folder to search first, as in :func:`load`.

    Returns
    -------
    records : list of dict
        ``name``, ``where`` ("bundled", "folder", "cache", "to fetch" or "to place by
        hand"), ``place`` (the file or URL), and ``rows``, ``attributes`` and ``ratio``
        (negatives per positive), None if only the file knows them.

    Examples
    --------
    >>> from damvi.datasets import available
    >>> next(record["where"] for record in available() if record["name"] == "mammography")
    'bundled'
    """
    folders = _folders(data_dir)
    others = {
        path.stem
        for folder in folders
        for sub in SUBFOLDERS
        for path in (folder / sub).glob("*.parquet")
        if not path.stem.endswith("_block_id")
    }
    return [_record(name, folders) for name in sorted({*KNOWN, *others})]


def _record(name: str, folders: list[Path]) -> dict[str, Any]:
    where, place, known = "to fetch", "", KNOWN.get(name)
    found = next((file for folder in folders if (file := _find(name, folder))), None)
    if name in BUNDLED:
        where = "bundled"
    elif found is not None:
        where, place = "folder", str(found)
    elif known is not None:
        download = DOWNLOADS[known.sources[0][0]]
        where = "to place by hand" if download.by_hand else "to fetch"
        place = download.url
        cached = _cache(f"{name}.parquet", missing_ok=True)
        if cached is not None and cached.is_file():
            where, place = "cache", str(cached)
    ratio = None
    if known is not None:
        ratio = known.ratio
        if known.positives:
            ratio = (known.rows - known.positives) / known.positives
    return {
        "name": name,
        "where": where,
        "place": place,
        "rows": known.rows if known else None,
        "attributes": known.attributes if known else None,
        "ratio": ratio,
    }


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Fetch a public dataset into the cache, unless it is there, and return its file.

    Parameters
    ----------
    name : str
    data_dir : path, optional
        Another folder for files that must be placed by hand.

    Examples
    --------
    >>> from damvi.datasets import fetch
    >>> fetch("webpage")  # doctest: +SKIP
    PosixPath('/home/me/.cache/damvi/webpage.parquet')
    """
    if name not in KNOWN or not KNOWN[name].sources:
        raise ValueError(f"{name!r} is not a dataset that can be fetched")
    return _fetched(name, data_dir)[0]


def _fetched(name: str, data_dir: Any) -> tuple[Path, Table]:
    """Return the cached file and its table; fetch it if it is missing or damaged."""
    known, path = KNOWN[name], _cache(f"{name}.parquet")
    assert path is not None
    if path.is_file():
        try:
            table = _read(path)
            _check(known, table)
            return path, table
        except Exception:
            path.unlink()
    failures: list[Exception] = []
    for source, member in known.sources:
        try:
            file = _obtain(name, DOWNLOADS[source], data_dir)
            table = _from_archive(known, source, file, member)
        except (ConnectionError, ValueError) as error:
            failures.append(error)
        else:
            _store(path, table)
            # As it will be read from now on.
            return path, _read(path)
    raise failures[0]


def _obtain(name: str, download: Download, data_dir: Any) -> Path:
    """Return the file of a download, with its checksum verified if pinned."""
    home = _cache("downloads")
    assert home is not None
    if not download.by_hand:
        return _download(download, home)
    places = [folder / sub for folder in _folders(data_dir) for sub in SUBFOLDERS]
    for place in [*places, home]:
        file = place / download.file
        if file.is_file():
            with file.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != download.sha256:
                raise ValueError(
                    f"{file} has a wrong checksum and was not used: expected SHA-256 "
                    f"{download.sha256}, got {found}. Download it again from "
                    f"{download.url}"
                )
            return file
    raise FileNotFoundError(
        f"{name} must be downloaded by hand, since {download.by_hand}: save "
        f"{download.file} from {download.url} (SHA-256 {download.sha256}) in {home}, or in "
        f"the folder given by data_dir or DAMVI_DATA"
    )


def _download(download: Download, home: Path) -> Path:
    """Download a file atomically into the cache, with retries."""
    pooch = _pooch()
    home.mkdir(parents=True, exist_ok=True)
    store = pooch.create(
        path=home,
        base_url="",
        registry={download.file: download.sha256 and f"sha256:{download.sha256}"},
        urls={download.file: download.url},
        retry_if_failed=ATTEMPTS - 1,
    )
    get = pooch.HTTPDownloader(timeout=30)

    def downloader(*arguments: Any) -> None:
        try:
            get(*arguments)
        except Exception as error:
            # An HTTP error leaves the connection open, and nobody else closes it.
            if (response := getattr(error, "response", None)) is not None:
                response.close()
            raise

    try:
        return Path(store.fetch(download.file, downloader=downloader))
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # local errors: a full disk, a read-only folder
        reason = " ".join(str(error).split())
        cure = f"Try again, or download it by hand to {home / download.file}"
        kind = ValueError if isinstance(error, ValueError) else ConnectionError
        raise kind(f"could not fetch {download.url}: {reason}. {cure}") from error


def _from_archive(known: Known, source: str, file: Path, member: str) -> Table:
    """Read the table of a download; remove it from the cache if it is not as expected."""
    try:
        table = READERS[source](file, member)
        _check(known, table, digest=source == known.sources[0][0])
    except Exception as error:
        if file.parent == _cache("downloads"):
            file.unlink(missing_ok=True)
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{file.name} has unexpected content and was not used: {reason}. Run "
            f"again to download it anew"
        ) from error
    return table


def _check(known: Known, table: Table, digest: bool = False) -> None:
    """Check the size of a table, and its digest if pinned."""
    X, y = table.data, table.target
    if X.shape != (known.rows, known.attributes) or len(y) != known.rows:
        raise ValueError(
            f"expected {known.rows:,} rows and {known.attributes} features, got "
            f"{X.shape[0]:,} rows and {X.shape[1]} features"
        )
    positives = int(y.sum())
    if known.positives is not None and positives != known.positives:
        raise ValueError(f"expected {known.positives:,} positives, got {positives:,}")
    if known.ratio is not None and known.positives is None:
        # Published ratios are rounded, and webpage's is slightly off.
        ratio = (len(y) - positives) / max(positives, 1)
        if not 0.9 < ratio / known.ratio < 1.1:
            raise ValueError(f"expected about {known.ratio:g}:1, got {ratio:.1f}:1")
    if digest and known.digest:
        found = table_sha256(X, y, ordered=known.ordered)
        if found != known.digest:
            raise ValueError(f"expected SHA-256 {known.digest}, got {found}")


def table_sha256(X: NDArray[Any], y: NDArray[Any], ordered: bool = True) -> str:
    """Return the SHA-256 of a table's content, independent of the file format.

    Values are hashed in single precision, little-endian, row by row with the label last, so
    that copies in either precision agree. With ``ordered=False``, row order is ignored.
    """
    rows = np.column_stack([X, y]).astype("<f4")
    # Normalize values: -0 to 0, and all NaN to one.
    rows += np.float32(0)
    rows[np.isnan(rows)] = np.nan
    if not ordered:
        each = np.ascontiguousarray(rows).view(f"V{rows.shape[1] * 4}").ravel()
        rows = rows[np.argsort(each, kind="stable")]
    shape = f"{rows.shape[0]}x{rows.shape[1]}:".encode()
    return hashlib.sha256(shape + np.ascontiguousarray(rows).tobytes()).hexdigest()


def _collection(archive: Path, member: str) -> Table:
    """Read a table of imbalanced-learn's collection: one npz file each in the tar."""
    from scipy import sparse

    with np.load(io.BytesIO(_from_tar(archive, member)), allow_pickle=False) as arrays:
        label = np.asarray(arrays["label"]).ravel()
        if "indptr" in arrays:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            data = sparse.csr_matrix(parts, shape=tuple(arrays["shape"])).toarray()
        else:
            data = arrays["data"]
    target = (label > 0).astype(np.int8)
    return Table(data, target, [f"f{j}" for j in range(data.shape[1])])


def _scania(archive: Path, member: str) -> Table:
    """Read the training file of the UCI archive: a licence, a header, then the rows."""
    import pandas as pd

    with zipfile.ZipFile(archive) as members:
        names = [n for n in members.namelist() if PurePosixPath(n).name == member]
        text = members.read(names[0])
    start = text.find(b"\nclass,") + 1
    frame = pd.read_csv(io.BytesIO(text[start:]), na_values="na")
    target = (frame.pop("class") == "pos").to_numpy().astype(np.int8)
    return Table(frame.to_numpy(dtype=np.float64), target, list(frame.columns))


def _kdd_cup_2004(archive: Path, member: str) -> Table:
    """Read the proteins of KDD Cup 2004: block, example, label, then the features."""
    import pandas as pd

    text = io.BytesIO(_from_tar(archive, member))
    rows = pd.read_csv(text, sep=r"\s+", header=None).to_numpy()
    names = [f"f{j}" for j in range(4, rows.shape[1] + 1)]
    blocks = rows[:, 0].astype(np.int32)
    return Table(rows[:, 3:], (rows[:, 2] > 0).astype(np.int8), names, blocks)


def _credit_fraud(file: Path, member: str) -> Table:
    """Read Kaggle's file."""
    import pandas as pd

    frame = pd.read_csv(file)
    target = frame.pop("Class").to_numpy().astype(np.int8)
    return Table(frame.to_numpy(dtype=np.float64), target, list(frame.columns))


READERS: dict[str, Callable[[Path, str], Table]] = {
    "collection": _collection,
    "scania": _scania,
    "kdd_cup_2004": _kdd_cup_2004,
    "credit_fraud": _credit_fraud,
}


def _from_tar(archive: Path, member: str) -> bytes:
    with tarfile.open(archive) as entries:
        # Read in place and never extracted, so that names in it can do no harm.
        for entry in entries:
            if entry.isfile() and PurePosixPath(entry.name).name == member:
                content = entries.extractfile(entry)
                assert content is not None
                return content.read()
    raise ValueError(f"{archive.name} does not contain {member}")


def _store(path: Path, table: Table) -> None:
    """Store a table in the cache, in the format of a data folder."""
    import pandas as pd

    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(np.asarray(table.data), columns=table.feature_names)
    frame["target"] = table.target
    if table.groups is not None:
        blocks = pd.DataFrame({"block_id": table.groups})
        _write(_blocks_of(path), blocks)
    _write(path, frame)


def _write(path: Path, frame: pd.DataFrame) -> None:
    with whole_file(path) as file:
        frame.to_parquet(file)


def _blocks_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}_block_id.parquet")


def _read(path: Path) -> Table:
    """Read a file from a folder or the cache: numeric columns, and ``target``."""
    import pandas as pd

    from .tables import read_table

    frame = read_table(path)
    if "target" not in frame:
        raise ValueError(f"{path} has no column 'target'")
    groups = None
    if _blocks_of(path).is_file():
        groups = pd.read_parquet(_blocks_of(path)).iloc[:, 0].to_numpy()
        if len(groups) != len(frame):
            raise ValueError(
                f"{_blocks_of(path)} has {len(groups):,} rows, but {path} has "
                f"{len(frame):,}"
            )
    labelled = frame["target"].notna().to_numpy()
    groups = None if groups is None else groups[labelled]
    frame = frame.loc[labelled].copy()
    labels = frame.pop("target").to_numpy()
    values, counts = np.unique(labels, return_counts=True)
    if len(values) != 2:
        raise ValueError(f"the target of {path} has {len(values)} values, not two")
    # If both classes are equally frequent, the last in order is positive, as elsewhere.
    target = (labels == values[int(counts[1] <= counts[0])]).astype(np.int8)
    try:
        data = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(
            f"{path} has non-numeric columns; use damvi fit for such tables"
        ) from None
    return Table(data, target, list(frame.columns), groups)


def _folders(data_dir: Any, only_argument: bool = False) -> list[Path]:
    """Return the data folders to search: the argument, then ``DAMVI_DATA``."""
    named = {"data_dir": data_dir}
    if not only_argument:
        named["variable DAMVI_DATA"] = os.environ.get("DAMVI_DATA")
    found = []
    for what, name in named.items():
        if name:
            found.append(Path(name).expanduser())
            if not found[-1].is_dir():
                raise FileNotFoundError(f"no such folder: {found[-1]} ({what})")
    return found


def _find(name: str, folder: Path) -> Path | None:
    """Find a dataset in a folder or its ``paper`` and ``extra`` subfolders."""
    for sub in SUBFOLDERS:
        for suffix in (".parquet", ".csv", ".csv.gz"):
            path = folder / sub / f"{name}{suffix}"
            if path.is_file():
                return path
    return None


def _cache(name: str, missing_ok: bool = False) -> Path | None:
    """Return a path in the cache: ``DAMVI_CACHE``, or the platform's cache folder."""
    if variable := os.environ.get("DAMVI_CACHE"):
        return Path(variable).expanduser() / name
    try:
        return Path(_pooch().os_cache("damvi")) / name
    except ImportError:
        if missing_ok:
            return None
        raise


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "public datasets require pooch: pip install 'damvi[bench]'"
        ) from error
    return pooch


def _bunch(name: str, title: str, table: Table) -> Bunch:
    rows, positives = len(table.target), int(table.target.sum())
    size = f"{rows:,} rows, {table.data.shape[1]:,} features"
    rate = f"{positives:,} positives ({positives / rows:.2%})"
    fields = {key: value for key, value in table._asdict().items() if key != "target_name"}
    return Bunch(**fields, name=name, DESCR=f"{title}\n\n{size}, {rate}.\n")
