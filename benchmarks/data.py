"""Reading, checking and writing data, against the readers people use today.

Files are simulated in the exact format of the published ones: KDD12 as LIBSVM text with eleven
indices a row, Higgs as the gzipped csv with nineteen digits a number. Ours always includes the
checksum of the source, every check, the hashing, the write to disk and the checksum of what was
written; the peers only read. Both take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.csv
from sklearn.datasets import load_svmlight_file

from benchmarks.tools import in_turns
from data_scripts.kdd12 import INDICES
from data_scripts.prepare import prepare
from labelaudit.datasets import standins

ROOT = Path(__file__).resolve().parent.parent
KDD12_ROWS = 1_000_000
HIGGS_BLOCK = 25_000
HIGGS_ROWS = 400_000
MEMORY_ROWS = (1_000_000, 5_000_000)


def write_libsvm(path: Path, rows: int) -> None:
    """KDD12-shaped LIBSVM text: the same 100,000 lines, as often as it takes."""
    rng = np.random.default_rng(0)
    block = min(rows, 100_000)
    indices = np.sort(rng.integers(1, INDICES + 1, (block, 11)), axis=1)
    labels = (rng.random(block) < 0.044).astype(int)
    lines = (
        f"{label} " + " ".join([f"{index}:1" for index in row])
        for label, row in zip(labels.tolist(), indices.tolist(), strict=True)
    )
    text = "\n".join(lines) + "\n"
    with open(path, "w") as file:
        for _ in range(rows // block):
            file.write(text)


def write_higgs(path: Path, rows: int) -> None:
    """Higgs-shaped csv.gz, numbers printed as in the published file; the same rows repeated.

    gzip looks back 32 kB, so that it does not see the repetition.
    """
    features, labels, _ = standins.draw("higgs-like", HIGGS_BLOCK)
    text = io.StringIO()
    np.savetxt(text, np.column_stack([labels, features]), fmt="%.18e", delimiter=",")
    member = gzip.compress(text.getvalue().encode(), compresslevel=6)
    path.write_bytes(member * (rows // HIGGS_BLOCK))


def _silent(name: str, path: Path) -> None:
    prepare(name, path, say=lambda message: None)


def _arrow(path: Path) -> None:
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    for _ in pyarrow.csv.open_csv(path, read_options=options):
        pass


def _row(what: str, ours: float, peer: str, theirs: float, least: float) -> dict:
    """A measured ratio of rows per second, and the least that was promised."""
    met = ours >= least * theirs
    verdict = f">= {least:g} x: {'met' if met else 'MISSED'}"
    rates = f"{ours / 1e6:7.2f} M/s {peer:>22} {theirs / 1e6:6.3f} M/s"
    print(f"{what:27} ours {rates} {ours / theirs:6.1f} x  {verdict}")
    return {"what": what, "ours": ours, "peer": peer, "theirs": theirs, "least": least, "met": met}


def _kdd12(folder: Path) -> dict:
    path = folder / "kdd12"
    write_libsvm(path, KDD12_ROWS)
    _silent("kdd12", path)
    works = {
        "ours": lambda: _silent("kdd12", path),
        "peer": lambda: load_svmlight_file(str(path), n_features=INDICES + 1),
    }
    best = in_turns(works, repeats=3)
    ours, theirs = KDD12_ROWS / best["ours"], KDD12_ROWS / best["peer"]
    return _row("KDD12 from LIBSVM text", ours, "load_svmlight_file", theirs, 10)


def _higgs(folder: Path) -> list[dict]:
    path, short = folder / "HIGGS.csv.gz", folder / "short.csv.gz"
    write_higgs(path, HIGGS_ROWS)
    write_higgs(short, HIGGS_BLOCK)
    _silent("higgs", path)
    works = {
        "ours": lambda: _silent("higgs", path),
        "arrow": lambda: _arrow(path),
        "loadtxt": lambda: np.loadtxt(short, np.float32, delimiter=","),
    }
    best = in_turns(works, repeats=5)
    ours, arrow = HIGGS_ROWS / best["ours"], HIGGS_ROWS / best["arrow"]
    return [
        _row("Higgs from csv.gz", ours, "numpy.loadtxt", HIGGS_BLOCK / best["loadtxt"], 3),
        _row("Higgs from csv.gz", ours, "pyarrow.csv streaming", arrow, 0.8),
    ]


PEAK = """
import sys
from pathlib import Path
from benchmarks.tools import peak_bytes
from data_scripts.prepare import prepare
prepare("kdd12", Path(sys.argv[1]), say=lambda message: None)
print(peak_bytes() / 2**20)
"""


def _memory(folder: Path) -> dict:
    """Peak resident memory of preparing, in a process of its own for each size."""
    peaks = []
    for rows in MEMORY_ROWS:
        path = folder / "large"
        write_libsvm(path, rows)
        command = [sys.executable, "-c", PEAK, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        peaks.append(float(run.stdout))
        path.unlink()
    small, large = peaks
    met = large < 1.1 * small and large < 1024
    shown = f"{small:.0f} MB at {MEMORY_ROWS[0]:,} rows, {large:.0f} MB at {MEMORY_ROWS[1]:,}"
    print(f"{'memory of preparing KDD12':28} {shown}  flat, <= 1 GB: {'met' if met else 'MISSED'}")
    return {"what": "peak memory in MB", "rows": MEMORY_ROWS, "peaks": peaks, "met": met}


def run() -> list[dict]:
    """The whole table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = os.environ.get("LABELAUDIT_DATA")
        os.environ["LABELAUDIT_DATA"] = str(folder / "prepared")
        try:
            return [_kdd12(folder), *_higgs(folder), _memory(folder)]
        finally:
            del os.environ["LABELAUDIT_DATA"]
            if before is not None:
                os.environ["LABELAUDIT_DATA"] = before
