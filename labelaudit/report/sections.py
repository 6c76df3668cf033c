"""The sections of the report's page, each from the numbers of an audit."""

from __future__ import annotations

import math
from html import escape

from labelaudit.report import charts
from labelaudit.report.advice import Verdict
from labelaudit.report.beliefs import FOLDS, calibration_ratio_said, calibration_test
from labelaudit.report.exposure import SURE
from labelaudit.report.html import epsilon, exposed_records, figure, interval, table
from labelaudit.report.intervals import COVERAGE
from labelaudit.report.report import Report
from labelaudit.report.scenarios import MOST_WITH_MATES, MOST_WITH_MATRIX, Knowing
from labelaudit.report.utility import MOST_ROWS

INTERVALS = (
    "Intervals are {coverage:.0%}, by bag. Each number is computed {rounds}, and averaged. Its"
    " error comes from how bags differ and from the records that all rounds share; {spread} They"
    " cover {covered}. They do not cover another way of learning eta, and they hold for one setting"
    " at a time."
)
REFITTED = {
    "rounds": "anew for every refit of eta, with other folds, other random bags and fresh noise",
    "spread": "where refits differ by more, the spread between them is added (Rubin's rule).",
    "covered": "the records drawn, the bags, the noise and the split that eta was trained on; the"
    " one by eta leaves out that other records would have taught another eta",
}
READY_MADE = {
    "rounds": "several times, with other random bags and fresh noise",
    "spread": "bags and noise average out.",
    "covered": "the records drawn, the bags and the noise, but not how eta was made",
}


def eta(report: Report) -> str:
    """What the attacker believes beforehand, and whether to trust it."""
    calibration = report.beliefs.calibration
    how = (
        f"Eta was estimated {report.plan.refits} times by gradient boosting, cross-fitted over"
        f" {FOLDS} folds and calibrated on a fold of its own, so that no record's label has a part"
        " in its own estimate."
        if report.beliefs.refitted
        else "Eta is the table's own column; it was not refitted, and the intervals do not include"
        " how it was made."
    )
    verdict = "It fails the test" if calibration.fails else "It passes the test"
    return (
        "<section><h2>The attacker's prior</h2><p>The attacker first guesses from the features: eta"
        f" is the probability of a positive label given them. {how}</p><p>Its AUC is"
        f" {calibration.auc:.3f} and its Brier score {calibration.brier:.4f}. The expected"
        f" calibration error is {calibration.error:.4f}; chance alone would give about"
        f" {calibration.noise:.4f}. {calibration_ratio_said(report.beliefs)}</p>"
        f"<p>Without any release this attacker is wrong about {report.at_stake:.1%} of the records,"
        " by eta or in truth, whichever is more. No release can add more than that.</p>"
        f"<p>{verdict}: {calibration_test(report.beliefs.refitted)}</p>"
        '<div class="pair">'
        + figure(
            charts.reliability_chart(calibration),
            "Share of positive labels against eta, in groups of like size, with two standard"
            " errors. Calibrated estimates lie on the diagonal.",
        )
        + figure(charts.histogram_chart(report.histogram), "How many records have which eta.")
        + "</div></section>"
    )


def verdict_cell(verdict: Verdict) -> str:
    """The word, and why."""
    return (
        f'<span class="verdict {verdict.word.split()[0]}">{verdict.word}</span>'
        f'<small class="why">{escape(verdict.why)}</small>'
    )


