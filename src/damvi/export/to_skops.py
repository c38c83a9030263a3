"""A fitted classifier as a skops file, which loads without running code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._files import write_whole


def to_skops(model: Any, path: str | Path) -> list[str]:
    """Save a fitted model as a skops file, whole or not at all.

    Parameters
    ----------
    model : DAMVIClassifier or scikit-learn estimator
        Such as what :func:`to_sklearn` makes.
    path : str or Path

    Returns
    -------
    list of str
        The types in it that skops does not trust by itself. Whoever loads the file gives
        those that they trust: ``skops.io.load(path, trusted=[...])``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import skops.io
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.export import to_skops
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     types = to_skops(model, Path(folder) / "model.skops")
    ...     again = skops.io.load(Path(folder) / "model.skops", trusted=types)
    >>> types[0]
    'damvi.classifier.DAMVIClassifier'
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "skops files need the package skops: pip install 'damvi[export]'"
        ) from error
    content = skops.io.dumps(model)
    types: list[str] = skops.io.get_untrusted_types(data=content)
    write_whole(Path(path), content)
    return types
