"""Write a JSON specification of how raw rows become the inputs of an ONNX graph.

A graph takes numbers and categories, but raw tables hold amounts, dates, text and
high-cardinality categories. ``examples/service/onnx_reader.py`` implements this
specification with numpy alone; it is short, so that a service can copy or port it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import write_whole
from ..tables.encoding import LONGEST_TEXT, N_BUCKETS, Levels, Words
from ..tables.schema import OTHER, Column
from ..tables.values import MISSING, SAME, SINCE
from .onnx_export import to_onnx
from .state import ModelParts

FORMAT = "damvi feeder 1"


def export_onnx(model: ModelParts, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Export a model as an ONNX graph, with a specification of its inputs next to it.

    Parameters
    ----------
    model : Model
    path : path
        Path of the graph; the specification gets ``.json`` appended.

    Returns
    -------
    written : dict
        The paths ``graph`` and ``feeder``, and the names of ``inputs`` and ``outputs``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd, damvi
    >>> from damvi.io import export_onnx
    >>> table = pd.DataFrame({"size": np.arange(400.0) % 37, "shop": list("abcd") * 100})
    >>> late = table["size"] + 9 * np.random.default_rng(0).normal(size=400) > 36
    >>> table["late"] = np.where(late, "yes", "no")
    >>> model = damvi.fit(table, "late", pool="trees", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(model, f"{folder}/model.onnx")["inputs"]
    ['size', 'shop']
    """
    graph = to_onnx(
        model.classifier,
        labels=model.target.texts,
        unknown={
            column.name: _other(column)
            for column in model.schema.used
            if column.kind == "category"
        },
        categories={
            name: range(len(encoder) + 1)
            for name, encoder in model.schema.encoders.items()
            if isinstance(encoder, Levels)
        },
    )
    columns = {prop.key: prop.value for prop in graph.metadata_props}["damvi.columns"]
    spec = feeder(model, {name: tensor for tensor, name in json.loads(columns).items()})
    content, beside = graph.SerializeToString(), Path(f"{os.fspath(path)}.json")
    spec["graph"] = sha256(content).hexdigest()  # detects a mismatched pair
    write_whole(Path(path), content)
    write_whole(beside, json.dumps(spec, ensure_ascii=False, indent=1).encode())
    return {
        "graph": str(path),
        "feeder": str(beside),
        "inputs": [tensor.name for tensor in graph.graph.input],
        "outputs": [tensor.name for tensor in graph.graph.output],
    }


def feeder(model: ModelParts, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return the specification as plain values, ready for JSON.

    ``inputs`` maps encoded columns to the graph's input names.
    """
    target = model.target
    return {
        "format": FORMAT,
        "target": target.name,
        "decisions": dict(zip(target.texts, target.as_given(), strict=True)),
        "missing": list(MISSING),
        "columns": [_column(column, inputs) for column in model.schema.used],
    }


def _other(column: Column) -> str | None:
    """Return the schema's category for unknown values."""
    return OTHER if column.categories[-1:] == (OTHER,) else None


def _column(column: Column, inputs: Mapping[str, str]) -> dict[str, Any]:
    named = [inputs[name] for name in column.features]
    told: dict[str, Any] = {"name": column.name, "kind": column.kind}
    encoder = column.encoder
    if column.kind == "number":
        units = [column.unit] if column.unit else []
        units += [name for name, unit in SAME.items() if unit == column.unit]
        told |= {"input": named[0], "decimal": column.decimal, "group": column.group}
        told["units"] = units
    elif column.kind == "category":
        known = [text for text in column.categories if text != OTHER]
        told |= {"input": named[0], "categories": known, "other": _other(column) or ""}
    elif isinstance(encoder, Levels):
        told |= {"input": named[0], "frequency": named[1:], "hash": "blake2b, 8 bytes"}
        told["hashes"] = _packed(encoder.hashes.astype("<u8"))
        told["counts"] = _packed(encoder.counts.astype("<u4"))
    elif isinstance(encoder, Words):
        told |= {"inputs": named, "longest": LONGEST_TEXT, "buckets": N_BUCKETS}
        told |= {"hash": "murmur3, 32 bits", "letters": [3, 5], "words": [1, 2]}
        places = [encoder.parts.index(part) for part in column.parts]
        told["weights"] = _packed(encoder.weights.astype("<f4"))
        told["directions"] = _packed(encoder.directions[:, places].astype("<f4"))
    else:
        parts = zip(named, column.parts, strict=True)
        told["form"] = column.form or "ISO8601"
        told["parts"] = [
            {"input": name, "since": part.removeprefix(SINCE)}
            if part.startswith(SINCE)
            else {"input": name, "part": part}
            for name, part in parts
        ]
    return told


def _packed(values: NDArray[Any]) -> str:
    """Encode an array as base64, row-major and little-endian."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
