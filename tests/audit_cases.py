"""Tables, estimates of eta, rows of settings and a mechanism for the tests of the audit."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd

from labelaudit import auditing
from labelaudit.cli import main
from labelaudit.intervals import Interval

SECRET = "zebra-crossing-77"


def some_rows(rows=600, seed=0):
    """A table with numbers, categories, missing values, unequal bags and a known prior."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    kind = rng.choice(["plain", "other", SECRET], rows, p=[0.5, 0.3, 0.2])
    eta = 1 / (1 + np.exp(-(1.2 * x - 0.8 + 0.7 * (kind == "other"))))
    frame = pd.DataFrame({"x": np.where(rng.random(rows) < 0.05, np.nan, x), "kind": kind})
    frame["day"] = np.minimum(rng.geometric(0.05, rows), 60)
    frame["eta"] = eta
    frame["bought"] = (rng.random(rows) < eta).astype(int)
    return frame


def write_shop(folder):
    """The same as a csv file."""
    path = folder / "shop.csv"
    some_rows().to_csv(path, index=False)
    return path


def table_of(eta, labels, **columns):
    """A table with a known prior, and other columns such as the day as `bag`."""
    frame = pd.DataFrame({"p": np.asarray(eta, dtype=float), "ill": np.asarray(labels)} | columns)
    return auditing.read(
        frame, auditing.Columns(label="ill", prior="p", **{name: name for name in columns})
    )


def known_eta(eta, labels, refits=2):
    """Eta without an error."""
    prior = np.asarray(eta, dtype=float)
    return auditing.Eta.of([[prior] * refits], np.asarray(labels), refitted=False)


def attacked(eta, labels, **options):
    """The rows of the settings that are listed, attacked with a known eta of two refits."""
    table = table_of(eta, labels)
    chosen = auditing.Options(**options).suit(table)
    return list(auditing.attack_settings(table, known_eta(eta, labels), chosen).itertuples())


def listed(*names, bag_sizes=(8,), epsilons=(2.0,)):
    """Settings of two classes."""
    return auditing.settings_of(names, bag_sizes, epsilons)


def row_of(setting, low, high, *, difference=0.0, revealed=0.0, realised=None, **columns):
    """A row as the attack makes it, with these ends of its intervals; worth 0.5 by default."""
    middle = Interval((low + high) / 2, (high - low) / 4, low, high)
    true = middle if realised is None else Interval(sum(realised) / 2, 0.01, *realised)
    epsilon = setting.mechanism.epsilon
    values = {
        "setting": setting, "title": setting.title, "bag_size": setting.mechanism.bag_size,
        "epsilon": epsilon, "rows": 1, "declared": epsilon,
        "guarantee": epsilon if setting.checked else math.inf,
        "worth": 0.5, "auc": math.nan,
    }  # fmt: skip
    values |= middle.columns("plug_in") | true.columns("realised") | middle.columns("percentile")
    gap = Interval(difference, 0.01, difference - 0.02, difference + 0.02)
    proven = Interval(revealed, 0.0, revealed, revealed)
    return SimpleNamespace(
        **values | gap.columns("difference") | proven.columns("revealed") | columns
    )


def frame_of(rows):
    """Rows as a table of settings."""
    return pd.DataFrame([vars(row) for row in rows])


RR, LLP = listed("rr", "llp")

MAJORITY = """
import numpy as np
from dataclasses import dataclass
from labelaudit import CountChannel, Mechanism

@dataclass(frozen=True)
class Majority(Mechanism):
    bag_size: int
    epsilon: float
    def channel(self):
        ones = np.arange(self.bag_size + 1) > self.bag_size / 2
        keep = 1 / (1 + np.exp(-self.epsilon))
        return CountChannel(np.where(ones[:, None] == [False, True], keep, 1 - keep))
    def likelihood(self, releases):
        return self.channel().likelihood(releases)
    def release(self, labels, rng):
        return self.channel().release(labels, rng)
"""


def run(*arguments):
    return main(["audit", *map(str, arguments)])