def attack(report: Report) -> str:
    """Every setting: both advantages, the percentile, the verdict."""
    target = report.plan.target.value if report.plan.target.kind == "additive" else None
    rows = [
        (
            escape(one.exposure.title),
            verdict_cell(one),
            interval(one.exposure.plug_in, 4),
            interval(one.exposure.realised, 4),
            interval(one.exposure.difference, 4)
            + ("<b> !</b>" if one.exposure.contradicted else ""),
            interval(one.exposure.percentile, 2, math.inf),
            f"{one.exposure.revealed.value:.2%}",
            epsilon(one.exposure.epsilon, one.exposure.setting.checked),
        )
        for one in report.verdicts
    ]
    head = (
        "setting",
        "target",
        "advantage by eta",
        "advantage on true labels",
        "difference",
        f"|I| at {report.plan.level:g}",
        "revealed",
        "epsilon",
    )
    aim = "; the dashed line is the target" if target is not None else ""
    kind = REFITTED if report.beliefs.refitted else READY_MADE
    said = INTERVALS.format(coverage=COVERAGE, **kind)
    return (
        "<section><h2>The attack</h2><p>The additive advantage is the gain in the chance to guess a"
        " label right that the release gives. It is stated twice: as eta promises it, averaged"
        " exactly over releases where that can be done, and as the same attacker realised it on the"
        " true labels. |I| is by how much the log-odds of a record move; <em>revealed</em> is the"
        " share of records whose label the release proves. Epsilon is the guarantee that survives"
        " what an attacker knows besides, as long as labels are independent given that."
        f"</p>{charts.legend([*report.verdicts])}"
        + figure(
            charts.advantage_chart(report.verdicts, target),
            f"Hollow marks: by eta. Filled ones with intervals: on the true labels{aim}.",
        )
        + table(head, rows)
        + f'<p class="note">{said}</p></section>'
    )


def by_label(report: Report) -> str:
    """The same for each true label."""
    rows = []
    for one in report.verdicts:
        for part in one.exposure.by_label:
            sure = f"{part.sure_before.value:.1%} &rarr; {part.sure_after.value:.1%}"
            if math.isnan(part.sure_before.value):
                sure = "-"
            name = f"{escape(one.exposure.title)}, label {part.label}"
            rows.append((name, interval(part.gain, 4), sure))
    head = ("setting and true label", "gain in accuracy", f"known with {SURE:.0%} certainty")
    return (
        "<section><h2>By true label</h2><p>The average hides the rarer label. A release may cost"
        " the attacker accuracy on one label while it wins more on the other. The last column is"
        f" the share of records whose true label the attacker is at least {SURE:.0%} sure of,"
        f" before and after the release.</p><details><summary>{len(rows)}"
        f" lines</summary>{table(head, rows)}</details></section>"
    )


def own_bags(report: Report) -> str:
    """The table's bags beside random ones; nothing where it has none."""
    facts = report.bags
    if facts is None:
        return ""
    rows = [
        (
            escape(one.title),
            verdict_cell(verdict),
            interval(one.given.plug_in, 4),
            interval(one.given.realised, 4),
            interval(one.given.percentile, 2, math.inf),
            f"{one.given.revealed.value:.2%}",
            interval(one.random.plug_in, 4),
            interval(one.random.realised, 4),
        )
        for one, verdict in zip(report.given, report.in_bags, strict=True)
    ]
    head = (
        "mechanism",
        "target",
        "own, by eta",
        "own, true labels",
        f"own, |I| at {report.plan.level:g}",
        "own, revealed",
        "random, by eta",
        "random, true labels",
    )
    learned = (
        " Folds do not follow the bags: eta of a record is learned from labels of its bag-mates"
        " among others, as by an attacker who has seen records of the same bags."
        if report.beliefs.refitted
        else ""
    )
    return (
        f"<section><h2>The table's own bags</h2><p>{facts.bags:,} bags of {facts.sizes}."
        f" {facts.of_one_record:,} hold a single record, which label proportions publish"
        f" outright. In {facts.of_one_label:,} all labels are alike, so that proportions without"
        " noise give every one of them away; eta led one to expect"
        f" {facts.expected_of_one_label:,.1f}. The dispersion of labels within bags"
        f" is {facts.dispersion:.2f} (&plusmn; {2 * facts.dispersion_error:.2f}); 1 means"
        f" independent given eta.{learned}</p><p>Bags that are not drawn at random may hold people"
        " who are alike. Beside each number on the table's own bags stands the one on random bags"
        " of the same sizes. The target is judged on the table's own.</p>"
        + (table(head, rows) if rows else "")
        + f"<p>{_without_bags(report)}</p></section>"
    )


