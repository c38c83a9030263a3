"""One object from a raw table to a decision."""

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
from .evaluation import Evaluation, evaluate, judge
from .guarantee import GUARANTEE, decide_by, promise
from .prediction import find_drift, predict
from .row import RowPredictor
from .source import DatasetRows, as_frame, is_path, why_in_blocks

if TYPE_CHECKING:
    import pandas as pd

    from ..explanation import Explained

REPORT_ROWS = 100_000
"""Rows of a large table that a page is made of."""


@dataclass(frozen=True, eq=False, repr=False)
class Model(ModelParts):
    """A model of a table: what its columns mean, a fitted vote, and how good it is.

    :func:`damvi.fit <damvi.model.fit>` makes it, and :func:`damvi.load <damvi.model.load>`
    reads it from a file. It is no estimator: it takes tables as they are (of pandas,
    polars or Arrow, or files), and gives answers in their words. The estimator in it is
    ``classifier``.

    Attributes
    ----------
    classifier : DAMVIClassifier or DAMVIVotingClassifier
        Fitted on ``schema.encode(table)`` and a target of False and True (the positive
        class), or of the places of the labels in ``target.classes``.
    schema : Schema
    target : Target
    training : Training
    scores : dict
        What the fit measured out of sample: plain values, ready for JSON. ``"models"`` has
        by model and measure the ``value``, its 90 % interval (``low``, ``high``) and
        ``spread``, ``"chances"`` what no skill would have, ``"by_class"`` the same of each
        of three or more classes, and ``"top"`` what a budget of flags finds;
        ``"verdicts"`` who is better, in words (:attr:`verdict`); ``"leaderboard"`` and
        ``"voters"`` each voter; ``"guarantee"`` the promise, with the ``figures`` at its
        threshold; ``"metric"``, ``"cost"``, ``"threshold"`` and ``"tuning"`` what the
        decisions rest on; ``"rows"``, ``"positives"`` or ``"classes"``, ``"rows_judged"``,
        ``"alike"`` and ``"unlabeled"`` the rows; ``"warnings"`` and ``"notes"`` the table;
        and ``"older"`` the figures of the model that it was fitted like, beside its own.
    made : dict
        How to repeat it: command, seed, data fingerprint, versions, date.
    profile : Profile or None
        What the columns held in training, in a few numbers each.

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
        """A table as a data frame, a file as the model's columns need it.

        ``target`` is the column of true answers, if it is not the model's own.
        """
        name = target or self.target.name
        return as_frame(table, self.schema, as_text=[name])

    def read_whole(
        self, table: Any, target: str | None = None, columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """The same of folders and patterns of parquet files too, with these columns."""
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
            Columns may come in any order, and others are ignored.
        id : str, optional
            A column of the table to stand first.
        columns : sequence of str
            More columns of the table, to stand beside the predictions.
        top : int, optional
            Only so many rows, those with the highest scores, the highest first.
        by : str, optional
            With ``top``: so many rows of each value of this column of the table, which
            stands beside them; values in the order in which they are met.
        strict : bool, default=False
            Whether a table that differs from the training rows is an error
            (:class:`damvi.drift.DriftError`), instead of a warning
            (:class:`damvi.drift.DriftWarning`).
        n_jobs : int, optional

        Returns
        -------
        predictions : DataFrame
            With the columns ``score`` (the vote, from -1 to 1), ``probability`` and
            ``decision`` (a label, as the target has it). Of three or more classes the
            decision, and a probability and a score of each class.
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
        """Score, probability and decision of one row, in about half a millisecond.

        The same as :meth:`predict` says of a table of this row, to the last bit, but for
        the comparison with the training rows, of which one row tells nothing. The first
        call of a model takes longer than the others; threads may share it.

        Parameters
        ----------
        row : mapping of str to values
            As a JSON request has it: each column that the model uses, and any others;
            None where there is no value.

        Returns
        -------
        prediction : dict
            What :meth:`predict` has in its columns, as plain Python values.

        Raises
        ------
        ValueError
            If a column that the model uses is not there, or holds a list.

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
        """What has changed since training, and what the model is worth on such rows.

        No true answers are needed. Where the table has some, what they lead to is set
        beside what was expected.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
        target : str, optional
            The column of true answers. Default: the model's, if it is there.
        label_shift : bool, default=False
            What is expected rests on P(y|x) being that of training. With True it rests on
            P(x|y) instead: the class rates are estimated from the votes, and probabilities
            and threshold are corrected for them.
        history : path, optional
            A file to which what is found is added, as one more batch; the page then shows
            all of them. The same rows given again take their own place.
        name : str, optional
            Of the batch. Default: that of the file.

        Returns
        -------
        drift : Drift
            With ``expected``, ``worth``, ``as_dict()``, ``as_frame()`` and ``save(path)``,
            which writes a page.
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
        """How good the model is on a table with true answers, with intervals.

        Training rows are recognised, and judged as the fit judged them: by voters, weights
        and thresholds that had not seen them.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            Rows without an answer are left out. Folders and patterns of parquet files, and
            files that are large for the memory, are read in blocks.
        target : str, optional
            The column of true answers. Default: the model's.
        cost : (false alarm, miss), optional
            Default: those that the model was fitted with, if any.
        top : int, optional
            Also say what is found if so many rows are looked into, those with the highest
            scores.

        Returns
        -------
        evaluation : Evaluation
            With ``figures``, ``table`` (a DataFrame of the main ones), ``top`` and
            ``as_dict()``.
        """
        rows = self._rows(table, target)
        return evaluate(self, rows, target, cost, top, n_jobs=cpu_count())

    def _rows(self, table: Any, target: str | None) -> pd.DataFrame | DatasetRows:
        """Rows with true answers, in memory or in blocks."""
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
        """A threshold with a promise, from rows that the model has never seen.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            With true answers. Training rows are recognised, and left out.
        recall, precision, false_alarm_rate : float, optional
            One of them: what is to be kept on rows to come, at least or (false alarms, the
            share of the negatives that is flagged) at most.
        confidence : float, default=0.9
            How sure the promise is to be.
        target : str, optional
            The column of true answers. Default: the model's.

        Returns
        -------
        promise : Guarantee
            ``print`` it to read it. Its ``threshold`` is None if the rows cannot support
            the promise; if they do, :meth:`with_guarantee` gives the model that keeps it.

        Examples
        --------
        >>> import numpy as np, pandas as pd, damvi
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["size", "age"])
        >>> table["late"] = table["size"] + 0.3 * rng.normal(size=3000) > 2
        >>> model = damvi.fit(table[:1500], "late", pool="trees")
        >>> promise = model.guarantee(table[1500:], recall=0.8)
        >>> print(promise.words)
        recall of at least 0.8 with 90 % confidence (by 43 positives)
        >>> keeps = model.with_guarantee(promise)
        """
        given = {
            "recall": recall,
            "precision": precision,
            "false_alarm_rate": false_alarm_rate,
        }
        asked = {name: level for name, level in given.items() if level is not None}
        if len(asked) != 1:
            raise ValueError(f"one promise at a time: give one of {', '.join(given)}")
        rate, level = parse_guarantee(asked)
        judged, _ = judge(self, self._rows(table, target), target, cpu_count())
        return promise(self, judged, rate, level, confidence)

    def with_guarantee(self, promise: Guarantee) -> Model:
        """The same model, with the threshold of a promise; it is saved with it.

        Parameters
        ----------
        promise : Guarantee
            With a threshold, from :meth:`guarantee`.
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
        """What a newer model of the same target does otherwise, on the same rows.

        Training rows of either are recognised, and judged by voters, weights and thresholds
        of it that had not seen them.

        Parameters
        ----------
        other : Model
            The newer one. Differences are its figures less those of this one.
        table : DataFrame, Arrow table or path
            With true answers in some rows for AP, F1 and cost; without, the decisions alone
            are compared.
        target : str, optional
            The column of true answers. Default: the models', if it is there.
        cost : (false alarm, miss), optional
            Default: those that the models were fitted with, if they agree.
        top : int, optional
            Also compare the hits among so many rows, those with the highest scores of each
            model. Default: as many as both were fitted to flag, if they agree.
        id, columns : str and sequence of str, optional
            Columns of the table to stand beside the rows on which the models differ.

        Returns
        -------
        differences : Differences
            With ``table`` (figures), ``rows`` (on which they differ), ``agreement`` and
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
            raise TypeError(f"a model is compared with a model, and not {other!r}")
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
        """Which rows a person should look at, and why.

        Of rows without a label, the likeliest positives (of three or more classes, the rows
        that are least likely of the most frequent one): those that are flagged, and then
        those closest below the threshold. Of rows with one, those whose label the vote
        contradicts, by the chance that the label is wrong; training rows are recognised,
        and judged by voters, weights and thresholds that had not seen them. Where a table
        has both, each kind gets half of the budget.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
        budget : int, default=50
            How many rows there is time for.
        target : str, optional
            The column of labels. Default: the model's, if it is there.
        doubt : {"missed", "any"}, default="missed"
            Which labels may be wrong: where a rare row was missed, and so has the most
            frequent label; or any. Who knows how the labels came about knows which. A hard
            positive looks like a wrong one, so doubt of all labels finds fewer wrong ones.
        id, columns : str and sequence of str, optional
            Columns of the table to stand beside the rows.

        Returns
        -------
        review : Review
            With ``rows`` (a DataFrame), ``words`` and ``as_dict()``.

        Notes
        -----
        The chance that a label is wrong is Bayes' rule on the calibrated probabilities,
        with how often rows of each class are labelled as of another, by confident learning
        (:func:`damvi.review.label_noise`). It takes a label to be wrong by the class of the
        row alone, whatever else is in it.

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
        (True, "the vote is for 'yes', not 'no'")
        """
        carried = _carried(id, columns)
        frame = self.read_whole(table, target, carried)
        return review(self, frame, budget, target=target, doubt=doubt, carried=carried)

    def explain(
        self, table: Any, rows: Sequence[int] | None = None, *, label: Any = None
    ) -> Explained:
        """What the model looks at, and what makes up the scores of some rows.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            It also gives the rows to compare with.
        rows : sequence of int, optional
            Counted from 1. Default: the 20 with the highest votes for the positive class,
            or, of three or more classes, with the least votes for the most frequent.
        label : optional
            The class whose votes to explain, of three or more. Default: the one decided
            for.

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
        """Write one HTML page about the model on a table, and return what it shows.

        Parameters
        ----------
        table : DataFrame, Arrow table or path
            Of folders and patterns of parquet files, and of files that are large for the
            memory, a sample of 100,000 rows.
        path : path
            Of the page.
        target : str, optional
            The column of true answers. Default: the model's, if it is there.
        name, command : str
            Of the table, and what the page was made by; both are shown on it.
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
        """Whether the vote is better than its peers and the best single model, in words.

        What ``damvi fit`` says below the scores, with 90 % intervals of the differences,
        and ``print(model)`` shows. Nothing was compared with a single voter.
        """
        return "\n".join(in_python(text) for text in self.scores.get("verdicts", []))

    def leaderboard(self) -> pd.DataFrame:
        """Each voter alone, the plain vote and the weighted one: the best first.

        Returns
        -------
        table : DataFrame
            Indexed by the names of the voters, with the columns ``AP``, ``F1`` and ``cost``
            (a row), all out of sample; ``seconds`` that the trainings took, the folds
            included, and what was compiled for them in a new process; and ``weight``, which
            is 0 of voters that ``prefer="speed"`` left out. Of
            three or more classes AP and F1 are macro means. Trees that are judged in the
            order of time have no figures one by one: whole fits judge the rows there.
            Without costs any mistake costs 1. A single model that is picked from the top of
            this table was lucky too; "best single model" counts that, since it is chosen
            without the rows that it is judged on. Whether the vote is better than that, by
            more than chance, :attr:`verdict` says. For a budget of flags all but
            single trees flag as many rows here, those with the highest votes.
        """
        import pandas as pd

        rows = self.scores.get("leaderboard", [])
        table = pd.DataFrame(rows, columns=["model", "AP", "F1", "cost", "weight"])
        spent = dict(self.made.get("seconds", {}))
        spent[PLAIN] = spent.get(WEIGHTED, np.nan)
        if self.made.get("pool") == "trees":  # they are grown together
            one = spent[PLAIN] / len(self.classifier.weights_)
            spent = dict.fromkeys(FittedVote(self.classifier).names, one) | spent
        table.insert(4, "seconds", [spent.get(name, np.nan) for name in table["model"]])
        table = table.set_index("model").astype(float)
        metric = self.scores.get("metric", "")
        by = "cost" if metric == "cost" else "AP" if metric.endswith("ap") else "F1"
        return table.sort_values(by, ascending=by == "cost", kind="stable")

    def save(self, path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> None:
        """Save it in a file that runs no code when loaded; see :func:`damvi.io.save`."""
        save(self, path, trusted=trusted)

    def _headline(self) -> str:
        return f"Model of {self.target.name!r}: {self.target.headline(self.scores)}"

    def _judged(self) -> str:
        """How the figures were come by."""
        scores = self.scores
        first = scores.get("rows", 0) - scores.get("rows_judged", 0)
        if "windows" not in self.made or first <= 0:
            return "out of sample"
        return (
            f"out of sample, in the order of time ({first:,} rows first, which only train)"
        )

    def _figures(self) -> dict[str, dict[str, float]]:
        """The main figures, out of sample, by what they are called."""
        own = promised_figures(self.scores)
        return {MEASURES[name]: own[name] for name in headlines(own)}

    def _notes(self) -> list[str]:
        scores, verdict = self.scores, self.verdict.splitlines()
        top = scores.get("top", {}).get("words")
        told = [top] if top else []
        if GUARANTEE in scores:
            promised = scores[GUARANTEE]
            if promised["threshold"] is None:
                told.append(f"no guarantee: {promised['words']}")
            else:
                cut = f"by flagging votes above {promised['threshold']:.4g}"
                told.append(f"guarantee: {promised['words']}, {cut}")
                told += [promised["price"], promised["basis"]]
                if verdict:
                    metric = scores.get("metric", "f1")
                    metric = "f1" if metric == "ap" else metric  # which has no threshold
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
        head = f"<tr><th></th><th>{self._judged()}</th><th>90 % interval</th></tr>"
        return (
            f"<p>{escape(self._headline())}</p>"
            + (f"<table>{head}{rows}</table>" if rows else "")
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def _carried(id: str | None, columns: Any) -> list[str]:
    """The columns of a table that stand beside its rows, the id first."""
    more = [columns] if isinstance(columns, str) else columns
    return [*([] if id is None else [id]), *more]


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> Model | DAMVIClassifier | DAMVIVotingClassifier:
    """What a model file holds: a model of a table, or an estimator. It runs no code.

    See :func:`damvi.io.save` for an example. A loaded estimator predicts as it did before.
    The votes on the training rows are not in the file, so ``reweigh`` needs a new ``fit``.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        Full names of further types that voters may hold, if you trust the file's source.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, or of another format.
    """
    found = load_parts(path, trusted=trusted)
    return Model(**vars(found)) if isinstance(found, ModelParts) else found
