"""Finished voters on the client's disk, from which a failed fit can resume.

They are a function of the rows' codes, the seed and the tree settings. A file holds some
voters as arrays, with a digest of all of these: files that are damaged, or of another fit,
are ignored, and their voters are trained again.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import warnings
from contextlib import suppress
from dataclasses import fields
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._files import is_private, write_whole
from ..messages import counted
from ..outofcore.blocks import BlockPlan
from ..voters.trees.binning import Binning
from ..voters.trees.forest import Forest

FIRST_LINE = b"damvi voters 1\n"
DIGEST_BYTES = 32
NAME = re.compile(r"([0-9]{1,9})-([0-9]{1,9})\.voters")
ARRAYS = [field.name for field in fields(Forest)]


def key_of(tree: Any, binning: Binning, plan: BlockPlan, fingerprint: int) -> str:
    """Return a digest of everything that a voter depends on, except its index.

    Parameters
    ----------
    tree : FastTreeClassifier
    binning : Binning
    plan : BlockPlan
    fingerprint : int
        Fingerprint of the codes, classes and weights of all rows, in order; see
        :func:`~damvi.distributed.work.fingerprint_of`.
    """
    grown_by = tree.max_depth, tree.min_samples_leaf, tree.max_features
    drawn_by = plan.seed, plan.max_samples, plan.stratified, plan.totals.n_rows
    said = repr((__version__, grown_by, drawn_by, plan.n_classes, fingerprint))
    digest = sha256(said.encode())
    for array in (getattr(binning, field.name) for field in fields(binning)):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Checkpoint:
    """The finished voters of a fit.

    Parameters
    ----------
    cache : path or None
        A folder in which they get a permanent subfolder; None for a temporary folder, which
        is removed after a successful fit.
    key : str
        See :func:`key_of`.
    """

    def __init__(self, cache: str | os.PathLike[str] | None, key: str) -> None:
        self._key, self._is_temporary = key, cache is None
        base = tempfile.gettempdir() if cache is None else cache
        user = f"-{os.geteuid()}" if hasattr(os, "geteuid") and cache is None else ""
        self.folder: Path = Path(base) / f"damvi-voters{user}-{key[:32]}"
        self._works = True
        try:
            _make_private(self.folder)
        except OSError as error:
            if cache is not None:
                raise
            self._give_up(error)

    def load(self, n_voters: int, shape: tuple[int, int]) -> list[tuple[range, Forest]]:
        """Load the available voters, in order.

        Parameters
        ----------
        n_voters : int
        shape : (int, int)
            The numbers of features and classes.
        """
        found: list[tuple[range, Forest]] = []
        for voters in sorted(self._there(), key=lambda there: (there.start, -there.stop)):
            # With other numbers of threads, batches are cut differently and may overlap.
            free = found[-1][0].stop if found else 0
            if free <= voters.start and voters.stop <= n_voters:
                forest = self._read(voters, shape)
                if forest is not None:
                    found.append((voters, forest))
        return found

    def keep(self, voters: range, forest: Forest) -> None:
        """Save finished voters; a full disk must not end the fit."""
        if not self._works:
            return
        with io.BytesIO() as file:
            np.savez(file, **{name: getattr(forest, name) for name in ARRAYS})
            content = file.getvalue()
        head = FIRST_LINE + self._digest(voters, content)
        try:
            _make_private(self.folder)  # an identical fit may have removed it
            write_whole(self._path(voters), head + content)
        except OSError as error:
            self._give_up(error)

    def __str__(self) -> str:
        """Return a note for the error message of a failed fit."""
        n = sum(map(len, self._there()))
        if not n:
            return ""
        kept = counted(n, "voter is", "voters are")
        return f"; {kept} saved in {self.folder}, and the same fit resumes from there"

    def fit_succeeded(self) -> None:
        """Remove temporary files, since there is nothing to resume."""
        if self._works and self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _there(self) -> list[range]:
        names: list[str] = []
        with suppress(FileNotFoundError):
            names = os.listdir(self.folder) if self._works else []
        ends = [map(int, match.groups()) for match in map(NAME.fullmatch, names) if match]
        return [there for there in (range(*pair) for pair in ends) if there]

    def _read(self, voters: range, shape: tuple[int, int]) -> Forest | None:
        """Read voters, if the file is intact and holds exactly these."""
        try:
            stored = self._path(voters).read_bytes()
        except OSError:
            return None
        start = len(FIRST_LINE) + DIGEST_BYTES
        head, content = stored[:start], stored[start:]
        if head != FIRST_LINE + self._digest(voters, content):
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            forest = Forest(**{name: arrays[name] for name in ARRAYS})
        known = len(forest), forest.importances.shape[1], forest.n_classes
        return forest if known == (len(voters), *shape) else None

    def _digest(self, voters: range, content: bytes) -> bytes:
        whose = f"{self._key} {voters.start} {voters.stop}\n".encode()
        return sha256(whose + content).digest()

    def _path(self, voters: range) -> Path:
        return self.folder / f"{voters.start}-{voters.stop}.voters"

    def _give_up(self, error: OSError) -> None:
        self._works = False
        warnings.warn(
            f"cannot save finished voters in {self.folder} ({error}), so this fit cannot "
            f"be resumed; choose another folder with cache=",
            UserWarning,
            stacklevel=2,
        )


def missing(n_voters: int, there: list[range]) -> list[range]:
    """Return ranges of missing voters, given the sorted available ones."""
    ends = [range(0), *there, range(n_voters, n_voters)]
    gaps = [range(one.stop, other.start) for one, other in pairwise(ends)]
    return [gap for gap in gaps if gap]


def _make_private(folder: Path) -> None:
    """Create a private folder; an existing one must be private too."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if not is_private(folder):
        raise PermissionError(f"{folder} is not private to this user; remove it")
