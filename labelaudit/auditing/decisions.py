"""Whether a setting meets the target, and which settings to recommend: columns of the table."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from labelaudit.auditing import words
from labelaudit.auditing.options import Target
from labelaudit.auditing.settings import Setting
from labelaudit.bounds import label_dp_classes_bound
from labelaudit.intervals import Row
from labelaudit.mechanisms import Kind

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"
# Labels whose worth differs by less than this fraction count as worth the same.
MATERIAL = 0.2
# Among settings of equal cost, one is worse if its epsilon is above this many times another's.
COMPARABLE = 2
# A setting that proves more than this fraction of the labels is recommended only with a warning.
MAX_PROVEN = 0.001
# The largest epsilon that is looked for, and the halvings that find one to more digits than shown.
MAX_EPSILON, HALVINGS = 20.0, 60


def decide_all(
    settings: pd.DataFrame, target: Target, *, trusted: bool = True, together: bool = False
) -> pd.DataFrame:
    """The table with each setting's `verdict`, its `rule`, `why` in words, and if it `proves`."""
    rows = list(settings.itertuples())
    decided = [decide(row, target, trusted=trusted, together=together) for row in rows]
    unaware = words.WHY["unaware"] if together else ""
    return settings.assign(
        verdict=[verdict for verdict, _ in decided],
        rule=[rule for _, rule in decided],
        why=[
            words.reason(rule, row)
            + (unaware if verdict == MEETS and rule.endswith("below") else "")
            for row, (verdict, rule) in zip(rows, decided, strict=True)
        ],
        proves=[row.revealed > MAX_PROVEN for row in rows],
    )


def decide(
    row: Row, target: Target, *, trusted: bool = True, together: bool = False
) -> tuple[str, str]:
    """Meets, misses, or cannot tell, and the rule behind it; the first that applies decides.

    1. Facts by construction, which need no eta: epsilon, what it guarantees, labels that are
       proven, and |I| of a single label. Where labels move `together`, a guarantee settles a target
       on epsilon and no other. Epsilon and |I| count once for each row of a person.
    2. An eta that is not `trusted`, since the true labels contradict it by more than matters,
       leaves every other verdict open. So does an attack that loses on the true labels: with a true
       eta the best guess gains or changes nothing on average.
    3. Otherwise both intervals decide, by eta and on the true labels.
    """
    mechanism = row.setting.mechanism
    if row.setting.kind.own and abs(row.difference) > 4 * row.difference_error:
        return UNCLEAR, "channel refuted"
    if target.kind == "epsilon":
        return _decide_epsilon(row, target)
    classes = getattr(mechanism, "classes", 2)
    if guaranteed(row.guarantee, target, classes) and not together:
        return MEETS, "guaranteed"
    additive = target.kind == "additive"
    if not additive and row.revealed_low > 1 - target.level:
        return MISSES, "proves labels"
    names, both = (["plug_in", "realised"], "both ") if additive else (["percentile"], "")
    if any(math.isnan(getattr(row, name)) for name in names):
        return UNCLEAR, "undefined"
    # The log-odds of a label that is released alone move by as much for every eta.
    needs_eta = additive or mechanism.bag_size > 1
    if needs_eta and not trusted:
        return UNCLEAR, "eta refuted"
    if needs_eta and row.realised_high < 0:
        return UNCLEAR, "attack loses"
    if all(getattr(row, f"{name}_low") > target.value for name in names):
        return MISSES, f"{both}above"
    if all(getattr(row, f"{name}_high") <= target.value for name in names):
        if not additive and row.rows * row.percentile_high > target.value:
            return UNCLEAR, "rows of a person"
        return MEETS, f"{both}below"
    return UNCLEAR, f"{both}open"


def _decide_epsilon(row: Row, target: Target) -> tuple[str, str]:
    if guaranteed(row.guarantee, target):
        return MEETS, "epsilon known"
    if guaranteed(row.declared, target):
        return UNCLEAR, "epsilon declared"
    if math.isinf(row.epsilon):
        return MISSES, "no epsilon"
    return MISSES, "epsilon too large" if row.rows == 1 else "epsilon of a person"


def guaranteed(epsilon: float, target: Target, classes: int = 2) -> bool:
    """Whether epsilon alone keeps the target, if labels are independent given what is known.

    Then no epsilon-label-DP release of a label with so many classes has an additive advantage above
    `label_dp_classes_bound`, or a multiplicative one above epsilon. The attacker may know other
    labels. But where labels depend on one another, as those of twins, a release about one label is
    also a release about the others.

    >>> guaranteed(0.2, Target("additive", 0.05)), guaranteed(0.3, Target("additive", 0.05))
    (True, False)
    """
    if target.kind == "additive":
        return float(label_dp_classes_bound(epsilon, classes)) <= target.value
    return epsilon <= target.value


def guaranteed_epsilon(target: Target, rows: int = 1, classes: int = 2) -> float:
    """The largest epsilon that is `guaranteed` for a person with so many rows, in three digits.

    It is rounded down, at most `MAX_EPSILON`, and 0 where only no release keeps the target.

    >>> guaranteed_epsilon(Target("epsilon", 1.0)), guaranteed_epsilon(Target("epsilon", 1.0), 3)
    (1.0, 0.333)
    """
    low, high = 0.0, MAX_EPSILON
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if guaranteed(rows * middle, target, classes) else (low, middle)
    digit = 10.0 ** (math.floor(math.log10(high)) - 2)
    # The halving ends just below a round number: one above it and those that follow.
    steps = (round((math.floor(high / digit) + step) * digit, 12) for step in (1, 0, -1))
    return next(
        (step for step in steps if step > 0 and guaranteed(rows * step, target, classes)), 0.0
    )


