"""The model of a table: from raw rows to decisions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import cpu_count

from ..classifier import DAMVIClassifier
from ..decision import Guarantee
from ..decision.guarantees import parse_guarantee
from ..drift import Drift
from ..evaluation import (
    MEASURES,
    Differences,
    FittedVote,
    alike_columns,
    differences,
    headlines,
)
from ..io import ModelParts, save
from ..io import load as load_parts
from ..messages import in_python
from ..review import Review, review
from ..voting import DAMVIVotingClassifier
from .comparison import PLAIN, WEIGHTED, promised_figures
from .dataset import DatasetRows
from .evaluation import Evaluation, evaluate, judge
from .guarantee import GUARANTEE, decide_by, promise
from .prediction import find_drift, predict
from .row import RowPredictor
from .table import as_frame, is_path, why_in_blocks

if TYPE_CHECKING:
    import pandas as pd

    from ..explanation import Explained

REPORT_ROWS = 100_000
"""Rows of a large table to use for a report."""


@dataclass(frozen=True, eq=False, repr=False)
class Model(ModelParts):
    """A model of a table: its column schema, a fitted vote, and its scores.

    Create one with :func:`damvi.fit <damvi.model.fit>`, or read it from a file with
    :func:`damvi.load <damvi.model.load>`. It is not an estimator: it takes raw tables
    (pandas, polars, Arrow or files) and returns their labels. The estimator inside is
    ``classifier``.

    Attributes
    ----------
    classifier : DAMVIClassifier or DAMVIVotingClassifier
        Fitted on ``schema.encode(table)``, with True for the positive class, or with
        indices into ``target.classes``.
    schema : Schema
    target : Target
    training : TrainingRows
    scores : dict
        Out-of-sample scores from the fit, as plain values ready for JSON. ``"models"`` has,
        by model and score, the ``value``, its 90% interval (``low``, ``high``) and
        ``spread``; ``"by_class"`` the same for each of three or more classes; ``"chances"``
        the chance levels; ``"top"`` what an alert budget finds; ``"verdicts"`` the
        comparisons in words (:attr:`verdict`); ``"leaderboard"`` and ``"voters"`` each
        voter; ``"guarantee"`` the guarantee, with the ``figures`` at its threshold;
        ``"metric"``, ``"cost"``, ``"threshold"`` and ``"tuning"`` how decisions are made;
        ``"rows"``, ``"positives"`` or ``"classes"``, ``"rows_judged"``, ``"alike"`` and
        ``"unlabeled"`` describe the rows; ``"warnings"`` and ``"notes"`` the table; and
        ``"older"`` compares with the model given as ``like``.
    made : dict
        Provenance: command, seed, data fingerprint, versions, date.
    profile : Profile or None
        A profile of the columns in training.

    Examples
    --------
    >>> import numpy as np, pandas as pd, damvi
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"size": rng.normal(size=400), "shop": list("abcd") * 100})
    >>> table["late"] = np.where(table["size"] + rng.normal(size=400) > 2, "yes", "no")
    >>> model = damvi.fit(table, "late", pool="trees")
    >>> print(str(model).splitlines()[0])
    Model of 'late': 'yes' against 'no' in 400 rows, 33 of them positive (8.25%)
    >>> model.leaderboard().loc[["weighted vote", "plain vote"], ["AP", "F1"]].shape
    (2, 2)
    """

    def read(self, table: Any, target: str | None = None) -> pd.DataFrame:
        """Read a table as a data frame, by the model's schema.

        ``target`` is the column of true labels, if it is not the model's target.
        """
        name = target or self.target.name
        return as_frame(table, self.schema, as_text=[name])

    def read_whole(
        self, table: Any, target: str | None = None, columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """As :meth:`read`, also for folders and patterns, with further columns."""
        if why_in_blocks(table) is None:
            return self.read(table, target)
        more = [*([] if target is None else [target]), *columns]
        also = [self.target.name, *alike_columns(self)]
        return DatasetRows(table, self.schema, more, also).frame()

    def predict(
        self,
        table: Any,
        id: str | None = None,
        columns: Sequence[str] = (),
        *,
        top: int | None = None,
        by: str | None = None,
        strict: bool = False,
        n_jobs: int | None = None,
    ) -> pd.DataFrame:
        """Score, probability and decision for each row of a table.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            Columns may be in any order; extra ones are ignored.
        id : str, optional
            A column of the table to put first, such as an id.
        columns : sequence of str
            More columns of the table to include.
        top : int, optional
            Return only the ``top`` highest-scoring rows, highest first.
        by : str, optional
            With ``top``: that many rows for each value of this column, which is included.
            Values come in order of appearance.
        strict : bool, default=False
            Raise a :class:`damvi.drift.DriftError` if the table has drifted from the
            training rows, instead of a :class:`damvi.drift.DriftWarning`.
        n_jobs : int, optional

        Returns
        -------
        predictions : DataFrame
            With the columns ``score`` (the vote, from -1 to 1), ``probability`` and
            ``decision`` (a label, as in the target). With three or more classes: the
            decision, and a probability and a score for each class.
        """
        return predict(
            self,
            table,
            id=id,
            columns=columns,
            top=top,
            by=by,
            strict=strict,
            n_jobs=n_jobs,
        )

    def predict_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Score, probability and decision for one row, in about half a millisecond.

        The result is identical to :meth:`predict` on a table with this row, but there is no
        drift check. The first call takes longer. Thread-safe.

        Parameters
        ----------
        row : mapping of str to values
            Such as a JSON request: a value for each column that the model uses, None if
            missing. Extra columns are ignored.

        Returns
        -------
        prediction : dict
            The columns of :meth:`predict`, as plain Python values.

        Raises
        ------
        ValueError
            If a column that the model uses is absent or holds a list.

        Examples
        --------
        >>> import numpy as np, pandas as pd, damvi
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"size": rng.normal(size=400), "shop": list("abcd") * 100})
        >>> table["late"] = np.where(table["size"] + rng.normal(size=400) > 2, "yes", "no")
        >>> model = damvi.fit(table, "late", pool="trees", random_state=0)
        >>> told = model.predict_row({"size": 2.8, "shop": "a"})
        >>> list(told), told["decision"]
        (['score', 'probability', 'decision'], 'yes')
        """
        known = vars(self).get("_row")
        if known is None or not known.is_current:
            known = vars(self)["_row"] = RowPredictor(self)
        return known(row)

    def __getstate__(self) -> dict[str, Any]:
        return {name: own for name, own in vars(self).items() if name != "_row"}

    def drift(
        self,
        table: Any,
        *,
        target: str | None = None,
        label_shift: bool = False,
        history: str | os.PathLike[str] | None = None,
        name: str = "",
    ) -> Drift:
        """Data drift since training, and the expected scores on these rows.

        No labels are needed. If the table has some, the achieved scores are shown next to
        the expected ones.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
        target : str, optional
            The column of true labels. Default: the model's target, if present.
        label_shift : bool, default=False
            By default, P(y|x) is assumed to be as in training. With True, P(x|y) is
            instead: class rates are estimated from the votes, and probabilities and
            threshold are corrected for them.
        history : path, optional
            A history file to add this batch to; the report then shows all batches. The
            same rows given again replace their earlier entry.
        name : str, optional
            Name of the batch. Default: the file name.

        Returns
        -------
        drift : Drift
            With ``expected``, ``worth``, ``as_dict()``, ``as_frame()`` and ``save(path)``,
            which writes an HTML report.
        """
        return find_drift(
            self, table, target=target, label_shift=label_shift, history=history, name=name
        )

    def evaluate(
        self,
        table: Any,
        *,
        target: str | None = None,
        cost: tuple[float, float] | None = None,
        top: int | None = None,
    ) -> Evaluation:
        """Evaluate the model on a labelled table, with confidence intervals.

        Training rows are recognised and scored out of sample, as in the fit: by voters,
        weights and thresholds that never saw them.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            Unlabelled rows are dropped. Folders and patterns of parquet files, and files
            too large for memory, are read in blocks.
        target : str, optional
            The column of true labels. Default: the model's target.
        cost : (false alarm, miss), optional
            Default: the costs that the model was fitted with, if any.
        top : int, optional
            Also report what is found among the ``top`` highest scores.

        Returns
        -------
        evaluation : Evaluation
            With ``figures``, ``table`` (a DataFrame of the scores), ``top`` and
            ``as_dict()``.
        """
        rows = self._rows(table, target)
        return evaluate(self, rows, target, cost, top, n_jobs=cpu_count())

    def _rows(self, table: Any, target: str | None) -> pd.DataFrame | DatasetRows:
        """Labelled rows, in memory or in blocks."""
        if why_in_blocks(table) is None:
            return self.read(table, target)
        name, also = target or self.target.name, alike_columns(self)
        return DatasetRows(table, self.schema, [name], also)

    def guarantee(
        self,
        table: Any,
        *,
        recall: float | None = None,
        precision: float | None = None,
        false_alarm_rate: float | None = None,
        confidence: float = 0.9,
        target: str | None = None,
    ) -> Guarantee:
        """A threshold that guarantees a rate, from rows that the model has never seen.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            A labelled table. Training rows are recognised and left out.
        recall, precision, false_alarm_rate : float, optional
            Give exactly one: the minimum recall or precision on new rows, or the maximum
            share of negatives that are flagged.
        confidence : float, default=0.9
            The confidence of the guarantee.
        target : str, optional
            The column of true labels. Default: the model's target.

        Returns
        -------
        promise : Guarantee
            ``print`` it to read it. Its ``threshold`` is None if the rows cannot support
            the guarantee; otherwise :meth:`with_guarantee` gives the model that uses it.

        Examples
        --------
        >>> import numpy as np, pandas as pd, damvi
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["size", "age"])
        >>> table["late"] = table["size"] + 0.3 * rng.normal(size=3000) > 2
        >>> model = damvi.fit(table[:1500], "late", pool="trees")
        >>> promise = model.guarantee(table[1500:], recall=0.8)
        >>> print(promise.words)
        recall of at least 0.8 with 90% confidence (by 43 positives)
        >>> keeps = model.with_guarantee(promise)
        """
        given = {
            "recall": recall,
            "precision": precision,
            "false_alarm_rate": false_alarm_rate,
        }
        asked = {name: level for name, level in given.items() if level is not None}
        if len(asked) != 1:
            raise ValueError(f"give exactly one of {', '.join(given)}")
        rate, level = parse_guarantee(asked)
        judged, _ = judge(self, self._rows(table, target), target, cpu_count())
        return promise(self, judged, rate, level, confidence)

    def with_guarantee(self, promise: Guarantee) -> Model:
        """The same model with the threshold of a guarantee, which is saved with it.

        Parameters
        ----------
        promise : Guarantee
            From :meth:`guarantee`, with a threshold.
        """
        return Model(**vars(decide_by(self, promise)))

    def compare(
        self,
        other: ModelParts,
        table: Any,
        *,
        target: str | None = None,
        cost: tuple[float, float] | None = None,
        top: int | None = None,
        id: str | None = None,
        columns: Sequence[str] = (),
    ) -> Differences:
        """Compare with a newer model of the same target on the same rows.

        Training rows of either model are recognised and scored out of sample.

        Parameters
        ----------
        other : Model
            The newer model. Differences are its scores minus those of this one.
        table : DataFrame, Arrow table or path
            With at least some labels for AP, F1 and cost; without any, only the decisions
            are compared.
        target : str, optional
            The column of true labels. Default: the models' target, if present.
        cost : (false alarm, miss), optional
            Default: the costs that the models were fitted with, if they agree.
        top : int, optional
            Also compare the hits among each model's ``top`` highest scores. Default: the
            alert budget that both were fitted for, if they agree.
        id, columns : str and sequence of str, optional
            Columns to show with the rows on which the models differ.

        Returns
        -------
        differences : Differences
            With ``table`` (scores), ``rows`` (on which they differ), ``agreement`` and
            ``as_dict()``.

        Examples
        --------
        >>> import numpy as np, pandas as pd, damvi
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame(rng.normal(size=(400, 2)), columns=["size", "age"])
        >>> table["late"] = table["size"] + rng.normal(size=400) > 2
        >>> old = damvi.fit(table[:200], "late", pool="trees")
        >>> new = damvi.fit(table, like=old)
        >>> found = old.compare(new, table)
        >>> list(found.table.index), bool(found.agreement > 0.5)
        (['AP', 'F1', 'flags'], True)
        """
        if not isinstance(other, ModelParts):
            raise TypeError(f"other must be a model, not {other!r}")
        carried = _carried(id, columns)
        pair = (self, Model(**vars(other)))
        one, two = (model.read_whole(table, target, carried) for model in pair)
        how: Any = {"target": target, "cost": cost, "top": top, "carried": carried}
        return differences(pair, (one, two), **how)

    def review(
        self,
        table: Any,
        budget: int = 50,
        *,
        target: str | None = None,
        doubt: str = "missed",
        id: str | None = None,
        columns: Sequence[str] = (),
    ) -> Review:
        """Pick the rows that are worth a human look, and say why.

        Among unlabelled rows, these are the likeliest positives (with three or more
        classes, the rows least likely to be of the majority class): flagged rows first,
        then those just below the threshold. Among labelled rows, these are the ones whose
        label the vote contradicts, ranked by the chance that the label is wrong. Training
        rows are recognised and scored out of sample. If a table has both kinds, each gets
        half of the budget.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
        budget : int, default=50
            How many rows to pick.
        target : str, optional
            The column of labels. Default: the model's target, if present.
        doubt : {"missed", "any"}, default="missed"
            Which labels may be wrong: only the most frequent one (rare rows that were
            missed), or any. Choose by how the labels came about. A hard positive looks like
            a wrong label, so "any" finds fewer real errors.
        id, columns : str and sequence of str, optional
            Columns to show with the rows.

        Returns
        -------
        review : Review
            With ``rows`` (a DataFrame), ``words`` and ``as_dict()``.

        Notes
        -----
        The chance that a label is wrong comes from Bayes' rule with the calibrated
        probabilities and label error rates estimated by confident learning
        (:func:`damvi.review.label_noise`). It assumes that label errors depend only on the
        class of a row.

        Examples
        --------
        >>> import numpy as np, pandas as pd, damvi
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame(rng.normal(size=(400, 2)), columns=["size", "age"])
        >>> table["late"] = np.where(table["size"] > 1.5, "yes", "no")
        >>> table.loc[table["size"].idxmax(), "late"] = "no"       # a wrong label
        >>> model = damvi.fit(table, "late", pool="trees")
        >>> first = model.review(table, budget=3).rows.iloc[0]
        >>> bool(first["row"] == table["size"].argmax() + 1), first["why"]
        (True, "the vote says 'yes'")
        """
        carried = _carried(id, columns)
        frame = self.read_whole(table, target, carried)
        return review(self, frame, budget, target=target, doubt=doubt, carried=carried)

    def explain(
        self, table: Any, rows: Sequence[int] | None = None, *, label: Any = None
    ) -> Explained:
        """Explain what the model relies on, and the scores of some rows.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            Background rows are drawn from it, too.
        rows : sequence of int, optional
            Counted from 1. Default: the 20 with the highest votes for the positive class,
            or with three or more classes, the lowest votes for the majority class.
        label : optional
            With three or more classes, the class to explain. Default: the predicted one.

        Returns
        -------
        explained : Explained
            With ``as_dict()``.
        """
        from ..explanation import explain

        told = None if label is None else str(label)
        return explain(self, self.read(table), rows, label=told)

    def report(
        self,
        table: Any,
        path: str | os.PathLike[str],
        *,
        target: str | None = None,
        name: str = "",
        command: str = "",
    ) -> dict[str, Any]:
        """Write an HTML report on the model and a table, and return its contents.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            Folders and patterns of parquet files, and files too large for memory, are
            sampled to 100,000 rows.
        path : path
            The HTML file to write.
        target : str, optional
            The column of true labels. Default: the model's target, if present.
        name, command : str
            The name of the table and the command, both shown in the report.
        """
        from ..report import write_report

        name = name or (Path(table).name if is_path(table) else "")
        if why_in_blocks(table) is None:
            frame = self.read(table, target)
        else:
            rows = DatasetRows(table, self.schema, [] if target is None else [target])
            frame = rows.sample(REPORT_ROWS)
            if len(frame) < rows.table.n_rows:
                name += f", a sample of {len(frame):,} of {rows.table.n_rows:,} rows"
        return write_report(self, frame, path, target, name=name, command=command)

    @property
    def verdict(self) -> str:
        """How the vote compares with the baselines and the best single model, in words.

        This is what ``damvi fit`` prints below the scores, with 90% intervals of the
        differences. It is empty if there is only one voter.
        """
        return "\n".join(in_python(text) for text in self.scores.get("verdicts", []))

    def leaderboard(self) -> pd.DataFrame:
        """Scores of each voter, the plain vote and the weighted vote, best first.

        Returns
        -------
        table : DataFrame
            Indexed by voter, with the columns ``AP``, ``F1`` and ``cost`` (per row), all
            out of sample; ``seconds`` of training, including folds and compilation; and
            ``weight``, which is 0 for voters dropped by ``prefer="speed"``. With three or
            more classes, AP and F1 are macro means. Without costs, every error costs 1.
            Trees validated forward in time have no scores of their own. For an alert
            budget, the same number of rows is flagged for all but single trees.

        Notes
        -----
        A model picked from the top of this table has an optimistic score. "best single
        model" has not, since it is chosen without the rows it is scored on; :attr:`verdict`
        says whether the vote is significantly better.
        """
        import pandas as pd

        rows = self.scores.get("leaderboard", [])
        table = pd.DataFrame(rows, columns=["model", "AP", "F1", "cost", "weight"])
        spent = dict(self.made.get("seconds", {}))
        spent[PLAIN] = spent.get(WEIGHTED, np.nan)
        if self.made.get("pool") == "trees":  # trees are grown together
            one = spent[PLAIN] / len(self.classifier.weights_)
            spent = dict.fromkeys(FittedVote(self.classifier).names, one) | spent
        table.insert(4, "seconds", [spent.get(name, np.nan) for name in table["model"]])
        table = table.set_index("model").astype(float)
        metric = self.scores.get("metric", "")
        by = "AP" if metric in ("ap", "macro_ap") else "F1"
        if metric == "cost" and self.scores.get("cost"):
            by = "cost"
        return table.sort_values(by, ascending=by == "cost", kind="stable")

    def save(self, path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> None:
        """Save to a file that runs no code when loaded; see :func:`damvi.io.save`."""
        save(self, path, trusted=trusted)

    def _headline(self) -> str:
        return f"Model of {self.target.name!r}: {self.target.headline(self.scores)}"

    def _judged(self) -> str:
        """How the scores were computed."""
        scores = self.scores
        first = scores.get("rows", 0) - scores.get("rows_judged", 0)
        if "windows" not in self.made or first <= 0:
            return "out of sample"
        return (
            f"out of sample, forward in time (the first {first:,} rows only for training)"
        )

    def _figures(self) -> dict[str, dict[str, float]]:
        """The main out-of-sample scores by display name."""
        own = promised_figures(self.scores)
        return {MEASURES[name]: own[name] for name in headlines(own)}

    def _notes(self) -> list[str]:
        scores, verdict = self.scores, self.verdict.splitlines()
        top = scores.get("top", {}).get("words")
        told = [top] if top else []
        if GUARANTEE in scores:
            promised = scores[GUARANTEE]
            if promised["threshold"] is None:
                told.append(promised["words"])
            else:
                cut = f"by flagging votes above {promised['threshold']:.4g}"
                told.append(f"guarantee: {promised['words']}, {cut}")
                told += [promised["price"], promised["basis"]]
                if verdict:
                    metric = scores.get("metric", "f1")
                    metric = "f1" if metric == "ap" else metric  # AP has no threshold
                    told.append(f"Compared at thresholds tuned for {metric}:")
        more = [
            one for key in ("warnings", "notes", "older") for one in scores.get(key, [])
        ]
        return [*told, *verdict, *(in_python(text) for text in more)]

    def __repr__(self) -> str:
        told = [f"{name} {one['value']:.3f}" for name, one in self._figures().items()]
        lines = [f"{self._judged()}: {', '.join(told)}"] if told else []
        return "\n  ".join([self._headline(), *lines, *self._notes()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{one['value']:.3f}</td>"
            f"<td>{one['low']:.3f} to {one['high']:.3f}</td></tr>"
            for name, one in self._figures().items()
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._notes())
        head = f"<tr><th></th><th>{self._judged()}</th><th>90% interval</th></tr>"
        return (
            f"<p>{escape(self._headline())}</p>"
            + (f"<table>{head}{rows}</table>" if rows else "")
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def _carried(id: str | None, columns: Any) -> list[str]:
    """The columns to include with the rows, the id first."""
    more = [columns] if isinstance(columns, str) else columns
    return [*([] if id is None else [id]), *more]


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> Model | DAMVIClassifier | DAMVIVotingClassifier:
    """Load a model of a table, or an estimator, without running any code from the file.

    See :func:`damvi.io.save` for an example. A loaded estimator predicts as before. The
    votes on the training rows are not saved, so ``reweigh`` needs a new ``fit``.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        Full names of further types to allow, if you trust the source of the file.

    Raises
    ------
    ModelFileError
        If the file is damaged, malicious or of another format.
    """
    found = load_parts(path, trusted=trusted)
    return Model(**vars(found)) if isinstance(found, ModelParts) else found
