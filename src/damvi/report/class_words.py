"""The summary of three or more classes in sentences."""

from __future__ import annotations

from typing import Any

from .words import column_words, per_hundred, percent

CLASS_SAYS = {
    "macro_f1": "precision and recall of a class in one figure, the mean over the classes",
    "balanced_accuracy": "share of a class's rows that are found, mean over the classes",
    "macro_ap": "how well the votes rank rows of a class first, the mean over the classes",
    "macro_roc_auc": "how often a row of a class has more votes for it than another row",
    "accuracy": "share of all rows given their right class; large classes count most",
    "mcc": "correlation of decisions and truth; 0 is chance, 1 is perfect",
    "brier": "squared error of the probabilities, summed over classes; lower is better",
}
MOST_LISTED = 5


def lead(said: dict[str, Any]) -> str:
    """What a manager wants to know, in two or three sentences."""
    if not said["labelled"]:
        return f"The model gives {_shared_out(said)}."
    decision, classes = said["decision"], there(said)
    words = (
        f"As the model decides: of 100 rows about "
        f"{per_hundred(decision['right']['value'])} are given their right class."
    )
    if len(classes) < 2:
        return f"{words} All of them are {_quoted(classes[0])}, so little can be said."
    hardest = min(classes, key=lambda one: one["recall"]["value"])
    easiest = max(classes, key=lambda one: one["recall"]["value"])
    return (
        f"{words} Large classes make up most of that. Class by class, of 100 rows about "
        f"{per_hundred(decision['mean_found']['value'])} are found on average: most of "
        f"{_quoted(easiest)} ({per_hundred(easiest['recall']['value'])} of 100), fewest of "
        f"{_quoted(hardest)} ({per_hundred(hardest['recall']['value'])} of 100)."
    )


def _quoted(one: dict[str, Any]) -> str:
    """A class by its name, which may be any word of the sentence."""
    return f'"{one["name"]}"'


def there(said: dict[str, Any]) -> list[dict[str, Any]]:
    """The classes that have rows."""
    return [one for one in said["classes"] if one["rows"]]


def _shared_out(said: dict[str, Any]) -> str:
    by_number = sorted(said["classes"], key=lambda one: -one["named"]["part"])
    parts = [
        f"{one['named']['part']:,} of {one['named']['whole']:,} rows "
        f"({percent(one['named']['value'])}) to {_quoted(one)}"
        for one in by_number[:MOST_LISTED]
    ]
    left = sum(one["named"]["part"] for one in by_number[MOST_LISTED:])
    if left:
        parts.append(f"{left:,} to the others")
    return ", ".join(parts)


def data_words(said: dict[str, Any]) -> str:
    """Rows, classes and columns."""
    data, classes = said["data"], said["classes"]
    words = f"{data['rows']:,} rows"
    if said["labelled"]:
        known = there(said)
        words += f" of {len(known)} classes"
        if len(known) < len(classes):
            words += f" ({len(classes) - len(known)} more are known to the model)"
        largest = max(known, key=lambda one: one["rows"])
        rarest = min(known, key=lambda one: one["rows"])
        words += (
            f", from {_quoted(rarest)} ({percent(rarest['rate'])}) to {_quoted(largest)} "
            f"({percent(largest['rate'])})"
        )
    return f"{words}; {column_words(data)}. {data['words']}"


def hard_words(said: dict[str, Any]) -> str:
    """What the voters say of the rows of rarer classes that the vote misses."""
    hard = said["voters"].get("hard")
    if not hard or not hard["total"]:
        return "The vote misses none of the rows of the rarer classes."
    total, none = hard["total"], hard["found_by_none"]
    return (
        f"Of the {total:,} rows of rarer classes that the vote misses, {total - none:,} "
        f"are given their class by at least one voter alone, and {none:,} by none: for "
        f"these the columns, or the label, should be looked at."
    )


def promise_words(said: dict[str, Any]) -> str:
    """The certificate's headline."""
    found = said["certificate"]
    overall = found["overall"]
    words = (
        f"With {percent(1 - found['delta'])} confidence, on new rows drawn like these at "
        f"most {percent(overall['upper'])} of all decisions are wrong."
    )
    if overall["vacuous"]:
        words += (
            " That promises no more than always naming the largest class would: there are "
            "too few rows."
        )
    told = [k for k, one in enumerate(found["missed"]) if not one["vacuous"]]
    if told:
        best = min(told, key=lambda k: found["missed"][k]["upper"])
        words += (
            f" Class by class the promises are below; the firmest is that at most "
            f"{percent(found['missed'][best]['upper'])} of "
            f"{_quoted(said['classes'][best])} are missed."
        )
    return words
