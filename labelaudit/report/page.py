"""The report as one HTML page that needs no other file: no script, no network."""

from __future__ import annotations

import io
import math
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from labelaudit.report import words
from labelaudit.report.attack import MOST_RECORDS, SURE, rounds_for
from labelaudit.report.eta import FOLDS
from labelaudit.report.intervals import COVERAGE
from labelaudit.report.scenarios import MOST_WITH_KNOWN, MOST_WITH_MATRIX
from labelaudit.report.steps import Report
from labelaudit.report.utility import MOST_ROWS

FOLDER = Path(__file__).parent
# Features named on the page; the JSON file has all.
MOST_NAMED = 30


def environment() -> Any:
    """The templates of the page; every value is escaped unless it is marked as safe."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["fmt"] = format
    made.globals["inf"] = math.inf
    return made


def as_html(report: Report) -> str:
    """The whole page."""
    import markupsafe

    from labelaudit.report import figures

    drawn = {"calibration": figures.calibration(report), "attack": figures.attack(report)}
    if report.utilities[0].auc is not None:
        drawn["utility"] = figures.utility(report)
    rows = len(report.table)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            words=words,
            figures={
                name: inline_svg(figure, name, figures.DESCRIPTIONS[name])
                for name, figure in drawn.items()
            },
            css=markupsafe.Markup((FOLDER / "report.css").read_text(encoding="utf-8")),
            folds=FOLDS,
            coverage=COVERAGE,
            sure=SURE,
            most_rows=MOST_ROWS,
            most_named=MOST_NAMED,
            most_with_known=MOST_WITH_KNOWN,
            most_with_matrix=MOST_WITH_MATRIX,
            attacked=f"{min(rows, MOST_RECORDS):,} of {rows:,} records, {rounds_for(rows)} times",
            version=metadata.version("labelaudit"),
        )
    )


def inline_svg(figure: Any, name: str, description: str) -> Any:
    """A figure as SVG within a page, with a description for those who cannot see it."""
    import markupsafe
    import matplotlib.pyplot as plt

    file = io.StringIO()
    # Letters stay text, which is lighter than outlines; the salt keeps ids of figures apart.
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "font.sans-serif": ["DejaVu Sans"]}
    with plt.rc_context(style):
        figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    svg = file.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # Nothing refers to the ids of groups, and every figure has the same ones.
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    width = 96 * figure.get_figwidth()
    # On a narrow screen it scrolls: smaller letters could not be read.
    attributes = markupsafe.Markup(
        '<svg role="img" aria-label="{}" style="max-width:{:.0f}px;min-width:{:.0f}px" '
    ).format(description, width, 0.85 * width)
    return markupsafe.Markup(svg.replace("<svg ", attributes, 1))
