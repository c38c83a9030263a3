"""Ways to combine the same votes, where positives are few.

    python benchmarks/repeats.py train --small 15 --votes FOLDER --splits 3 --repeats 1
    python benchmarks/repeats.py train --small 70 --votes FOLDER --splits 3 --repeats 1
    python benchmarks/few_positives.py --votes FOLDER [--splits 3] [--small 15 70]

The votes of the strong pool (five voters, and nine) that benchmarks/repeats.py stored are
combined by the C-bound as DAMVIVotingClassifier does, by greedy selection for average
precision, by logistic stacking and equally, all on calibrated votes, and by the voter that
is best out of fold. Test rows are thousands, whatever the number of training rows.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pool_contenders import (
    Pool,
    Vote,
    average_precision,
    combine_linearly,
    default_setting,
    greedy,
    score,
    stack,
    uniform,
    votes_of,
    weigh_by_c_bound,
)
from pools import FOLDS, kept_votes, load_kernels
from portfolio import CHEAPEST_FIRST, of_pool
from repeats import FIVE, NINE, Place, path_of, some_places

OURS = "C-bound"
UNBALANCED = default_setting()._replace(balance=0.0, shrinkage=0.01)
"""What does better where positives are many."""


def combined(pool: Pool) -> dict[str, Vote]:
    """The votes on the test rows, by how those of a pool are combined."""
    setting, plain = default_setting(), pool.calibrated("auto")
    pool = pool.calibrated("auto", setting.balance)
    cast = votes_of(pool, setting.balance)
    alone = [average_precision(vote, pool.targets == 1) for vote in pool.unseen.T]
    best = int(np.argmax(alone))
    return {
        OURS: weigh_by_c_bound(cast, pool.test, setting.of_weights),
        "greedy selection": combine_linearly(pool, partial(greedy, average_precision)),
        "stacking": stack(pool),
        "equal weights": combine_linearly(pool, uniform),
        UNBALANCED.name: weigh_by_c_bound(
            votes_of(plain, 0.0), plain.test, UNBALANCED.of_weights
        ),
        "best voter": Vote(pool.unseen[:, best], pool.test[:, best], None),
    }


def pool_at(place: Place, names: tuple[str, ...]) -> Pool | None:
    kept: list[Any] = [kept_votes(path_of(place, name, of_pool(name), 0)) for name in names]
    if any(one is None for one in kept):
        return None
    return Pool(
        names,
        np.asfortranarray(np.stack([one["unseen"] for one in kept], axis=1)),
        np.asfortranarray(np.stack([one["test"][FOLDS] for one in kept], axis=1)),
        place.y[place.rows[0]],
        kept[0]["folds"].astype(np.int32),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--votes", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("results/few_positives"))
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(CHEAPEST_FIRST))
    parser.add_argument("--small", type=int, nargs="+", default=[15, 70])
    args = parser.parse_args()
    load_kernels()
    lines = [
        "# Few positives",
        "",
        f"`python benchmarks/few_positives.py --votes FOLDER --splits {args.splits}`: at "
        f"most so many positives and 2,000 negatives to train on, thousands of test rows. "
        f"Means over datasets; what the C-bound has more, ± one standard error over "
        f"datasets, and on how many it is better and worse. Voters and settings were "
        f"chosen on these datasets.",
        "",
        "| positives | voters | combined by | AP | C-bound more | F1 | C-bound more |",
        "|---|---|---|---|---|---|---|",
    ]
    for positives in args.small:
        own = argparse.Namespace(**{**vars(args), "small": positives})
        found: dict[tuple[int, str], dict[str, list[tuple[float, float]]]] = {}
        for place in some_places(own):
            for names in (FIVE, NINE):
                pool = pool_at(place, names)
                if pool is None:
                    continue
                truth = place.y[place.rows[1]]
                for words, vote in combined(pool).items():
                    told = score(vote, pool.targets, truth)
                    cells = found.setdefault((len(names), words), {})
                    cells.setdefault(place.dataset, []).append((told["ap"], told["f1"]))
        for (n_voters, words), cells in found.items():
            means = np.array([np.mean(pairs, axis=0) for pairs in cells.values()])
            ours = np.array(
                [np.mean(pairs, axis=0) for pairs in found[n_voters, OURS].values()]
            )
            gain = ours - means
            parts = []
            for m in range(2):
                error = gain[:, m].std(ddof=1) / len(gain) ** 0.5
                better, worse = (gain[:, m] > 0).sum(), (gain[:, m] < 0).sum()
                more = f"{gain[:, m].mean():+.4f} ± {error:.4f} ({better} : {worse})"
                parts += [f"{means[:, m].mean():.4f}", "" if words == OURS else more]
            lines.append(f"| {positives} | {n_voters} | {words} | {' | '.join(parts)} |")
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "few_positives.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
