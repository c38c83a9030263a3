"""Columns of very many values as numbers, without their labels: levels, and free text.

A level (a shop, a postcode) is known by a 64-bit hash, never by its text. What a model
learns of it, it learns from its own training rows; see :mod:`damvi.voters.columns`. Free
text becomes the few directions in which its hashed n-grams vary most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import one_blas_thread
from ..hashing import Hashes, find_hashes, text_hashes

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

MOST_LEVELS = 2**16
"""That are told apart; the others count as one."""
FREQUENCY = "frequency"
WORD = r"(?u)\b\w+\b"
"""What counts as a word; a single letter does too."""
N_BUCKETS = 2**11
"""For character n-grams, and as many for words and pairs of words."""
N_DIRECTIONS = 30
TEXTS_TO_LEARN = 20_000
LONGEST_TEXT = 1000
"""Characters that are read of a text."""
BLANKS_IN_TEXT = 2.0
"""On average, from which on a column holds no names but free text."""


@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """The levels of a column in training rows.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (K,)
        In order.
    counts : ndarray of uint32, shape (K,)
        The training rows that have each.

    Examples
    --------
    >>> import pandas as pd
    >>> levels = Levels.learn(pd.Series(["x", "y", "x", "z", "y", "x"]))
    >>> len(levels), levels.codes(pd.Series(["new", None])).tolist()
    (3, [0, -1])
    >>> levels.encode(pd.Series(["x", "z"]))[1].round(2)
    array([1.1, 0. ])
    """

    hashes: Hashes
    counts: NDArray[np.uint32]

    @classmethod
    def learn(cls, column: pd.Series) -> Levels:
        """All of them, or some.

        If those that are frequent were chosen, or those that come twice, more of the
        training rows than of new ones would have a known level, and scores be flattered.
        """
        codes, hashes = _distinct(column)
        found, places = np.unique(hashes, return_inverse=True)
        counts = np.bincount(places[codes[codes >= 0]], minlength=len(found))
        chosen = np.flatnonzero(counts)[:MOST_LEVELS]  # by their hashes, at random
        return cls(found[chosen], counts[chosen].astype(np.uint32))

    def __len__(self) -> int:
        return len(self.hashes)

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Levels({len(self)}, sha256 {_digest(self.hashes, self.counts)})"

    def codes(self, column: pd.Series) -> NDArray[np.int32]:
        """From 1 on, by hash; 0 for new ones, -1 where there is none."""
        codes, hashes = _distinct(column)
        own = np.append(1 + find_hashes(self.hashes, hashes), -1).astype(np.int32)
        return own[codes]

    def encode(self, column: pd.Series) -> tuple[pd.Categorical, NDArray[np.float64]]:
        """The codes, as categories, and the logarithm of each row's count."""
        import pandas as pd

        codes = self.codes(column)
        counts = np.concatenate([[1], self.counts, [np.nan]])
        numbers = pd.RangeIndex(len(self) + 1)
        return pd.Categorical.from_codes(codes, categories=numbers), np.log(counts[codes])


def is_free_text(text: pd.Series) -> bool:
    """Whether these texts have words enough to be sentences."""
    return bool(text.dropna().str.count(r"\s+").mean() >= BLANKS_IN_TEXT)


def _distinct(column: pd.Series) -> tuple[NDArray[np.intp], Hashes]:
    """The place of each row's value, -1 where there is none, and the hash of each value."""
    import pandas as pd

    if hasattr(column, "cat"):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories
    else:
        codes, values = pd.factorize(column)
    labels = values.tolist()
    empty = np.array([label == "" for label in labels] + [True])
    return np.where(empty[codes], -1, codes).astype(np.intp), text_hashes(labels)


