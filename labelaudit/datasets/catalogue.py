"""Where each data set comes from: files, sizes, checksums, licence and citation, in one table.

A checksum is listed only if somebody who had the file published it; otherwise it is None.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be fetched, from any of several addresses."""

    name: str
    mirrors: tuple[str, ...]
    size: int | None = None
    checksum: str | None = None  # "sha256:..." or "md5:..."


@dataclass(frozen=True)
class Source:
    """A data set as its owners publish it."""

    name: str
    title: str
    rows: int
    positive_rate: float
    files: tuple[RemoteFile, ...]
    home: str
    layouts: str
    licence: str
    citation: str


CATALOGUE = {
    "higgs": Source(
        name="higgs",
        title="UCI HIGGS",
        rows=11_000_000,
        positive_rate=0.53,
        files=(
            RemoteFile(
                name="HIGGS.csv.gz",
                mirrors=(
                    "https://archive.ics.uci.edu/ml/machine-learning-databases/00280/HIGGS.csv.gz",
                    "http://mlphysics.ics.uci.edu/data/higgs/HIGGS.csv.gz",
                ),
                size=2_816_407_858,
                checksum="sha256:ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698",
            ),
        ),
        home="https://archive.ics.uci.edu/dataset/280/higgs",
        layouts="HIGGS.csv, HIGGS.csv.gz, or parquet with the UCI column names",
        licence="CC BY 4.0",
        citation="P. Baldi, P. Sadowski, D. Whiteson. Searching for exotic particles in high-energy"
        " physics with deep learning. Nature Communications 5, 4308 (2014).",
    ),
    "kdd12": Source(
        name="kdd12",
        title="KDD Cup 2012, track 2",
        rows=149_639_105,
        positive_rate=0.044,
        files=(
            # The file whose checksum is known comes first.
            RemoteFile(
                name="kdd12.bz2",
                mirrors=(
                    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/kdd12.bz2",
                ),
                checksum="md5:c6fc57735c3cf687dd182d60a7b51cda",
            ),
            RemoteFile(
                name="kdd12.xz",
                mirrors=(
                    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/kdd12.xz",
                ),
            ),
        ),
        home="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html#kdd2012,"
        " or the small sample at https://www.openml.org/d/1220",
        layouts="LIBSVM or FFM text (plain, .gz, .bz2, .xz), the raw tab-separated training.txt,"
        " or the OpenML table as parquet",
        licence="none is stated where it is published; Tencent released it for the KDD Cup 2012",
        citation="KDD Cup 2012, track 2, Tencent; feature processing of Y. Juan, Y. Zhuang,"
        " W.-S. Chin, C.-J. Lin. Field-aware factorization machines for CTR prediction."
        " RecSys (2016).",
    ),
}
