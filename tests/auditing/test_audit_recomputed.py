"""The conclusion of an audit, computed again by enumeration without the package's attack."""

import itertools
import math

import bs4
import numpy as np
import pandas as pd
import pytest

import labelaudit as la
from labelaudit import auditing
from labelaudit.intervals import Interval

# Records with these priors; so many of them have the label 1.
LEVELS = np.array([0.1, 0.35, 0.5, 0.8])
RECORDS = np.array([12000, 9000, 4000, 5000])
ONES = np.array([1182, 3190, 2021, 3990])
ROWS = int(RECORDS.sum())
EPSILONS, SIZE, TARGET = (0.5, 1.0, 2.0), 3, 0.09


def response(epsilon):
    """P(release | count) of randomized response: a bag of one."""
    keep = 1 / (1 + math.exp(-epsilon))
    return np.array([[keep, 1 - keep], [1 - keep, keep]])


def noisy_count(epsilon):
    """Two-sided geometric noise on the number of ones in a bag, cut off where nothing is left."""
    noise = np.arange(-80, 81 + SIZE)
    ratio = math.exp(-epsilon)
    rows = [ratio ** np.abs(noise - count) for count in range(SIZE + 1)]
    return (1 - ratio) / (1 + ratio) * np.array(rows)


SETTINGS = {f"RR (epsilon {epsilon:g})": response(epsilon) for epsilon in EPSILONS}
SETTINGS[f"LLP (bags of {SIZE})"] = np.eye(SIZE + 1)
SETTINGS |= {
    f"LLP+Geom (bags of {SIZE}, epsilon {epsilon:g})": noisy_count(epsilon) for epsilon in EPSILONS
}


def attack_on(eta, channel):
    """P(label 1, release) and P(label 0, release) for each member, over all labels of the bag."""
    joint = np.zeros((len(eta), 2, channel.shape[1]))
    for labels in itertools.product([0, 1], repeat=len(eta)):
        weight = np.prod(np.where(labels, eta, 1 - eta))
        for member, label in enumerate(labels):
            joint[member, label] += weight * channel[sum(labels)]
    return joint


def recomputed(channel):
    """By eta, on the true labels, proven, and worth: means over all bags that can be drawn."""
    size = len(channel) - 1
    kinds = list(itertools.product(range(len(LEVELS)), [0, 1]))
    number = np.array(
        [(RECORDS - ONES)[level] if label == 0 else ONES[level] for level, label in kinds]
    )
    totals = np.zeros(4)
    for members in itertools.combinations_with_replacement(range(len(kinds)), size):
        counts = np.bincount(members, minlength=len(kinds))
        ways = math.prod(math.comb(int(n), int(c)) for n, c in zip(number, counts, strict=True))
        eta = LEVELS[[kinds[kind][0] for kind in members]]
        truth = np.array([kinds[kind][1] for kind in members])
        joint = attack_on(eta, channel)
        released, before = channel[truth.sum()], np.maximum(eta, 1 - eta)
        plug_in = joint.max(axis=1).sum(axis=1) - before
        guess = joint[:, 1] >= joint[:, 0]
        right = ((guess == truth[:, None]) * released).sum(axis=1) - ((eta >= 0.5) == truth)
        possible = joint.min(axis=1) > 0
        proven = (~possible * released).sum(axis=1)
        with np.errstate(invalid="ignore"):
            after = np.nan_to_num(joint[:, 1] ** 2 / joint.sum(axis=1)).sum(axis=1) - eta**2
        totals += ways * np.array([column.mean() for column in (plug_in, right, proven, after)])
    totals /= math.comb(ROWS, size)
    variance = (RECORDS * LEVELS * (1 - LEVELS)).sum() / ROWS
    return dict(zip(("plug-in", "realised", "revealed", "worth"), totals, strict=True)) | {
        "worth": totals[3] / variance
    }


@pytest.fixture(scope="module")
def audited():
    labels = [np.arange(n) < ones for n, ones in zip(RECORDS, ONES, strict=True)]
    frame = pd.DataFrame({"p": np.repeat(LEVELS, RECORDS), "ill": np.concatenate(labels) * 1})
    return la.audit(
        frame.sample(frac=1, random_state=0), "ill", prior="p", target=f"additive={TARGET}",
        mechanisms=["rr", "llp", "geometric"], bag_sizes=[SIZE], epsilons=EPSILONS, search=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def expected():
    return pd.DataFrame({title: recomputed(channel) for title, channel in SETTINGS.items()}).T


def test_the_tables_are_what_enumeration_gives(audited, expected):
    attack = audited.tables["attack"]
    assert attack.index.tolist() == expected.index.tolist()
    for row in audited.settings.itertuples():
        right = expected.loc[row.title]
        # Five standard errors; the page's are of random bags and noise, enumeration has neither.
        for name, interval in (
            ("plug-in", Interval.of(row, "plug_in")),
            ("realised", Interval.of(row, "realised")),
        ):
            within = 5 * interval.standard_error + 1e-12
            assert interval.value == pytest.approx(right[name], abs=within), (row.title, name)
            assert within < 0.03
        error = 5 * row.revealed_error + 1e-12
        assert row.revealed == pytest.approx(right["revealed"], abs=error)
    alone = attack.index.str.startswith("RR")
    assert attack[alone]["plug-in"].to_numpy() == pytest.approx(
        expected[alone]["plug-in"].to_numpy()
    )
    assert audited.settings["worth"].tolist() == pytest.approx(
        expected["worth"].to_numpy(), rel=0.02
    )
    # The bags of equal labels, counted.
    ones = int(ONES.sum())
    equal = (math.comb(ones, SIZE) + math.comb(ROWS - ones, SIZE)) / math.comb(ROWS, SIZE)
    assert expected.loc[f"LLP (bags of {SIZE})", "revealed"] == pytest.approx(equal)


def test_the_verdicts_and_the_recommendation_follow(audited, expected):
    below = (expected[["plug-in", "realised"]] <= TARGET).all(axis=1)
    verdict = audited.verdicts["verdict"]
    assert set(verdict[below]) == {"meets"} and set(verdict[~below]) == {"misses"}
    assert 2 <= below.sum() < len(below)
    # What meets the target and proves next to nothing, in the order of its worth.
    kept = expected[below & (expected["revealed"] <= 0.001)]["worth"].sort_values()
    best = kept.index[kept >= 0.8 * kept.iloc[-1]]
    assert {each.setting.title for each in audited.recommended} == set(best)


def test_the_page_shows_them(audited, expected):
    page = bs4.BeautifulSoup(auditing.as_html(audited), "html.parser")
    assert audited.headline in page.find("p", class_="headline").get_text()
    [section] = [each for each in page.find_all("section") if each.h2.get_text() == "The attack"]
    rows = {row.th.get_text(): row.find_all("td") for row in section.tbody.find_all("tr")}
    assert list(rows) == expected.index.tolist()
    for setting in audited.settings.itertuples():
        cells = rows[setting.title]
        assert cells[0].span.get_text() == setting.verdict
        shown = [float(cell.contents[0].replace("−", "-")) for cell in cells[1:3]]
        values = [setting.plug_in, setting.realised]
        assert shown == pytest.approx(values, abs=5e-5)
        revealed = expected.loc[setting.title, "revealed"]
        assert float(cells[5].get_text().rstrip("%")) == pytest.approx(100 * revealed, abs=2)
