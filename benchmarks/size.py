"""Files and lines of the package: python benchmarks/size.py [TREE ...]."""

import statistics
import sys
from pathlib import Path

SMALL = 60


def main(trees: list[str]) -> None:
    for tree in trees:
        files = sorted(Path(tree, "src", "damvi").rglob("*.py"))
        if not files:
            raise SystemExit(f"{tree} holds no src/damvi")
        lines = [len(file.read_text(encoding="utf-8").splitlines()) for file in files]
        small = sum(count < SMALL for count in lines)
        print(
            f"{tree}: {len(files)} files, {sum(lines):,} lines, median "
            f"{statistics.median(lines):g}, {small} files below {SMALL} lines"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or [str(Path(__file__).resolve().parent.parent)])
