"""The report as one HTML page that needs no other file: no script, no network."""

import io
import re
from pathlib import Path
from typing import Any, BinaryIO

from labelaudit.files import write_atomically
from labelaudit.report import words
from labelaudit.report.attack import MOST_RECORDS, SURE, rounds_for
from labelaudit.report.decisions import MATERIAL, MOST_PROVEN
from labelaudit.report.eta import FOLDS, MATTERS
from labelaudit.report.intervals import COVERAGE
from labelaudit.report.numbers import as_json, versions
from labelaudit.report.people import LEAST_IN_GROUP
from labelaudit.report.scenarios import MOST_WITH_KNOWN, MOST_WITH_MATRIX
from labelaudit.report.utility import MOST_ROWS
from labelaudit.report.words import FOLDER

# Features named on the page; the JSON file has all.
MOST_NAMED = 30


def environment() -> Any:
    """The templates of the pages; every value is escaped unless it is marked as safe."""
    import markupsafe

    made = words.templates(autoescape=True)
    made.filters["svg"] = inline_svg
    made.globals |= {
        "words": words, "matters": MATTERS, "folds": FOLDS, "coverage": COVERAGE, "sure": SURE,
        "most_rows": MOST_ROWS, "most_named": MOST_NAMED, "most_with_known": MOST_WITH_KNOWN,
        "most_with_matrix": MOST_WITH_MATRIX, "least_in_group": LEAST_IN_GROUP,
        "material": MATERIAL, "most_proven": MOST_PROVEN,
        "most_records": MOST_RECORDS, "rounds_for": rounds_for,
        "css": markupsafe.Markup((FOLDER / "report.css").read_text(encoding="utf-8")),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }  # fmt: skip
    return made


def as_html(report: Any) -> str:
    """The whole page of a report: of a table, of a label with several classes, or of priors."""
    return environment().get_template(report.template).render(report=report)


def write_both(report: Any, page: Path) -> Path:
    """Write the page and its numbers, both or none: one is renamed when the other is complete."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"the page must be an .html file, not {page}")
    _write({page: as_html(report), page.with_suffix(".json"): as_json(report)})
    return page


def _write(texts: dict[Path, str]) -> None:
    """Write every file or none: each is renamed only after the next one is complete."""
    (path, text), *rest = texts.items()
    content = text.encode()

    def write(file: BinaryIO) -> None:
        file.write(content)
        if rest:
            _write(dict(rest))

    write_atomically(path, write)


def inline_svg(figure: Any, description: str) -> Any:
    """A figure as SVG within a page, with a description for those who cannot see it."""
    import markupsafe
    import matplotlib.pyplot as plt

    file = io.StringIO()
    # Letters stay text, which is lighter than outlines; the salt keeps ids of figures apart.
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": description,
        "font.sans-serif": ["DejaVu Sans"],
    }
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
