"""The sentences of the report."""

from __future__ import annotations

from typing import Any

from ..messages import counted

MEANINGS = {
    "precision": "share of flagged rows that are positive",
    "recall": "share of positives that are flagged",
    "f1": "harmonic mean of precision and recall",
    "ap": "average precision: how well the scores rank positives first, at any threshold",
    "roc_auc": "how often a positive scores above a negative; optimistic for rare classes",
    "macro_f1": "F1 averaged over the classes",
    "balanced_accuracy": "recall averaged over the classes",
    "macro_ap": "average precision averaged over the classes",
    "macro_roc_auc": "ROC AUC averaged over the classes",
    "accuracy": "share of rows classified correctly; large classes dominate",
    "mcc": "correlation of predictions and labels; 0 is chance, 1 is perfect",
    "brier": "mean squared error of the probabilities; lower is better",
}
MOST_LISTED = 5
AS_IT_DECIDES = "As the model decides"


def per_hundred(share: float | None) -> str:
    """A share as a number out of 100, with "<1" and ">99" at the ends.

    Examples
    --------
    >>> per_hundred(0.347), per_hundred(0.002), per_hundred(0.999), per_hundred(None)
    ('35', '<1', '>99', '–')
    """
    if share is None:
        return "–"
    value = 100 * share
    if 0 < value < 1:
        return "<1"
    return ">99" if 99 < value < 100 else str(int(value + 0.5))


def range_of_hundred(rate: dict[str, Any]) -> str:
    """The interval of a share, out of 100."""
    if rate["value"] is None:
        return "no rows"
    low, high = per_hundred(rate["low"]), per_hundred(rate["high"])
    return f"90% interval: {low} to {high}"


def of_hundred(rate: dict[str, Any]) -> tuple[str, str]:
    """A share out of 100 and its interval; blank if there are no rows."""
    if rate["value"] is None:
        return "–", ""
    low, high = per_hundred(rate["low"]), per_hundred(rate["high"])
    return per_hundred(rate["value"]), f"{low} to {high}"


def percent(share: float | None, digits: int = 3) -> str:
    """A share in percent, with enough digits for rare classes."""
    return "–" if share is None else f"{100 * share:.{digits}g}%"


def basis(summary: dict[str, Any]) -> str:
    """Which rows the report is about, in one short line."""
    data, n = summary["data"], f"{summary['data']['judged']:,}"
    if not summary["labelled"]:
        return (
            f"No labels: this shows what the model {wording(summary).acts}, not how well."
        )
    if data["of_fit"] == 0:
        return f"Evaluated on {n} rows that are new to the model."
    some = f" (one in {data['step']})" if data["step"] > 1 else ""
    if data["new"] == 0:
        return f"Evaluated out of sample on {n} training rows{some}."
    return f"Evaluated on {n} rows, training rows{some} out of sample."


def effect_words(effect: dict[str, Any], of: int) -> str:
    """The effect of a column on the probability of a class, in a sentence."""
    place = 0 if len(effect["chance"][0]) == 1 else of
    chances = [each[place] for each in effect["chance"]]
    low, high = (effect["values"][pick(chances)] for pick in (_least, _most))
    if effect["is_number"]:
        low, high = f"at {low:,.4g}", f"at {high:,.4g}"
    else:
        low, high = f"for {low}", f"for {high}"
    return (
        f"{effect['name']}: from {percent(min(chances), 2)} {low} to "
        f"{percent(max(chances), 2)} {high}."
    )


def _least(values: list[float]) -> int:
    return values.index(min(values))


def _most(values: list[float]) -> int:
    return values.index(max(values))


def _shared_out(classes: list[dict[str, Any]]) -> str:
    by_number = sorted(classes, key=lambda one: -one["named"]["part"])
    parts = [
        f"{_quoted(one)} for {one['named']['part']:,} of {one['named']['whole']:,} rows "
        f"({percent(one['named']['value'])})"
        for one in by_number[:MOST_LISTED]
    ]
    left = sum(one["named"]["part"] for one in by_number[MOST_LISTED:])
    return ", ".join([*parts, *([f"other classes for {left:,}"] if left else [])])


