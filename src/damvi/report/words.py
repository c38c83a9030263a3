"""The summary in sentences, for those who read nothing else."""

from __future__ import annotations

from typing import Any

from ..messages import counted

MEANINGS = {
    "precision": "share of the flagged rows that are real",
    "recall": "share of the real ones that are flagged",
    "f1": "one figure for both: their harmonic mean",
    "ap": "average precision: how well the scores rank real ones first, at any threshold",
    "roc_auc": "how often a real one scores above another row; flatters rare classes",
    "macro_f1": "precision and recall of a class in one figure, the mean over the classes",
    "balanced_accuracy": "share of a class's rows that are found, mean over the classes",
    "macro_ap": "how well the votes rank rows of a class first, the mean over the classes",
    "macro_roc_auc": "how often a row of a class has more votes for it than another row",
    "accuracy": "share of all rows given their right class; large classes count most",
    "mcc": "correlation of decisions and truth; 0 is chance, 1 is perfect",
    "brier": "squared error of the probabilities; lower is better",
}
MOST_LISTED = 5
AS_IT_DECIDES = "As the model decides"


def per_hundred(share: float | None) -> str:
    """A share as a number out of 100 that hides neither a few nor a rest.

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
    """The interval of a share."""
    if rate["value"] is None:
        return "no rows to count"
    low, high = per_hundred(rate["low"]), per_hundred(rate["high"])
    return f"{low} to {high}, with 90 % confidence"


def of_hundred(rate: dict[str, Any]) -> tuple[str, str]:
    """A share out of 100, and its interval; blank where there are no rows."""
    if rate["value"] is None:
        return "–", ""
    low, high = per_hundred(rate["low"]), per_hundred(rate["high"])
    return per_hundred(rate["value"]), f"{low} to {high}"


def percent(share: float | None, digits: int = 3) -> str:
    """A share in percent, with digits enough for rare things."""
    return "–" if share is None else f"{100 * share:.{digits}g} %"


def basis(summary: dict[str, Any]) -> str:
    """Which rows this is about, in one short line that nobody can miss."""
    data, n = summary["data"], f"{summary['data']['judged']:,}"
    if not summary["labelled"]:
        return f"No true answers: what the model {wording(summary).acts}, not how well."
    if data["of_fit"] == 0:
        return f"Judged on {n} rows that are new to the model."
    some = f" (one in {data['step']})" if data["step"] > 1 else ""
    if data["new"] == 0:
        return f"Judged on {n} training rows{some}, out of sample."
    return f"Judged on {n} rows, training rows{some} out of sample."


def effect_words(effect: dict[str, Any], of: int) -> str:
    """Which way a column pushes a class, in a sentence."""
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
        f"{one['named']['part']:,} of {one['named']['whole']:,} rows "
        f"({percent(one['named']['value'])}) to {_quoted(one)}"
        for one in by_number[:MOST_LISTED]
    ]
    left = sum(one["named"]["part"] for one in by_number[MOST_LISTED:])
    return ", ".join([*parts, *([f"{left:,} to the others"] if left else [])])


def _quoted(one: dict[str, Any]) -> str:
    """A class by its name, which may be any word of the sentence."""
    return f'"{one["name"]}"'


def there(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The classes that have rows."""
    return [one for one in summary["classes"] if one["rows"]]


def data_words(summary: dict[str, Any]) -> str:
    """Rows, classes and columns."""
    data = summary["data"]
    words = counted(data["rows"], "row")
    if summary["labelled"]:
        words += wording(summary).extent(summary)
    kinds = [column["kind"] for column in data["columns"]]
    words += (
        f"; {counted(len(kinds) - kinds.count('dropped'), 'column is', 'columns are')} used"
    )
    if kinds.count("dropped"):
        words += f" and {counted(kinds.count('dropped'), 'is', 'are')} not"
    words += f". {data['words']}"
    if data["without_truth"]:
        left = "row without a truth is", "rows without a truth are"
        words += f" {counted(data['without_truth'], *left)} left out."
    return words


def voter_words(summary: dict[str, Any]) -> str:
    """Who carries the vote, and how much they agree."""
    voters = summary["voters"]
    words = (
        f"The score is a weighted vote of {voters['voters']:,} models. "
        f"{voters['survived']:,} of them have weight; {voters['half']:,} "
        f"{'holds' if voters['half'] == 1 else 'hold'} half of it."
    )
    if not voters["known"]:
        return f"{words} {voters['why']}"
    pairs = voters["pairs"]
    if pairs["mean_kappa"] is not None:
        mean = f"{pairs['mean_kappa']:.2f}"
        words += f" Their agreement beyond chance (kappa) is {mean} on average"
        among = pairs["mean_kappa_weighted"]
        if among is not None and voters["survived"] < voters["voters"]:
            words += f", and {among:.2f} among those with weight"
        words += "."
    where = "training rows that each had not seen" if voters.get("of_fit") else "new rows"
    return f"{words} Measured on {voters['rows']:,} {where}."


