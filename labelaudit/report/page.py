"""The report as one HTML page that needs nothing beside it: no script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import metadata

from labelaudit.datasets.table import Column
from labelaudit.report import sections
from labelaudit.report.beliefs import calibration_ratio_said
from labelaudit.report.exposure import MOST_RECORDS, rounds_for
from labelaudit.report.html import table as as_table
from labelaudit.report.report import Report
from labelaudit.report.style import STYLE

# Features named on the page; the JSON file has all.
MOST_NAMED = 30

CAVEATS = (
    (
        "A better-informed attacker.",
        "The attacker here knows the features and has learned eta from data like these. One who"
        " knows more, about a person or about bag-mates, has another prior, and the advantage"
        " computed here is not his.",
    ),
    (
        "Records that depend on one another.",
        "Labels are taken as independent given the features. In households, clusters or time series"
        " they are not, and a release about one record then speaks about others. Neither the"
        " advantages nor the ceilings that follow from epsilon hold for an attacker who knows how"
        " labels depend on one another.",
    ),
    (
        "Repeated release.",
        "Every number is for one release. Releasing the same labels again, by this mechanism or by"
        " another, adds up: after r releases epsilon is r times as large.",
    ),
    (
        "The average.",
        "An advantage is a mean over records. A small mean leaves room for a few who are exposed;"
        " the percentile, the results by label and the list of records are there for that.",
    ),
    (
        "What a guarantee holds against.",
        "Under epsilon-label-DP log-odds move by at most epsilon, if labels are independent given"
        " what the attacker knows. Known bag-mates are fine, twins are not. Label proportions"
        " without noise have no such bound.",
    ),
)


def as_html(report: Report) -> str:
    """The whole page."""
    parts = [
        _header(report),
        _warnings(report),
        _advice(report),
        _data(report),
        sections.eta(report),
        sections.attack(report),
        sections.by_label(report),
        sections.own_bags(report),
        sections.knowing(report),
        sections.exposed(report),
        sections.utility(report),
        _caveats(),
        _made(report),
    ]
    title = f"Label audit of {escape(report.table.path.name)}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>"
        f"{''.join(parts)}</main></body></html>\n"
    )


def _header(report: Report) -> str:
    return (
        f"<header><h1>Label audit of {escape(report.table.path.name)}</h1><p>How much would a"
        " release of these labels help an attacker who knows the features to guess them? What"
        " would the mechanisms that hide them cost?</p></header>"
    )


def _warnings(report: Report) -> str:
    found = []
    calibration = report.beliefs.calibration
    if calibration.fails:
        found.append(
            f"The estimate of eta is not calibrated: its error is {calibration.error:.3f}, where"
            f" chance alone would give {calibration.noise:.3f}."
            f" {calibration_ratio_said(report.beliefs)} Whatever rests on eta is not to be"
            " relied on, and no setting is recommended but by its guarantee."
        )
    doubtful = [one.exposure.title for one in report.verdicts if one.exposure.contradicted]
    if doubtful:
        found.append(
            f"For {len(doubtful)} of {len(report.verdicts)} settings the advantage that eta"
            " promises and the one on the true labels differ by more than two standard errors:"
            f" {escape('; '.join(doubtful))}. About one in twenty does by chance, and since all"
            " share the same labels, several may at once."
        )
    if report.bags is not None and report.bags.move_together:
        found.append(
            "Labels within the table's bags agree more than eta explains (dispersion"
            f" {report.bags.dispersion:.2f}, where independence gives 1). An attacker who knows"
            " that could do better than the one audited here, and better than epsilon allows"
            " against independent labels. So no guarantee settles an advantage here."
        )
    items = "".join(f"<p>{text}</p>" for text in found)
    return f'<aside class="warning"><h2>Warnings</h2>{items}</aside>' if items else ""


def _advice(report: Report) -> str:
    items = "".join(
        f"<li><strong>{escape(name)}:</strong>{escape(text)}</li>"
        for name, _, text in (one.text.partition(":") for one in report.advices)
    )
    return (
        f'<section class="advice"><h2>Recommendation</h2><p><strong>{escape(report.summary)}'
        f"</strong></p><ul>{items}</ul></section>"
    )


def _data(report: Report) -> str:
    table = report.table
    ones = int(table.labels.sum())
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    used = (
        "a ready-made prior"
        if table.prior is not None
        else f"{len(table.columns)} features ({int(table.categorical.sum())} categorical):"
        f" {escape(_some(table.columns))}"
    )
    return (
        f"<section><h2>The data</h2><p>{len(table):,} records with the label"
        f" <em>{escape(table.label)}</em>; for {ones:,} of them ({ones / len(table):.1%}) it is"
        f" <em>{escape(table.positive)}</em>, the value called positive. Used: {used}.</p>"
        f"{f'<ul>{notes}</ul>' if notes else ''}</section>"
    )


def _some(columns: Sequence[Column]) -> str:
    """The names of the first few columns."""
    names = [column.name for column in columns[:MOST_NAMED]]
    more = len(columns) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _caveats() -> str:
    items = "".join(f"<dt>{title}</dt><dd>{text}</dd>" for title, text in CAVEATS)
    return f"<section><h2>What this does not promise</h2><dl>{items}</dl></section>"


def _made(report: Report) -> str:
    plan, rows = report.plan, len(report.table)
    facts = {
        "file": f"{report.table.path.name}, sha256 {report.table.fingerprint[:16]}",
        "mechanisms": ", ".join(plan.mechanisms),
        "bag sizes": ", ".join(map(str, plan.bag_sizes)),
        "epsilons": ", ".join(f"{one:g}" for one in plan.epsilons),
        "target": str(plan.target),
        "level of |I|": f"{plan.level:g}",
        "utility model": plan.utility,
        "releases looked ahead to": ", ".join(map(str, plan.repeats)),
        "bag-mates known": ", ".join(map(str, plan.known)) or "none, one, half, all",
        "refits, seed": f"{plan.refits}, {plan.seed}",
        "attacked in each refit": f"{min(rows, MOST_RECORDS):,} of {rows:,} records,"
        f" {rounds_for(rows)} times",
        "labelaudit": metadata.version("labelaudit"),
        "time": f"{report.seconds:.0f} s",
    }
    lines = [(escape(name), escape(value)) for name, value in facts.items()]
    return (
        "<section><h2>How this page was made</h2>"
        + as_table(("", ""), lines)
        + "<p>Every number on it, and more, is in the JSON file beside it.</p></section>"
    )
