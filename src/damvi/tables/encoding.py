"""Encode high-cardinality categories ("levels") and free text as numbers.

A level (a shop, a postcode) is stored as a 64-bit hash, never as text. Each voter learns
its class rates from its own training rows; see :mod:`damvi.voters.columns`. Free text is
hashed to n-grams and projected on the leading singular vectors.
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
"""Maximum number of distinct levels; all others share one code."""
FREQUENCY = "frequency"
WORD = r"(?u)\b\w+\b"
"""A word, which may be a single letter."""
N_BUCKETS = 2**11
"""Number of hash buckets for character n-grams, and again for words and word pairs."""
N_DIRECTIONS = 30
TEXTS_TO_LEARN = 20_000
LONGEST_TEXT = 1000
"""Characters of a text that are used."""
BLANKS_IN_TEXT = 2.0
"""Mean number of spaces per value from which a column is free text, not names."""


@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """The levels of a column in the training rows.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (K,)
        Sorted.
    counts : ndarray of uint32, shape (K,)
        Number of training rows of each level.

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
        """Collect all levels, or a random subset if there are too many.

        Preferring frequent levels, or those that occur twice, would make more training rows
        than new rows have a known level, and scores would be too optimistic.
        """
        codes, hashes = _distinct(column)
        found, places = np.unique(hashes, return_inverse=True)
        counts = np.bincount(places[codes[codes >= 0]], minlength=len(found))
        chosen = np.flatnonzero(counts)[:MOST_LEVELS]  # ordered by hash, so at random
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
        """Return codes from 1, ordered by hash; 0 if unknown, -1 if missing."""
        codes, hashes = _distinct(column)
        own = np.append(1 + find_hashes(self.hashes, hashes), -1).astype(np.int32)
        return own[codes]

    def encode(self, column: pd.Series) -> tuple[pd.Categorical, NDArray[np.float64]]:
        """Return the codes as a categorical, and the log count of each row's level."""
        import pandas as pd

        codes = self.codes(column)
        counts = np.concatenate([[1], self.counts, [np.nan]])
        numbers = pd.RangeIndex(len(self) + 1)
        return pd.Categorical.from_codes(codes, categories=numbers), np.log(counts[codes])


def is_free_text(text: pd.Series) -> bool:
    """Whether the texts have enough words to be sentences."""
    return bool(text.dropna().str.count(r"\s+").mean() >= BLANKS_IN_TEXT)


def _distinct(column: pd.Series) -> tuple[NDArray[np.intp], Hashes]:
    """Return the index of each row's distinct value, -1 if missing, and the hashes."""
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
    """Encode free text as a few numbers (hashed n-grams, TF-IDF, truncated SVD).

    Attributes
    ----------
    weights : ndarray of float32, shape (B,)
        Inverse document frequency of each bucket.
    directions : ndarray of float32, shape (B, R)
        The leading right singular vectors of the weighted texts.

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
        """Learn weights and directions from the texts, or from a sample of them."""
        from sklearn.utils.extmath import randomized_svd

        texts = _texts(column.dropna().unique().tolist())
        counts = _count_ngrams(texts[:: -(-len(texts) // TEXTS_TO_LEARN)])
        n = counts.shape[0]
        n_with = np.bincount(counts.indices, minlength=counts.shape[1])
        weights = np.where(n_with > 0, np.log((1 + n) / (1 + n_with)) + 1, 0)
        weights = weights.astype(np.float32)
        n_directions = max(1, min(N_DIRECTIONS, n - 1, int((n_with > 0).sum()) - 1))
        with one_blas_thread():  # reproducible for a given BLAS library
            _, _, directions = randomized_svd(
                _weighted(counts, weights), n_directions, n_iter=4, random_state=0
            )
        return cls(weights, np.ascontiguousarray(directions.T, dtype=np.float32))

    @property
    def n_numbers(self) -> int:
        return int(self.directions.shape[1])

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return tuple(f"text {number}" for number in range(1, self.n_numbers + 1))

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        digest = _digest(self.weights, self.directions)
        return f"Words({self.n_numbers}, sha256 {digest})"

    def encode(self, column: pd.Series) -> NDArray[np.float64]:
        """Return the numbers of each row, (n, R); NaN where the text is missing."""
        import pandas as pd

        codes, values = pd.factorize(column.astype("string"))
        numbers = np.full((len(values) + 1, self.n_numbers), np.nan)
        numbers[:-1] = self.numbers(values.tolist())
        return numbers[codes]  # -1 (missing) picks the last row

    def numbers(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        """Return the numbers of each text, (n, R)."""
        weighted = _weighted(_count_ngrams(_texts(texts)), self.weights)
        return np.asarray(weighted @ self._directions)

    @cached_property
    def _directions(self) -> NDArray[np.float64]:
        return self.directions.astype(np.float64)


def _texts(values: Sequence[Any]) -> list[str]:
    """Truncate the texts, and replace characters that cannot be hashed."""
    return [
        str(value)[:LONGEST_TEXT].encode("utf-8", "replace").decode() for value in values
    ]


def _count_ngrams(texts: list[str]) -> csr_matrix:
    """Count the n-grams of each text by hash bucket."""
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
    """Apply sublinear TF-IDF, and scale each text to length 1."""
    from sklearn.preprocessing import normalize

    weighted = counts.copy()
    weighted.data = (1 + np.log(weighted.data)) * weights[weighted.indices]
    return normalize(weighted) if counts.shape[0] else weighted


def _digest(*arrays: NDArray[Any]) -> str:
    return sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:32]