def close_under_noise(settings: pd.DataFrame, target: Target) -> pd.DataFrame:
    """Leave open what meets the target while the same with more noise is not shown to."""
    rows, closed = list(settings.itertuples()), settings.copy()
    broken = [row.verdict == MEETS and not noisier_meet(row, rows, target) for row in rows]
    for column, value in (("verdict", UNCLEAR), ("rule", "noisier"), ("why", words.WHY["noisier"])):
        closed[column] = closed[column].mask(np.array(broken, dtype=bool), value)
    return closed


def noisier_meet(row: Row, rows: Iterable[Row], target: Target) -> bool:
    """Whether all of `rows` meet the target that are on the same with a smaller epsilon.

    Noise can be added to a release, so that an additive advantage and epsilon never grow with it. A
    percentile of |I| may. Of a mechanism of the user's own nothing is known.
    """
    if target.kind == "multiplicative":
        return True
    return all(each.verdict == MEETS for each in rows if _has_more_noise(each.setting, row.setting))


def _has_more_noise(first: Setting, second: Setting) -> bool:
    ours, theirs = dict(first.parameters), dict(second.parameters)
    smaller = ours.pop("epsilon", math.inf) < theirs.pop("epsilon", math.inf)
    return smaller and first.kind == second.kind and ours == theirs and not first.kind.own


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What epsilon promises about a row, and about a person with the most rows.

    Both are infinite where there is no guarantee. `settles` says what of it alone meets the target,
    "epsilon" or "label-DP bound"; None where the attack had to decide.
    """

    epsilon: float
    rows: int
    per_person: float
    settles: str | None


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A setting to publish: its verdict, what a released label is worth, what is guaranteed.

    `setting` has the mechanism and its parameters. `worth` is None where it is not known, `proven`
    the fraction of labels that the release proves, `why` the verdict's reason in words.
    """

    setting: Setting
    verdict: str
    why: str
    worth: float | None
    proven: float
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True)
class Choice:
    """For one kind of mechanism: the least noisy row that meets the target, in plain words.

    `row` and `own_bags` are of the tables of settings: None where none meets it, or where there are
    no bags of the table's own. The text goes on after the kind's title.
    """

    kind: Kind
    row: Row | None
    own_bags: Row | None
    text: str


def choose(
    settings: pd.DataFrame, own_bags: pd.DataFrame | None = None, clean_auc: float | None = None
) -> tuple[Choice, ...]:
    """The choice for each kind of mechanism, also on the table's own bags."""
    choices = []
    kinds = {row.setting.kind: None for row in settings.itertuples()}
    in_bags = settings.iloc[:0] if own_bags is None else own_bags
    for kind in kinds:
        rows = sorted((r for r in settings.itertuples() if r.setting.kind == kind), key=_noise)
        # The table's bags are fixed: only epsilon is left to choose.
        own = [row for row in in_bags.itertuples() if row.setting.kind == kind]
        own.sort(key=lambda row: -row.epsilon)
        best, best_of_own = least_noisy(rows), least_noisy(own)
        text = words.sentence("advice", rows, best, clean_auc, own, best_of_own)
        choices.append(Choice(kind=kind, row=best, own_bags=best_of_own, text=text))
    return tuple(choices)


def _noise(row: Row) -> tuple[float, float, float]:
    """A key that sorts the least noisy first: by worth where it is known, else by parameters."""
    return -_known_worth(row), -row.epsilon, row.bag_size


def _known_worth(row: Row) -> float:
    return 0.0 if math.isnan(row.worth) else row.worth


def least_noisy(rows: Sequence[Row]) -> Row | None:
    """The first that meets the target and proves no label; else the first that meets it."""
    meeting = sorted((row for row in rows if row.verdict == MEETS), key=lambda row: row.proves)
    return meeting[0] if meeting else None


def best_of(choices: Sequence[Choice]) -> list[Row]:
    """The rows that cost least, of those that prove no labels where there are such.

    At an equal cost nobody should take a much weaker guarantee: such settings are left out, and the
    strongest guarantee comes first.
    """
    rows = [choice.row for choice in choices if choice.row is not None]
    if not rows:
        return []
    proves, least = min((row.proves, -_known_worth(row)) for row in rows)
    equal = [
        row for row in rows if row.proves == proves and _cost_the_same(_known_worth(row), -least)
    ]
    strongest = min(row.guarantee for row in equal)
    comparable = [row for row in equal if row.guarantee <= COMPARABLE * strongest]
    return sorted(comparable, key=lambda row: row.guarantee)


def _cost_the_same(*worths: float) -> bool:
    return min(worths) >= (1 - MATERIAL) * max(worths)


def recommend(choices: Sequence[Choice]) -> tuple[Recommendation, ...]:
    """What to publish: the settings that cost least; nothing that proves labels is among them."""
    settling = {"epsilon known": "epsilon", "guaranteed": "label-DP bound"}
    return tuple(
        Recommendation(
            setting=row.setting,
            verdict=row.verdict,
            why=row.why,
            worth=None if math.isnan(row.worth) else row.worth,
            proven=row.revealed,
            guarantee=Guarantee(
                epsilon=row.epsilon if row.setting.checked else math.inf,
                rows=row.rows,
                per_person=row.guarantee,
                settles=settling.get(row.rule),
            ),
        )
        for row in best_of(choices)
        if not row.proves
    )


def settings_to_detail(choices: Sequence[Choice], settings: pd.DataFrame) -> list[Setting]:
    """For each kind of mechanism the recommended setting, or the one with the least advantage."""
    chosen = []
    for choice in choices:
        rows = [row for row in settings.itertuples() if row.setting.kind == choice.kind]
        least = min(rows, key=lambda row: (row.plug_in, row.epsilon))
        chosen.append((choice.row or least).setting)
    return chosen
