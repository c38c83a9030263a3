"""``damvi fit`` on a folder of parquet files: the memory that grows with the rows.

    python benchmarks/fit_folder.py [--rows 4000000] [--folder /tmp/damvi-fit-folder]

The table of ``scale.py`` (30 numbers, 1 % of positives), in files of 500,000 rows. The
command fits the paper's trees in a process of its own, on two threads: all rows, and 20,000
of them for what the program takes by itself. The peak is resident memory of the process,
mapped files included.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from multiprocessing import get_context
from pathlib import Path

import scale
from predict_file import run
from setting import print_setting

SMALL = 20_000


def generate(folder: Path, n: int) -> None:
    scale.FILE_ROWS = 500_000
    scale.generate(folder, n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/damvi-fit-folder"))
    args = parser.parse_args()
    print_setting("numpy", "numba", "pyarrow")
    print(f"{'rows':>10}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}")
    for n in (SMALL, args.rows):
        folder = args.folder / str(n)
        # In a process of its own, whose memory is not taken for that of the command.
        writer = get_context("spawn").Process(target=generate, args=(folder, n))
        writer.start()
        writer.join()
        fit = [sys.executable, "-m", "damvi", "fit", str(folder), "--target", "y"]
        more = ["--out-of-core", "-o", str(args.folder / "model.damvi"), "--quiet"]
        figures = run([*fit, *more])
        print(f"{n:>10,}" + "".join(f"{x:9.1f}" for x in figures), flush=True)
    shutil.rmtree(args.folder)


if __name__ == "__main__":
    main()
