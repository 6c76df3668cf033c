"""The report as one HTML page that needs no other file: no script, no network."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any, BinaryIO

from labelaudit.files import write_atomically
from labelaudit.report import words
from labelaudit.report.attack import MOST_RECORDS, SURE, rounds_for
from labelaudit.report.decisions import MATERIAL, MOST_PROVEN
from labelaudit.report.eta import FOLDS
from labelaudit.report.intervals import COVERAGE
from labelaudit.report.numbers import as_json, decided, made_at, plain, versions
from labelaudit.report.people import LEAST_IN_GROUP
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

    rows = len(report.table)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            words=words,
            figures={
                name: inline_svg(figure, name, figures.DESCRIPTIONS[name])
                for name, figure in report.figures.items()
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
            versions=", ".join(f"{name} {version}" for name, version in versions().items()),
            least_in_group=LEAST_IN_GROUP,
            material=MATERIAL,
            most_proven=MOST_PROVEN,
        )
    )


def write_both(report: Report, page: Path) -> Path:
    """Write the page and its numbers, both or none: one is renamed when the other is complete."""
    _check_name(page)
    _write({page: as_html(report), page.with_suffix(".json"): as_json(report)})
    return page


def _check_name(page: Path) -> None:
    if page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"the page must be an .html file, not {page}")


def write_priors(report: Any, page: Path, command: str = "", bag: str | None = None) -> None:
    """The page and the numbers of priors without labels."""
    values = plain(report) | {"headline": report.headline}
    _write_page("priors.html.j2", page, report, values, command=command, bag=bag)


def write_classes(report: Any, page: Path) -> Path:
    """The page and the numbers of a label with several classes."""
    _check_name(page)
    values = {"classes": report.classes, "rows": report.rows, "at_stake": report.at_stake}
    values |= {
        name: getattr(report, name) for name in ("target", "headline", "reasons", "warnings")
    }
    values |= {"settings": [decided(each) for each in report.decisions], "command": report.command}
    _write_page("classes.html.j2", page, report, plain(values), command=report.command)
    return page


def _write_page(
    template: str, page: Path, report: Any, values: dict[str, Any], **made: Any
) -> None:
    """A page from a template, and its numbers."""
    import markupsafe

    css = markupsafe.Markup((FOLDER / "report.css").read_text(encoding="utf-8"))
    shown = ", ".join(f"{name} {version}" for name, version in versions().items())
    made["made"] = made_at()
    chosen = environment().get_template(template)
    text = chosen.render(report=report, words=words, css=css, versions=shown, **made)
    numbers = json.dumps({**values, **made, "versions": versions()}, indent=1) + "\n"
    _write({page: text, page.with_suffix(".json"): numbers})


def _write(texts: dict[Path, str]) -> None:
    """Write every file or none: each is renamed only after the next one is complete."""
    (path, text), *rest = texts.items()
    content = text.encode()

    def write(file: BinaryIO) -> None:
        file.write(content)
        if rest:
            _write(dict(rest))

    write_atomically(path, write)


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
