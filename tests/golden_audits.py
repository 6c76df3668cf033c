"""The audits that are kept in tests/golden/audits.json: a table and options for each."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from audit_cases import MAJORITY

import labelaudit as la

IN_USE = ["suppressed=2", "rounded=3", "censored=1", "gaussian=1", "subset=0.3", "rr-prior=0.3"]
PRIOR = {"prior": "eta", "bag_sizes": [2, 8], "epsilons": [0.5, 2.0]}


def survey(seed, rows=800):
    """Numbers, categories, missing values, persons with up to three rows, bags of several sizes."""
    rng = np.random.default_rng(seed)
    x, kind = rng.standard_normal(rows), rng.choice(["plain", "other", "third"], rows)
    eta = 1 / (1 + np.exp(-(1.2 * x - 0.8 + 0.7 * (kind == "other"))))
    return pd.DataFrame(
        {
            "x": np.where(rng.random(rows) < 0.05, np.nan, x),
            "kind": kind,
            "person": np.sort(rng.integers(0, rows // 2, rows)),
            "day": np.minimum(rng.geometric(0.05, rows), 60),
            "eta": eta,
            "doubtful": np.clip(1.6 * eta, 0.01, 0.99),
            "bought": (rng.random(rows) < eta).astype(int),
        }
    )


def parties(seed, rows=400):
    """A label of three classes, which depends on one number."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    odds = np.exp(np.column_stack([np.zeros(rows), x, -x - 0.5]))
    codes = (rng.random((rows, 1)) > np.cumsum(odds / odds.sum(1, keepdims=True), 1)).sum(1)
    return pd.DataFrame({"x": x, "bought": np.array(["red", "green", "blue"])[codes]})


LEARNED = {"mechanisms": ["rr", "llp"], "bag_sizes": [4], "epsilons": [1.0], "refits": 2}
CASES = {
    "prior": (survey(1), PRIOR),
    "additive": (survey(2), PRIOR | {"target": "additive=0.03", "known": [0, 1, 7]}),
    "multiplicative": (survey(3), PRIOR | {"target": "multiplicative=0.9", "level": 0.95}),
    "epsilon": (survey(4), PRIOR | {"target": "epsilon=1.3", "by": "kind"}),
    "wrong prior": (survey(5), PRIOR | {"prior": "doubtful"}),
    "mechanisms in use": (
        survey(6, rows=400),
        PRIOR | {"mechanisms": IN_USE, "bag_sizes": [4], "repeats": [1], "refits": 2},
    ),
    "features": (survey(7)[["x", "kind", "bought"]], LEARNED),
    "persons": (
        survey(8)[["x", "kind", "person", "bought"]],
        LEARNED | {"person": "person", "utility": "none"},
    ),
    "own bags": (survey(9), PRIOR | {"bag": "day"}),
    "three classes": (parties(10), LEARNED),
    "three classes, a prior": (
        parties(11),
        LEARNED | {"mechanisms": ["rr-prior=0.5,0.3,0.2", "llp"], "target": "epsilon=1"},
    ),
    "own mechanism": (
        survey(12),
        {"prior": "eta", "bag_sizes": [3], "epsilons": [1.0], "search": False},
    ),
}


def audited(name):
    """The report of one case."""
    frame, options = CASES[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if name == "own mechanism":
            Path("majority.py").write_text(MAJORITY, encoding="utf-8")
            options = options | {"mechanisms": ["majority.py", "rr"]}
        return la.audit(frame, "bought", **options)