def _quoted(one: dict[str, Any]) -> str:
    """A quoted class name."""
    return f'"{one["name"]}"'


def there(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The classes that have rows."""
    return [one for one in summary["classes"] if one["rows"]]


def data_words(summary: dict[str, Any]) -> str:
    """Rows, classes and columns."""
    data = summary["data"]
    words, scored = counted(data["rows"], "row"), data["judged"]
    if scored < data["rows"]:  # classes are counted among these
        words = f"{counted(scored, 'scored row')} (of {data['rows']:,})"
    if summary["labelled"]:
        words += wording(summary).extent(summary)
    kinds = [column["kind"] for column in data["columns"]]
    words += f"; {counted(len(kinds) - kinds.count('dropped'), 'column')} used"
    if kinds.count("dropped"):
        words += f", {kinds.count('dropped')} dropped"
    words += f". {data['words']}"
    if data["without_truth"]:
        left = "unlabelled row was", "unlabelled rows were"
        words += f" {counted(data['without_truth'], *left)} left out."
    return words


def voter_words(summary: dict[str, Any]) -> str:
    """How the weight is spread over the voters, and how much they agree."""
    voters = summary["voters"]
    words = (
        f"The score is a weighted vote of {voters['voters']:,} models. "
        f"{voters['survived']:,} of them have nonzero weight; the top {voters['half']:,} "
        f"{'holds' if voters['half'] == 1 else 'hold'} half of it."
    )
    if not voters["known"]:
        return f"{words} {voters['why']}"
    pairs = voters["pairs"]
    if pairs["mean_kappa"] is not None:
        mean = f"{pairs['mean_kappa']:.2f}"
        words += f" Their mean agreement (Cohen's kappa) is {mean}"
        among = pairs["mean_kappa_weighted"]
        if among is not None and voters["survived"] < voters["voters"]:
            words += f", and {among:.2f} among voters with weight"
        words += "."
    where = "out-of-sample training rows" if voters.get("of_fit") else "new rows"
    return f"{words} Measured on {voters['rows']:,} {where}."


def hard_words(summary: dict[str, Any]) -> str:
    """What individual voters say about missed rows."""
    hard, say = summary["voters"].get("hard"), wording(summary)
    if not hard or not hard["total"]:
        return f"The vote misses no {say.hard}."
    total, none = hard["total"], hard["found_by_none"]
    return (
        f"The vote misses {total:,} {say.hard}. {total - none:,} of them {say.found} by at "
        f"least one voter. The other {none:,} are missed by all: check their labels, or "
        f"whether a column is missing."
    )


def promise_words(summary: dict[str, Any]) -> str:
    """The headline of the certificate."""
    found = summary["certificate"]
    words = f"With {percent(1 - found['delta'])} confidence, on new rows drawn like these "
    return words + wording(summary).promise(summary)


def lead(summary: dict[str, Any]) -> str:
    """The main result, in two or three sentences."""
    say = wording(summary)
    if not summary["labelled"]:
        return say.decisions(summary)
    return f"{AS_IT_DECIDES}: {say.found_of(summary)} {say.meaning(summary)}".strip()


class OneClass:
    """Wording for two classes: rows are flagged as positive, or not."""

    several = False
    acts = "flags"
    thresholds = "thresholds"
    hard = "positives"
    found = "would be flagged"
    speaks = "for the positive class"
    would = "flagged it."
    classes = "both"
    curve = (
        "Each point is a possible threshold. The dot is the one chosen above; the dashed "
        "line is chance."
    )
    roc = (
        "The same thresholds, by false-alarm rate. For rare classes this curve looks too "
        "good; trust the precision-recall curve."
    )
    distribution = "Number of rows by score. The dashed line is the model's threshold."
    covered = (
        "The bounds hold for rows drawn like these, provided these were not used before: "
        "not to train, tune, calibrate or select a model. They are for the model's own "
        "threshold, not for one chosen above."
    )
    bound_headings = ("bound", "missed", "false alarms", "all errors")
    segment_headings = (
        "segment",
        "rows",
        "positive",
        "flagged",
        "recall, %",
        "90% interval",
        "precision, %",
        "90% interval",
    )

    def decided(self, summary: dict[str, Any]) -> str:
        if summary["data"]["of_fit"]:
            return "At thresholds tuned on other rows"
        return f"At the model's own threshold (score above {summary['threshold']:.4g})"

    def decisions(self, summary: dict[str, Any]) -> str:
        flagged = summary["classes"][1]["named"]
        return (
            f"The model flags {flagged['part']:,} of {flagged['whole']:,} rows "
            f"({percent(flagged['value'])}) as {summary['target']['positive']}."
        )

    def found_of(self, summary: dict[str, Any]) -> str:
        """What is found; ``page.js`` has the same sentences for other thresholds."""
        real = summary["classes"][1]
        flagged = real["named"]["part"]
        if not real["rows"]:
            rows = counted(flagged, "row is", "rows are")
            return f"{rows} flagged, but there are no positives."
        if not flagged:
            return f"nothing is flagged, so all {real['rows']:,} positives are missed."
        return (
            f"out of 100 flagged rows, about {per_hundred(real['precision']['value'])} are "
            f"positive; out of 100 positives, about "
            f"{per_hundred(real['recall']['value'])} are found."
        )

    def meaning(self, summary: dict[str, Any]) -> str:
        target, real = summary["target"], summary["classes"][1]
        return (
            f"Positive means that '{target['name']}' is '{target['positive']}' "
            f"({percent(real['rate'])} of these rows)."
        )

    def segment(self, group: dict[str, Any]) -> list[str]:
        """A segment's counts and rates, as cells below ``segment_headings``."""
        precision, recall = group["precision"], group["recall"]
        return [
            group["name"],
            f"{group['rows']:,}",
            f"{recall['whole']:,}",
            f"{precision['whole']:,}",
            *of_hundred(recall),
            *of_hundred(precision),
        ]

    def extent(self, summary: dict[str, Any]) -> str:
        real = summary["classes"][1]
        return f", {real['rows']:,} of them positive ({percent(real['rate'])})"

    def promise(self, summary: dict[str, Any]) -> str:
        found = summary["certificate"]
        missed, alarms = found["missed_by_class"][1], found["flagged_by_class"][1]
        words = (
            f"at most {percent(missed['upper'])} of positives are missed and at most "
            f"{percent(alarms['upper'])} of negatives are flagged."
        )
        return words + _if_vacuous(missed, "flagging at random")

    def rates(self, summary: dict[str, Any], order: list[int]) -> dict[str, Any]:
        """The guaranteed rates, by name."""
        found = summary["certificate"]
        return {
            "positives missed": found["missed_by_class"][1],
            "negatives flagged": found["flagged_by_class"][1],
            "all errors": found["overall"],
        }

    def bound(self, made: dict[str, Any]) -> list[str]:
        """A PAC-Bayes bound, as cells below ``bound_headings``."""
        by_class = " (vacuous)" if made["vacuous_by_class"] else ""
        overall = " (vacuous)" if made["vacuous_overall"] else ""
        return [
            percent(made["missed"]) + by_class,
            percent(made["false_alarms"]) + by_class,
            percent(made["overall"]) + overall,
        ]


class EachClass:
    """Wording for three or more classes."""

    several = True
    acts = "predicts"
    thresholds = "class factors"
    hard = "rows of rare classes"
    found = "are classified correctly"
    speaks = "for the true class"
    would = "classified it correctly."
    classes = "all"
    curve = (
        "Each point is a possible weight of this class, with the others as in the model. "
        "The dot is the current choice; the dashed line is chance."
    )
    roc = (
        "The same, by the share of other rows predicted as this class. For a rare class "
        "this curve looks too good; trust the precision-recall curve."
    )
    distribution = (
        "Number of rows by share of the vote for this class. The class with the largest "
        "share times factor is predicted."
    )
    covered = (
        "The bounds for all classes hold together. They hold for rows drawn like these, "
        "provided these were not used before: not to train, tune, calibrate or select a "
        "model. They are for the model's own decisions, not for a weight chosen above."
    )
    bound_headings = ("bound", "all errors")
    segment_headings = ("segment", "rows", "correct, %", "90% interval")

    def decided(self, summary: dict[str, Any]) -> str:
        return "As the model decides"

    def decisions(self, summary: dict[str, Any]) -> str:
        return f"The model predicts {_shared_out(summary['classes'])}."

    def found_of(self, summary: dict[str, Any]) -> str:
        """What is found; ``page.js`` has the same sentences for other weights."""
        decision, classes = summary["decision"], there(summary)
        words = (
            f"out of 100 rows, about {per_hundred(decision['right']['value'])} are "
            f"classified correctly."
        )
        if not decision["mean_found"]:
            return f"{words} All of them are {_quoted(classes[0])}, so this says little."
        hardest = min(classes, key=lambda one: one["recall"]["value"])
        easiest = max(classes, key=lambda one: one["recall"]["value"])
        return (
            f"{words} Averaged over the classes, about "
            f"{per_hundred(decision['mean_found']['value'])} in 100 are found: most of "
            f"{_quoted(easiest)} ({per_hundred(easiest['recall']['value'])}), fewest of "
            f"{_quoted(hardest)} ({per_hundred(hardest['recall']['value'])})."
        )

    def meaning(self, summary: dict[str, Any]) -> str:
        return ""

    def segment(self, group: dict[str, Any]) -> list[str]:
        return [group["name"], f"{group['rows']:,}", *of_hundred(group["right"])]

    def extent(self, summary: dict[str, Any]) -> str:
        classes, known = summary["classes"], there(summary)
        words = f" of {len(known)} classes"
        if len(known) < len(classes):
            words += f" (the model knows {len(classes) - len(known)} more)"
        largest = max(known, key=lambda one: one["rows"])
        rarest = min(known, key=lambda one: one["rows"])
        return (
            f"{words}, from {_quoted(rarest)} ({percent(rarest['rate'])}) to "
            f"{_quoted(largest)} ({percent(largest['rate'])})"
        )

    def promise(self, summary: dict[str, Any]) -> str:
        found, overall = summary["certificate"], summary["certificate"]["overall"]
        words = f"at most {percent(overall['upper'])} of all predictions are wrong."
        words += _if_vacuous(overall, "always predicting the largest class")
        told = [k for k, one in enumerate(found["missed_by_class"]) if not one["vacuous"]]
        if told:
            best = min(told, key=lambda k: found["missed_by_class"][k]["upper"])
            words += (
                f" The tightest bound for a class: at most "
                f"{percent(found['missed_by_class'][best]['upper'])} of "
                f"{_quoted(summary['classes'][best])} are missed."
            )
        return words

    def rates(self, summary: dict[str, Any], order: list[int]) -> dict[str, Any]:
        found, classes = summary["certificate"], summary["classes"]
        rates = {"all errors": found["overall"]}
        for c in order:
            name = classes[c]["name"]
            rates[f"{name}: missed"] = found["missed_by_class"][c]
            rates[f"others predicted as {name}"] = found["flagged_by_class"][c]
        return rates

    def bound(self, made: dict[str, Any]) -> list[str]:
        return [percent(made["overall"])]


def wording(summary: dict[str, Any]) -> OneClass | EachClass:
    """The wording for the summary's target: two classes or more."""
    many = summary["target"]["positive"] is None
    return EachClass() if many else OneClass()


def _if_vacuous(rate: dict[str, Any], guess: str) -> str:
    if not rate["vacuous"]:
        return ""
    return f" This is no better than {guess}: there are too few rows."
