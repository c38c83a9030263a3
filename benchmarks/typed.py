"""How much of the public API has types that every checker reads alike?

    python benchmarks/typed.py [PYRIGHT]

By pyright's own count, `--verifytypes damvi --ignoreexternal`; scikit-learn and others
that have no types of their own are left out. PYRIGHT is pyright or basedpyright, which
brings the program along. The exit status is 1 below 95 %.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

LEAST = 0.95


def main(pyright: str = "pyright") -> int:
    # The environment that runs this: a path to its interpreter would be followed out of it.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [pyright, "--verifytypes", "damvi", "--ignoreexternal", "--outputjson"],
        env=os.environ | {"PATH": path, "VIRTUAL_ENV": sys.prefix},
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    if not found["typeCompleteness"]["symbols"]:
        print("no public names were found: damvi is not installed where this runs")
        return 1
    counts = found["typeCompleteness"]
    missing = Counter(
        ".".join(symbol["name"].split(".")[:2])
        for symbol in counts["symbols"]
        if symbol["isExported"] and not symbol["isTypeKnown"]
    )
    score, known = counts["completenessScore"], counts["exportedSymbolCounts"]
    print(f"pyright {found['version']}: {score:.1%} of the public names are typed")
    print(", ".join(f"{count} {what}" for what, count in known.items()))
    if missing:
        print("not: " + ", ".join(f"{name} {n}" for name, n in missing.most_common()))
    return int(score < LEAST)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