def hard_words(summary: dict[str, Any]) -> str:
    """What the voters say of the rows that the vote misses."""
    hard, say = summary["voters"].get("hard"), wording(summary)
    if not hard or not hard["total"]:
        return f"The vote misses none of the {say.hard}."
    total, none = hard["total"], hard["found_by_none"]
    return (
        f"Of the {total:,} {say.hard} that the vote misses, {total - none:,} {say.found} "
        f"by at least one voter alone, and {none:,} by none: for these the columns, or the "
        f"label, should be looked at."
    )


def promise_words(summary: dict[str, Any]) -> str:
    """The certificate's headline."""
    found = summary["certificate"]
    words = f"With {percent(1 - found['delta'])} confidence, on new rows drawn like these "
    return words + wording(summary).promise(summary)


def lead(summary: dict[str, Any]) -> str:
    """What a manager wants to know, in two or three sentences."""
    say = wording(summary)
    if not summary["labelled"]:
        return say.decisions(summary)
    return f"{AS_IT_DECIDES}: {say.found_of(summary)} {say.meaning(summary)}".strip()


class OneClass:
    """How a page speaks of one class that is looked for: what is flagged is it, or not."""

    several = False
    acts = "flags"
    thresholds = "thresholds"
    hard = "real ones"
    found = "would be flagged"
    speaks = "that it is real"
    would = "flagged it."
    classes = "both"
    curve = (
        "Each point is a threshold you could set. The dot is the one chosen above; the "
        "dashed line is what chance would give."
    )
    roc = (
        "The same thresholds, by how many of the others are flagged by mistake. With rare "
        "real ones this curve flatters; trust the one before."
    )
    distribution = (
        "How many rows have each score. The dashed line is the model's own threshold."
    )
    covered = (
        "They are for rows drawn like these, if they were used for nothing before: not to "
        "train, tune, calibrate or choose. They are about how often decisions are wrong at "
        "the model's own threshold, not at one chosen above."
    )
    bound_headings = ("at most", "missed", "false alarms", "all decisions")
    segment_headings = (
        "segment",
        "rows",
        "real",
        "flagged",
        "found, of 100 real",
        "90 % interval",
        "real, of 100 flagged",
        "90 % interval",
    )

    def decided(self, summary: dict[str, Any]) -> str:
        if summary["data"]["of_fit"]:
            return "As the model decides, with thresholds tuned on other rows"
        return f"At the model's own threshold (score above {summary['threshold']:.4g})"

    def decisions(self, summary: dict[str, Any]) -> str:
        flagged = summary["classes"][1]["named"]
        return (
            f"The model flags {flagged['part']:,} of {flagged['whole']:,} rows "
            f"({percent(flagged['value'])}) as {summary['target']['positive']}."
        )

    def found_of(self, summary: dict[str, Any]) -> str:
        """What is found; the script says the same of other thresholds."""
        real = summary["classes"][1]
        flagged = real["named"]["part"]
        if not real["rows"]:
            rows = counted(flagged, "row is", "rows are")
            return f"{rows} flagged, and none of all is real."
        if not flagged:
            return f"nothing is flagged, and all {real['rows']:,} real ones are missed."
        return (
            f"of 100 flagged rows about {per_hundred(real['precision']['value'])} are "
            f"real; of 100 real ones about {per_hundred(real['recall']['value'])} are "
            f"found."
        )

    def meaning(self, summary: dict[str, Any]) -> str:
        target, real = summary["target"], summary["classes"][1]
        return (
            f"Real means that '{target['name']}' is '{target['positive']}', as in "
            f"{percent(real['rate'])} of these rows."
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
        return f", {real['rows']:,} of them real ({percent(real['rate'])})"

    def promise(self, summary: dict[str, Any]) -> str:
        found = summary["certificate"]
        missed, alarms = found["missed_by_class"][1], found["flagged_by_class"][1]
        words = (
            f"at most {percent(missed['upper'])} of the real ones are missed and at most "
            f"{percent(alarms['upper'])} of the others are flagged."
        )
        return words + _if_vacuous(missed, "flagging at random")

    def rates(self, summary: dict[str, Any], order: list[int]) -> dict[str, Any]:
        """The promised rates, by what they are of."""
        found = summary["certificate"]
        return {
            "real ones missed": found["missed_by_class"][1],
            "others flagged": found["flagged_by_class"][1],
            "all decisions": found["overall"],
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
    """How a page speaks of several classes, each of which is looked for."""

    several = True
    acts = "decides"
    thresholds = "the factors of the classes"
    hard = "rows of rarer classes"
    found = "are given their class"
    speaks = "for its true class"
    would = "given it its class."
    classes = "all"
    curve = (
        "Each point is what votes for this class could count, the other classes counting "
        "as in the model. The dot is what is decided; the dashed line is what chance would "
        "give."
    )
    roc = (
        "The same, by how many of the others are taken for it. For a rare class this curve "
        "flatters; trust the one before."
    )
    distribution = (
        "How many rows have each share of the vote for this class. The class with the "
        "largest share, times its factor, is decided for."
    )
    covered = (
        "The promises for the classes hold together. They are for rows drawn like these, "
        "if they were used for nothing before: not to train, tune, calibrate or choose. "
        "They are about how often decisions are wrong as the model decides, not with a "
        "weight chosen above."
    )
    bound_headings = ("bound", "all decisions")
    segment_headings = ("segment", "rows", "right, of 100", "90 % interval")

    def decided(self, summary: dict[str, Any]) -> str:
        return "As the model decides"

    def decisions(self, summary: dict[str, Any]) -> str:
        return f"The model gives {_shared_out(summary['classes'])}."

    def found_of(self, summary: dict[str, Any]) -> str:
        """What is found; the script says the same of other weights."""
        decision, classes = summary["decision"], there(summary)
        words = (
            f"of 100 rows about {per_hundred(decision['right']['value'])} are given their "
            f"right class."
        )
        if not decision["mean_found"]:
            return f"{words} All of them are {_quoted(classes[0])}, so little can be said."
        hardest = min(classes, key=lambda one: one["recall"]["value"])
        easiest = max(classes, key=lambda one: one["recall"]["value"])
        return (
            f"{words} Class by class, of 100 rows about "
            f"{per_hundred(decision['mean_found']['value'])} are found on average: most of "
            f"{_quoted(easiest)} ({per_hundred(easiest['recall']['value'])} of 100), "
            f"fewest of {_quoted(hardest)} ({per_hundred(hardest['recall']['value'])} of "
            f"100)."
        )

    def meaning(self, summary: dict[str, Any]) -> str:
        return ""

    def segment(self, group: dict[str, Any]) -> list[str]:
        return [group["name"], f"{group['rows']:,}", *of_hundred(group["right"])]

    def extent(self, summary: dict[str, Any]) -> str:
        classes, known = summary["classes"], there(summary)
        words = f" of {len(known)} classes"
        if len(known) < len(classes):
            words += f" ({len(classes) - len(known)} more are known to the model)"
        largest = max(known, key=lambda one: one["rows"])
        rarest = min(known, key=lambda one: one["rows"])
        return (
            f"{words}, from {_quoted(rarest)} ({percent(rarest['rate'])}) to "
            f"{_quoted(largest)} ({percent(largest['rate'])})"
        )

    def promise(self, summary: dict[str, Any]) -> str:
        found, overall = summary["certificate"], summary["certificate"]["overall"]
        words = f"at most {percent(overall['upper'])} of all decisions are wrong."
        words += _if_vacuous(overall, "always naming the largest class")
        told = [k for k, one in enumerate(found["missed_by_class"]) if not one["vacuous"]]
        if told:
            best = min(told, key=lambda k: found["missed_by_class"][k]["upper"])
            words += (
                f" Class by class the promises are below; the firmest is that at most "
                f"{percent(found['missed_by_class'][best]['upper'])} of "
                f"{_quoted(summary['classes'][best])} are missed."
            )
        return words

    def rates(self, summary: dict[str, Any], order: list[int]) -> dict[str, Any]:
        found, classes = summary["certificate"], summary["classes"]
        rates = {"all decisions": found["overall"]}
        for c in order:
            name = classes[c]["name"]
            rates[f"{name}: missed"] = found["missed_by_class"][c]
            rates[f"others taken for {name}"] = found["flagged_by_class"][c]
        return rates

    def bound(self, made: dict[str, Any]) -> list[str]:
        return [percent(made["overall"])]


def wording(summary: dict[str, Any]) -> OneClass | EachClass:
    """How to speak of what the summary is about."""
    many = summary["target"]["positive"] is None
    return EachClass() if many else OneClass()


def _if_vacuous(rate: dict[str, Any], guess: str) -> str:
    if not rate["vacuous"]:
        return ""
    return f" That promises no more than {guess} would: there are too few rows."
