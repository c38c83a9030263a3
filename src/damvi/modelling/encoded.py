"""A parquet dataset as a schema encodes it: its labelled rows, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..hashing import Hashes, row_hashes
from ..outofcore import ParquetTable
from ..outofcore.parquet import RowGroup
from ..tables import Schema, label_texts
from ..voters.trees.features import Categories, FrameTable

if TYPE_CHECKING:
    import pandas as pd

NO_LABEL = -1


@dataclass(frozen=True, eq=False)
class Encoder:
    """How rows become features and classes.

    Attributes
    ----------
    schema : Schema
    target : str
    numbers : mapping of str to int
        The class of each label; of two, 1 is the positive one.
    many : bool
        Whether there are three or more classes.
    """

    schema: Schema
    target: str
    numbers: Mapping[str, int]
    many: bool

    @cached_property
    def sources(self) -> list[str]:
        """The columns that are read for the features."""
        return [column.name for column in self.schema.used]

    @cached_property
    def label(self) -> str:
        """The name of the classes' column, beside the features."""
        name = self.target
        while name in self.schema.features:
            name += "'"
        return name

    @cached_property
    def example(self) -> pd.DataFrame:
        """The encoded table, without rows."""
        import pandas as pd

        return self.schema.encode(pd.DataFrame({name: [] for name in self.sources}))

    def classes(self, column: Any) -> NDArray[np.int64]:
        """The class of each value of the target, ``NO_LABEL`` where there is none."""
        texts, codes = coded_labels(column)
        known = [self.numbers.get(text, NO_LABEL) for text in texts]
        return np.array([*known, NO_LABEL], np.int64)[codes]

    def as_labels(self, classes: NDArray[np.int64]) -> NDArray[Any]:
        """As the classifier learns them."""
        return classes if self.many else classes == 1


def coded_labels(column: Any) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct labels of an Arrow column, and the place of each row's; -1 for none."""
    import pyarrow.types as t

    if not t.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = label_texts(column.dictionary.to_pandas())
    texts = sorted(set(labels.dropna()))
    place = {text: number for number, text in enumerate(texts)}
    places = labels.map(place).fillna(-1).to_numpy(np.intp)
    codes = column.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    return texts, np.append(places, -1)[codes.astype(np.intp)]


@dataclass(frozen=True)
class EncodedBatch:
    """Some rows; only what the passes of a fit need of an Arrow batch."""

    frame: pd.DataFrame

    @property
    def num_rows(self) -> int:
        return len(self.frame)


@dataclass(frozen=True)
class EncodedGroup(RowGroup):
    """The labelled rows of a row group.

    ``n_rows`` counts these, ``n_all`` the others too.
    """

    encoder: Encoder
    n_all: int

    def batches(self, names: list[str]) -> Iterator[Any]:
        """The classes, if only these are wanted, or the features."""
        if names == [self.encoder.label]:
            return self._labels()
        return (EncodedBatch(frame) for frame, _ in self.frames())

    def _labels(self) -> Iterator[Any]:
        import pyarrow as pa

        for batch in super().batches([self.encoder.target]):
            found = self.encoder.classes(batch.column(0))
            labels = self.encoder.as_labels(found[found != NO_LABEL])
            yield pa.record_batch([pa.array(labels)], [self.encoder.label])

    def frames(self, labels: bool = False) -> Iterator[tuple[pd.DataFrame, Any]]:
        """Encoded rows; with their labels, if these are wanted too."""
        encoder, gaps = self.encoder, self.n_rows < self.n_all
        names = list(encoder.sources)
        if labels or gaps:
            names.append(encoder.target)
        for batch in super().batches(names):
            classes = None
            if labels or gaps:
                classes = encoder.classes(batch.column(len(names) - 1))
                some = classes != NO_LABEL
                batch = batch.filter(some) if gaps else batch
                classes = encoder.as_labels(classes[some])
            yield encoder.schema.encode(batch.select(encoder.sources).to_pandas()), classes


class EncodedTable(ParquetTable):
    """A dataset whose rows are encoded as they are read.

    Parameters
    ----------
    path : str or path
    encoder : Encoder
    counts : list of int
        The labelled rows of each row group.
    """

    def __init__(self, path: Any, encoder: Encoder, counts: list[int]) -> None:
        super().__init__(path)
        self.encoder, self._counts = encoder, counts

    @cached_property
    def groups(self) -> list[RowGroup]:
        pairs = zip(super().groups, self._counts, strict=True)
        return [
            EncodedGroup(group.file, group.number, n, self.encoder, group.n_rows)
            for group, n in pairs
        ]

    def features(self, target: str, weight: str | None) -> list[str]:
        return self.encoder.schema.features

    def categories(
        self, tree: Any, names: list[str], through: Any
    ) -> tuple[Categories | None, NDArray[np.bool_]]:
        example = self.encoder.example
        mask = tree.categorical_mask(example)
        if not tree.wants_frame(example):
            return None, mask
        categories = Categories.learn(example)
        return categories, mask | categories.mask

    def doubles(
        self, batch: Any, categories: Categories | None, where: str
    ) -> NDArray[np.float64]:
        if categories is not None:
            return FrameTable(batch.frame, categories)[:]
        doubles: NDArray[np.float64] = batch.frame.to_numpy(np.float64)
        return doubles

    def hashes(
        self, batch: Any, block: NDArray[np.float64], targets: NDArray[np.uint8]
    ) -> Hashes:
        return row_hashes(batch.frame, targets)

    def digest(self) -> str:
        encoder = self.encoder
        said = (super().digest(), encoder.schema.as_dict(), dict(encoder.numbers))
        return sha256(repr(said).encode()).hexdigest()