def _without_bags(report: Report) -> str:
    """Which mechanisms were not tried on the table's bags, and why."""
    tried = {one.given.setting.family for one in report.given}
    rest = dict.fromkeys(one.family for one in report.plan.settings if one.family not in tried)
    large = f"bags above {MOST_WITH_MATRIX:,} are too large for its law"
    why = {one: large if "bag_size" in one.parameters else "its bag size is fixed" for one in rest}
    said = [f"{escape(one.short)} ({reason})" for one, reason in why.items()]
    return f"Not tried on these bags: {', '.join(said)}." if said else ""


def knowing(report: Report) -> str:
    """Known bag-mates and repeated releases."""
    rows = [
        (
            escape(one.setting.title),
            _knows(one),
            interval(one.advantage, 4),
            epsilon(one.epsilon, one.setting.checked),
        )
        for one in report.knowing
    ]
    head = ("setting", "the attacker", "advantage", "epsilon that remains")
    large = dict.fromkeys(
        one.setting.title
        for one in report.knowing
        if one.setting.mechanism.bag_size > MOST_WITH_MATES
    )
    left_out = (
        f" Bags above {MOST_WITH_MATES} are too large for known mates and for repeated noise, which"
        f" were left out for {escape(', '.join(large))}."
        if large
        else ""
    )
    return (
        "<section><h2>If the attacker knows more</h2><p>The same bags, but the labels of some"
        " bag-mates are known; or the same labels released several times with fresh noise. The"
        " advantage can only grow; epsilon is unmoved by known mates and adds up over releases."
        f" Computed from eta for a sample of bags, for one setting of each mechanism.{left_out}</p>"
        f"{table(head, rows)}</section>"
    )


def _knows(one: Knowing) -> str:
    if one.times > 1:
        return f"sees {one.times} releases"
    mates = one.setting.mechanism.bag_size - 1
    return f"knows {one.known} of {mates} bag-mates" if mates else "sees one release"


def exposed(report: Report) -> str:
    """Ids of the records with the largest advantage."""
    lists = "".join(
        f"<tr><th scope='row'>{escape(title)}</th><td>" + exposed_records(rows) + "</td></tr>"
        for title, rows in report.exposed.items()
    )
    return (
        "<section><h2>The most exposed records</h2><p>Row numbers (or the identifiers of the"
        " column that was named), with the additive advantage of each, averaged over the refits"
        " and over random bags, the same ones for every record. Features and labels are not"
        " shown.</p>"
        f'<div class="wide" tabindex="0"><table class="text"><tbody>{lists}</tbody></table></div>'
        "</section>"
    )


def utility(report: Report) -> str:
    """What the mechanisms cost."""
    model = {"logistic": "a logistic model", "network": "a small network"}.get(report.plan.utility)
    rows = [
        (
            escape(one.title),
            "-" if one.worth is None else f"{one.worth:.3g}",
            interval(one.auc),
            interval(one.loss),
        )
        for one in report.utilities
    ]
    few = (
        f" The model saw at most {MOST_ROWS:,} of the records; with all of them every mechanism"
        " loses less."
        if len(report.table) > MOST_ROWS
        else ""
    )
    trained = (
        f"AUC is that of {model} trained on the debiased releases and tested on clean labels; the"
        " penalty or the stopping time is chosen on released labels alone. Gradient boosting on"
        f" clean labels has {report.beliefs.calibration.auc:.3f}." + few
        if model and report.utilities[0].auc is not None
        else "No model was trained."
    )
    return (
        "<section><h2>Privacy against utility</h2><p><em>Worth</em> is the share of a clean label"
        " that a released one is worth to a linear model: at 0.1, ten records teach what one clean"
        f" record would. {trained}</p>"
        + figure(
            charts.trade_off_chart(report.verdicts, report.utilities),
            "Better mechanisms lie to the upper left. The dashed line is the model on clean"
            " labels.",
        )
        + f"<details><summary>{len(rows)} lines</summary>"
        + table(("setting", "worth", "AUC", "lost to clean labels"), rows)
        + "</details></section>"
    )
