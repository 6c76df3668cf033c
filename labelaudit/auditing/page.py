"""The page of an audit: one HTML file with its figures.

The page needs no other file: no script, no network. Figures have white and opaque grounds, so that
they read on a dark page, and each mechanism its colour and marker.
"""

import io
import platform
import re
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Any

import markupsafe
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from labelaudit import intervals
from labelaudit.auditing import (
    attack,
    decisions,
    eta,
    figures,
    options,
    scenarios,
    words,
)
from labelaudit.auditing.utility import MAX_ROWS

if TYPE_CHECKING:
    from labelaudit.auditing.report import SavedReport

# Features named on the page; the JSON file has all.
MAX_NAMED = 30


def as_html(report: "SavedReport") -> str:
    """The whole page of a report, of a table or of priors."""
    return environment().get_template(report.template).render(report=report)


def environment() -> Any:
    """The templates of the pages; every value is escaped unless it is marked as safe."""
    made = words.templates(autoescape=True)
    made.filters["svg"] = inline_svg
    made.globals |= {
        "words": words, "draw": figures, "max_rows": MAX_ROWS, "max_named": MAX_NAMED,
        "matters": options.MATTERS, "folds": eta.FOLDS, "coverage": intervals.COVERAGE,
        "sure": attack.SURE, "max_records": attack.MAX_RECORDS, "rounds_for": attack.rounds_for,
        "max_with_matrix": attack.MAX_WITH_MATRIX, "max_with_known": scenarios.MAX_WITH_KNOWN,
        "min_in_group": scenarios.MIN_IN_GROUP, "material": decisions.MATERIAL,
        "comparable": decisions.COMPARABLE, "max_proven": decisions.MAX_PROVEN,
        "css": markupsafe.Markup((words.FOLDER / "report.css").read_text(encoding="utf-8")),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }  # fmt: skip
    return made


def inline_svg(figure: Figure, description: str) -> markupsafe.Markup:
    """A figure as SVG within a page, with a description for those who cannot see it."""
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


def versions() -> dict[str, str]:
    """The versions of what the numbers depend on, as far as it is installed."""
    installed = {"python": platform.python_version()}
    for name in ("labelaudit", "numpy", "scipy", "numba", "pandas", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed
