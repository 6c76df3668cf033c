"""Tables, estimates of eta, exposures and a mechanism for the tests of the audit."""

import numpy as np
import pandas as pd

from labelaudit import auditing as report
from labelaudit.auditing.attack import Exposure
from labelaudit.auditing.eta import EtaEstimates
from labelaudit.auditing.intervals import Interval
from labelaudit.cli import main

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


def known_estimates(eta, labels, refits=2):
    labels = np.asarray(labels, dtype=np.uint8)
    return EtaEstimates.ready_made(np.asarray(eta, dtype=float), labels, refits)


def exposed(setting, low, high, difference=0.0, revealed=0.0, realised=None):
    middle = Interval((low + high) / 2, (high - low) / 4, low, high)
    true = middle if realised is None else Interval(sum(realised) / 2, 0.01, *realised)
    gap = Interval(difference, 0.01, difference - 0.02, difference + 0.02)
    proven = Interval(revealed, 0.0, revealed, revealed)
    return Exposure(setting, middle, true, gap, middle, proven, (), "exact")


RR, LLP = (
    report.AuditPlan(mechanisms=[name], bag_sizes=[8], epsilons=[2.0]).settings[0]
    for name in ("rr", "llp")
)

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