@dataclass(frozen=True, eq=False, repr=False)
class Words:
    """How free text becomes a few numbers.

    Attributes
    ----------
    weights : ndarray of float32, shape (B,)
        What an n-gram of each bucket counts: the less, the more texts have it.
    directions : ndarray of float32, shape (B, R)
        In which the weighted texts vary most.

    Examples
    --------
    >>> import pandas as pd
    >>> notes = pd.Series(["the pump leaks oil", "no fault was found", None] * 20)
    >>> words = Words.learn(notes)
    >>> found = words.encode(pd.Series(["pump leaks", None]))
    >>> found.shape[1] == words.n_numbers, bool(np.isnan(found[1]).all())
    (True, True)
    """

    weights: NDArray[np.float32]
    directions: NDArray[np.float32]

    @classmethod
    def learn(cls, column: pd.Series) -> Words:
        """From the texts alone, of some rows where there are very many."""
        from sklearn.utils.extmath import randomized_svd

        texts = _texts(column.dropna().unique().tolist())
        counts = _count_ngrams(texts[:: -(-len(texts) // TEXTS_TO_LEARN)])
        n = counts.shape[0]
        n_with = np.bincount(counts.indices, minlength=counts.shape[1])
        weights = np.where(n_with > 0, np.log((1 + n) / (1 + n_with)) + 1, 0)
        weights = weights.astype(np.float32)
        n_directions = max(1, min(N_DIRECTIONS, n - 1, int((n_with > 0).sum()) - 1))
        with one_blas_thread():  # the same numbers on any machine with the same library
            _, _, directions = randomized_svd(
                _weighted(counts, weights), n_directions, n_iter=4, random_state=0
            )
        return cls(weights, np.ascontiguousarray(directions.T, dtype=np.float32))

    @property
    def n_numbers(self) -> int:
        return int(self.directions.shape[1])

    @property
    def parts(self) -> tuple[str, ...]:
        """What the numbers are called."""
        return tuple(f"text {number}" for number in range(1, self.n_numbers + 1))

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        digest = _digest(self.weights, self.directions)
        return f"Words({self.n_numbers}, sha256 {digest})"

    def encode(self, column: pd.Series) -> NDArray[np.float64]:
        """The numbers of each row, (n, R); NaN where there is no text."""
        import pandas as pd

        codes, values = pd.factorize(column.astype("string"))
        numbers = np.full((len(values) + 1, self.n_numbers), np.nan)
        numbers[:-1] = self.numbers(values.tolist())
        return numbers[codes]  # -1, for missing, is the last

    def numbers(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        """The numbers of each of these texts, (n, R)."""
        weighted = _weighted(_count_ngrams(_texts(texts)), self.weights)
        return np.asarray(weighted @ self._directions)

    @cached_property
    def _directions(self) -> NDArray[np.float64]:
        return self.directions.astype(np.float64)


def _texts(values: Sequence[Any]) -> list[str]:
    """The start of each, in characters that can be hashed."""
    return [
        str(value)[:LONGEST_TEXT].encode("utf-8", "replace").decode() for value in values
    ]


def _count_ngrams(texts: list[str]) -> csr_matrix:
    """How often the n-grams of each bucket are in each text."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    if not texts:
        return csr_matrix((0, 2 * N_BUCKETS))
    options: dict[str, Any] = {
        "n_features": N_BUCKETS,
        "norm": None,
        "alternate_sign": False,
    }
    letters = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), **options)
    words = HashingVectorizer(token_pattern=WORD, ngram_range=(1, 2), **options)
    parts = [letters.transform(texts), words.transform(texts)]
    return csr_matrix(hstack(parts, format="csr"))


def _weighted(counts: csr_matrix, weights: NDArray[np.float32]) -> csr_matrix:
    """Counts by their logarithm and the n-gram's weight, each text of length 1."""
    from sklearn.preprocessing import normalize

    weighted = counts.copy()
    weighted.data = (1 + np.log(weighted.data)) * weights[weighted.indices]
    return normalize(weighted) if counts.shape[0] else weighted


def _digest(*arrays: NDArray[Any]) -> str:
    return sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:32]
