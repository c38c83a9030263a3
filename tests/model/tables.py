"""A table with a column of every kind, as people keep them, and its rows as JSON."""

import json

import numpy as np
import pandas as pd

WORDS = ["the", "pump", "leaks", "oil", "no", "fault", "was", "found", "after", "rain"]


def mixed(n=900, seed=0):
    """Amounts in a currency, numbers as text, categories, names, text, dates; ``late``."""
    rng = np.random.default_rng(seed)
    start = pd.Timestamp("2022-03-01") + pd.to_timedelta(rng.integers(0, 9e5, n), "min")
    end = start + pd.to_timedelta(rng.integers(0, 9000, n), "min")
    size = rng.normal(size=n)
    amount = rng.integers(1, 400_000, n) / 100
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "amount": [f"{a:,.2f} €".translate({44: ".", 46: ","}) for a in amount],
            "plain": [f"{x:.3f}" for x in rng.normal(size=n)],
            "count": rng.integers(0, 9, n),
            "grade": rng.choice(["1", "2", "A"], n),
            "shop": rng.choice([f"shop {k}" for k in range(30)], n),
            "customer": rng.choice([f"c{k:04}" for k in range(290)], n),
            "comment": [" ".join(rng.choice(WORDS, 5)) for _ in range(n)],
            "opened": start.strftime("%Y-%m-%d %H:%M"),
            "closed": end.strftime("%d.%m.%Y"),
            "clock": start.strftime("%H:%M"),
        }
    )
    score = size + (frame["grade"] == "A") + amount / 2000 + rng.normal(size=n) / 3
    frame["late"] = np.where(score > np.quantile(score, 0.9), "yes", "no")
    return frame


def as_json(frame):
    """Its rows as a request has them, without the answer."""
    return json.loads(frame.drop(columns="late", errors="ignore").to_json(orient="records"))
