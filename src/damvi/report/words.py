"""The summary in sentences, for those who read nothing else."""

from __future__ import annotations

from typing import Any

SAYS = {
    "precision": "share of the flagged rows that are real",
    "recall": "share of the real ones that are flagged",
    "f1": "one figure for both: their harmonic mean",
    "ap": "average precision: how well the scores rank real ones first, whatever the line",
    "roc_auc": "how often a real one scores above another row; flatters rare classes",
    "balanced_accuracy": "mean share of right decisions of the two classes; 50 % is chance",
    "mcc": "correlation of decisions and truth; 0 is chance, 1 is perfect",
    "brier": "mean squared error of the probabilities; lower is better",
}


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
    if 99 < value < 100:
        return ">99"
    return str(int(value + 0.5))


def range_of_hundred(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "no rows to count"
    low, high = per_hundred(rate["low"]), per_hundred(rate["high"])
    return f"{low} to {high}, with 90 % confidence"


def percent(share: float | None) -> str:
    """A share in percent, with digits enough for rare things."""
    if share is None:
        return "–"
    return f"{100 * share:.3g} %"


def steady(text: str) -> str:
    """A figure that does not break before its percent sign."""
    return text.replace(" %", "\u00a0%")


def basis(
    said: dict[str, Any],
    shows: str = "what the model flags",
    tuned: str | None = "line was",
) -> dict[str, str]:
    """Which rows this is about, in words that nobody can miss."""
    data = said["data"]
    if not said["labelled"]:
        return {
            "title": "These rows come without the truth.",
            "text": f"The page shows {shows}, not how often it is right. " + data["words"],
        }
    if data["of_fit"] == 0:
        title = "Judged on rows that are new to the model."
    elif data["new"] == 0:
        title = "Judged on the rows of the fit, out of sample."
    else:
        title = "Some of these rows, or rows with the same values, were in the fit."
    text = data["words"]
    if data["of_fit"] and tuned:
        text += (
            f" The model's {tuned} tuned on rows of the fit: new rows may do a bit worse."
        )
        text += _line_of_others(said)
    if data["without_truth"]:
        text += f" {data['without_truth']:,} rows without a truth are left out."
    return {"title": title, "text": text}


def _line_of_others(said: dict[str, Any]) -> str:
    """What remains where each row is judged by a line that was tuned on others."""
    peers = said.get("peers") or {}
    own = peers.get("models", {}).get("DAMVI", {})
    if peers.get("rows") != said["data"]["judged"] or not {"precision", "recall"} <= {*own}:
        return ""
    return (
        f" With lines tuned on other rows than they judge, of 100 flagged rows about "
        f"{per_hundred(own['precision'])} are real, and of 100 real ones about "
        f"{per_hundred(own['recall'])} are found."
    )


def lead(said: dict[str, Any]) -> str:
    """What a manager wants to know, in two sentences."""
    target = said["target"]
    if not said["labelled"]:
        flagged = said["flagged"]
        return (
            f"The model flags {flagged['part']:,} of {flagged['whole']:,} rows "
            f"({percent(flagged['value'])}) as {target['positive']}."
        )
    decision = said["decision"]
    found, missed = decision["found"], decision["missed"]
    alarms = decision["false_alarms"]
    if not found + missed:
        return (
            f"None of these rows is {target['positive']}; {alarms:,} were flagged in vain."
        )
    if not found + alarms:
        return (
            f"Nothing is flagged: all {missed:,} real ones are missed at the model's line."
        )
    return (
        f"As the model decides: of 100 flagged rows about "
        f"{per_hundred(decision['precision']['value'])} are real; of 100 real ones about "
        f"{per_hundred(decision['recall']['value'])} are found. Real means that "
        f"'{target['name']}' is '{target['positive']}', as in "
        f"{percent(said['data']['rate'])} of these rows."
    )


def data_words(said: dict[str, Any]) -> str:
    data = said["data"]
    words = f"{data['rows']:,} rows"
    if said["labelled"]:
        words += f", {data['positives']:,} of them real ({percent(data['rate'])})"
    return f"{words}; {column_words(data)}. {data['words']}"


def column_words(data: dict[str, Any]) -> str:
    kinds = [column["kind"] for column in data["columns"]]
    words = f"{len(kinds) - kinds.count('dropped')} columns are used"
    if kinds.count("dropped"):
        words += f" and {kinds.count('dropped')} are not"
    return words


def voter_words(said: dict[str, Any]) -> str:
    voters = said["voters"]
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
        words += (
            f", and {among:.2f} among those with weight."
            if among is not None and voters["survived"] < voters["voters"]
            else "."
        )
    where = "rows of the fit that each had not seen" if voters.get("of_fit") else "new rows"
    return f"{words} Measured on {voters['rows']:,} {where}."


def hard_words(said: dict[str, Any]) -> str:
    hard = said["voters"].get("hard")
    if not hard or not hard["total"]:
        return "The vote misses none of the real ones."
    total, none = hard["total"], hard["found_by_none"]
    return (
        f"Of the {total:,} real ones that the vote misses, {total - none:,} would be "
        f"flagged by at least one voter alone, and {none:,} by none: for "
        f"these the columns, or the label, should be looked at."
    )


def promise_words(said: dict[str, Any]) -> str:
    found = said["certificate"]
    missed, alarms = found["missed"], found["false_alarms"]
    sure = percent(1 - found["delta"])
    words = (
        f"With {sure} confidence, on new rows drawn like these at most "
        f"{percent(missed['upper'])} of the real ones are missed and at most "
        f"{percent(alarms['upper'])} of the others are flagged."
    )
    if missed["vacuous"]:
        words += (
            " That promises no more than flagging at random would: there are too few rows."
        )
    return words
