"""Compare the stand-ins with the real samples: the figure and the table of the page on data.

Run by `python book/standins.py` with `higgs` and `kdd12` prepared from their samples; it draws
`_static/standins.svg` and prints the table. Both are committed, since most readers do not have
the samples; a test computes the table again where they are at hand.
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from labelaudit import datasets

TARGET = Path(__file__).parent / "_static" / "standins.svg"
LEVELS = np.linspace(0.01, 0.99, 50)
SHARES = np.linspace(0, 1, 201)
SHOWN_FEATURES = ("lepton_pT", "jet_1_pt", "m_jj", "m_lv", "m_bb", "m_wwbb")
SHOWN_FIELDS = ("advertiser_id", "ad_id", "query_id", "user_id")
REAL, SIMULATED = {"color": "#111111"}, {"color": "#8a8a8a", "linestyle": "--"}


def whole(data):
    """Features and labels, test rows first."""
    features = np.concatenate([data.test.features, data.train.features])
    return features, np.concatenate([data.test.labels, data.train.labels])


def pairs():
    """The two real samples, each with a stand-in of the same length."""
    for name in ("higgs", "kdd12"):
        real = datasets.load(name)
        yield name, real, datasets.load(f"{name}-like", train_rows=len(real.train))


def higgs_table(real, standin):
    """Quartiles of some features, real and simulated."""
    lines = ["| feature | quartiles, real sample | quartiles, stand-in |", "|---|---|---|"]
    for name in SHOWN_FEATURES:
        at = real.columns.index(name)
        shown = (
            ", ".join(f"{value:.2f}" for value in np.quantile(values[:, at], [0.25, 0.5, 0.75]))
            for values in (whole(real)[0], whole(standin)[0])
        )
        lines.append(f"| `{name}` | " + " | ".join(shown) + " |")
    return lines


def kdd12_table(real, standin):
    """How many values a field has, the share of the ten most frequent, and of those seen once."""
    lines = ["| field | values seen | ten most frequent | seen once |", "|---|---|---|---|"]
    for name in SHOWN_FIELDS:
        shown = []
        for data in (real, standin):
            counts = frequencies(data, name)
            rows = counts.sum()
            ten, once = counts[:10].sum() / rows, (counts == 1).sum() / rows
            shown.append((f"{len(counts):,}", f"{ten:.1%}", f"{once:.1%}"))
        cells = (" / ".join(pair) for pair in zip(*shown, strict=True))
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def frequencies(data, name):
    """How often each value of a field occurs, the most frequent first."""
    values = whole(data)[0][:, data.columns.index(name)]
    return np.sort(np.unique(values, return_counts=True)[1])[::-1]


def estimated_eta(data):
    """Cross-fitted eta: boosted trees on measurements, logistic regression on hashed fields."""
    features, labels = whole(data)
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    if data.buckets is not None:
        rows = np.repeat(np.arange(len(features)), features.shape[1])
        ones = np.ones(features.size)
        features = csr_matrix((ones, (rows, features.ravel())), (len(features), data.buckets))
        model = LogisticRegression(C=0.1, max_iter=60)
    return cross_val_predict(model, features, labels, cv=3, method="predict_proba")[:, 1]


def draw(target=TARGET):
    """Write the figure."""
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    style |= {"svg.hashsalt": "standins", "axes.titlesize": 9, "axes.titlelocation": "left"}
    (_, higgs, higgs_like), (_, kdd12, kdd12_like) = pairs()
    with plt.rc_context(style):
        figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained")
        _marginals(axes[0, 0], higgs, higgs_like)
        _quantiles(axes[0, 1], higgs, higgs_like)
        _etas(axes[0, 2], higgs, higgs_like, "Higgs")
        _ranks(axes[1, 0], kdd12, kdd12_like)
        _positions(axes[1, 1], kdd12, kdd12_like)
        _etas(axes[1, 2], kdd12, kdd12_like, "KDD12")
        figure.savefig(target, metadata={"Date": None})


def _marginals(axis, real, standin):
    at = real.columns.index("m_bb")
    edges = np.linspace(0, 3, 61)
    for data, look, name in ((real, REAL, "real sample"), (standin, SIMULATED, "simulated")):
        heights, _ = np.histogram(whole(data)[0][:, at], edges, density=True)
        axis.stairs(heights, edges, label=name, **look)
    axis.set(title="Higgs: the mass m_bb", xlabel="m_bb", ylabel="density")
    axis.legend(frameon=False)


def _quantiles(axis, real, standin):
    measured = [at for at, name in enumerate(real.columns) if not name.endswith("btag")]
    for ours, theirs in zip(whole(standin)[0].T[measured], whole(real)[0].T[measured], strict=True):
        axis.plot(np.quantile(theirs, LEVELS), np.quantile(ours, LEVELS), color="#555555", lw=0.7)
    axis.plot([-2.5, 4], [-2.5, 4], color="#111111", lw=0.5, linestyle=":")
    axis.set(title="Higgs: 1% to 99% quantiles, 24 features")
    axis.set(xlabel="real sample", ylabel="simulated")


def _ranks(axis, real, standin):
    for name in SHOWN_FIELDS:
        for data, look in ((real, REAL), (standin, SIMULATED)):
            counts = frequencies(data, name)
            ranks = np.unique(np.geomspace(1, len(counts), 80).astype(int))
            axis.loglog(ranks, counts[ranks - 1] / counts.sum(), lw=0.9, **look)
        share = frequencies(real, name)[0] / len(whole(real)[0])
        below = name == "ad_id"
        axis.annotate(name, (0.9, share * (0.55 if below else 1.15)), fontsize=7)
    axis.set(title="KDD12: share of rows by rank of value", xlabel="rank", ylabel="share")


def _positions(axis, real, standin):
    for data, look, name in ((real, REAL, "real, corrected"), (standin, SIMULATED, "simulated")):
        features, labels = whole(data)
        column = features[:, data.columns.index("position")]
        # The three positions, from the most to the least frequent, are 1, 2 and 3.
        values, counts = np.unique(column, return_counts=True)
        rates = [labels[column == value].mean() for value in values[np.argsort(-counts)]]
        axis.plot([1, 2, 3], data.correct_eta(rates), marker="o", label=name, **look)
    axis.set(title="KDD12: click rate by position", xlabel="position", xticks=[1, 2, 3])
    axis.set_ylim(0)
    axis.legend(frameon=False)


def _etas(axis, real, standin, name):
    curves = {"real, estimated": (estimated_eta(real), {**REAL})}
    if real.negatives_kept < 1:
        corrected = real.correct_eta(curves["real, estimated"][0])
        curves["real, corrected"] = (corrected, {**REAL, "lw": 2.2})
    curves["simulated, estimated"] = (estimated_eta(standin), SIMULATED)
    true = np.concatenate([standin.test.eta, standin.train.eta])
    curves["simulated, true"] = (true, {**SIMULATED, "linestyle": ":"})
    for label, (eta, look) in curves.items():
        axis.plot(np.quantile(eta, SHARES), SHARES, label=label, **look)
    for data, what in ((real, "real"), (standin, "simulated")):
        auc = roc_auc_score(whole(data)[1], curves[f"{what}, estimated"][0])
        print(f"{name}, {what}: AUC {auc:.2f} with the estimated eta")
    axis.set(title=f"{name}: distribution of eta", xlabel="eta", ylabel="share of rows below")
    if name == "KDD12":
        axis.set_xscale("log")
        axis.set_xlim(1e-3, 1)
    axis.legend(frameon=False, fontsize=7)


if __name__ == "__main__":
    for name, real, standin in pairs():
        print("\n".join((higgs_table if name == "higgs" else kdd12_table)(real, standin)))
    draw()
