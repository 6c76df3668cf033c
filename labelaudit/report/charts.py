"""The report's figures as plain SVG: white ground, one colour per mechanism, no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from labelaudit.report.advice import Verdict
from labelaudit.report.beliefs import Calibration
from labelaudit.report.utility import Utility

Points = Sequence[tuple[float, float]]
INK, PALE = "#1a1a1a", "#d8dbe0"
# Outlines of the markers, around their place: in grey a mechanism is known by its shape.
SHAPES = {
    "s": "-4,-4 4,-4 4,4 -4,4",
    "^": "0,-5 5,4 -5,4",
    "D": "0,-5.4 5.4,0 0,5.4 -5.4,0",
    "v": "0,5 5,-4 -5,-4",
}


class Frame:
    """A plot with axes: data in, SVG out."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        width: int = 560,
        height: int = 320,
        margin: tuple[int, int, int, int] = (14, 16, 46, 58),
    ) -> None:
        """Ranges of both axes, the size in pixels, the margins as in CSS."""
        self.x, self.y, self.width, self.height = x, y, width, height
        self.top, self.right, self.bottom, self.left = margin
        self.parts: list[str] = []

    def across(self, value: float) -> float:
        """A horizontal place in pixels."""
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + min(max(share, 0.0), 1.0) * (self.width - self.left - self.right)

    def up(self, value: float) -> float:
        """A vertical place in pixels."""
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return (
            self.height
            - self.bottom
            - min(max(share, 0.0), 1.0) * (self.height - self.top - self.bottom)
        )

    def line(self, points: Points, colour: str, *, width: float = 1.5, dashes: str = "") -> None:
        """A polyline."""
        path = " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
            f"{dashed}/>"
        )

    def dot(
        self,
        x: float,
        y: float,
        colour: str,
        *,
        marker: str = "o",
        hollow: bool = False,
        title: str = "",
    ) -> None:
        """A marker, with a tooltip."""
        said = f"<title>{escape(title)}</title>" if title else ""
        place = f"translate({self.across(x):.1f} {self.up(y):.1f})"
        fill = "white" if hollow else colour
        self.parts.append(
            f'<g transform="{place}" fill="{fill}" stroke="{colour}" stroke-width="1.6">'
            f"{said}{shape(marker)}</g>"
        )

    def bar(self, x: tuple[float, float], top: float, colour: str) -> None:
        """An upright bar from zero."""
        left, right, up = self.across(x[0]), self.across(x[1]), self.up(top)
        self.parts.append(
            f'<rect x="{left + 0.5:.1f}" y="{up:.1f}" width="{max(right - left - 1, 0.5):.1f}"'
            f' height="{self.up(self.y[0]) - up:.1f}" fill="{colour}"/>'
        )

    def text(self, x: float, y: float, words: str, anchor: str = "middle", size: int = 12) -> None:
        """Words at a place in pixels."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
            f' fill="{INK}">{escape(words)}</text>'
        )

    def axes(self, x_name: str, y_name: str = "", *, y_ticks: bool = True) -> None:
        """Ticks, grid lines and names."""
        base = self.up(self.y[0])
        for value in ticks(*self.x):
            place = self.across(value)
            self.line([(value, self.y[0]), (value, self.y[1])], PALE, width=0.8)
            self.text(place, base + 16, f"{value:g}", size=11)
        for value in ticks(*self.y) if y_ticks else []:
            self.line([(self.x[0], value), (self.x[1], value)], PALE, width=0.8)
            self.text(self.left - 6, self.up(value) + 4, f"{value:g}", "end", 11)
        self.line([(self.x[0], self.y[0]), (self.x[1], self.y[0])], INK, width=1)
        self.text((self.left + self.width - self.right) / 2, self.height - 10, x_name)
        if y_name:
            middle = (self.top + base) / 2
            self.parts.append(
                f'<text transform="translate(14 {middle:.1f}) rotate(-90)" text-anchor="middle"'
                f' font-size="12" fill="{INK}">{escape(y_name)}</text>'
            )

    def svg(self, description: str) -> str:
        """The figure, with a sentence for those who cannot see it."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img"'
            f' aria-label="{escape(description, quote=True)}"'
            # On a narrow screen it scrolls rather than shrink below what can be read.
            f' style="max-width:{self.width}px;min-width:{0.85 * self.width:.0f}px"'
            ' xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif">'
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>'
            f"{''.join(self.parts)}</svg>"
        )


def shape(marker: str) -> str:
    """The outline of a marker around the origin.

    >>> shape("o"), shape("^")
    ('<circle r="4"/>', '<polygon points="0,-5 5,4 -5,4"/>')
    """
    return f'<polygon points="{SHAPES[marker]}"/>' if marker in SHAPES else '<circle r="4"/>'


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two ends.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    step = 10 ** math.floor(math.log10((high - low) / about))
    step = next(step * by for by in (1, 2, 5, 10) if (high - low) / (step * by) <= about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) + 0.0 for number in range(first, last + 1)]


def reliability_chart(calibration: Calibration) -> str:
    """Share of ones against eta, with two standard errors, on the diagonal if all is well."""
    most = max(*calibration.predicted, *calibration.observed, 0.05) * 1.08
    top = min(1.0, most)
    frame = Frame((0, top), (0, top), width=380, height=340)
    frame.axes("estimated eta", "share of ones")
    frame.line([(0, 0), (top, top)], INK, width=1, dashes="2 3")
    triples = zip(
        calibration.predicted, calibration.observed, calibration.standard_error, strict=True
    )
    for predicted, observed, error in triples:
        ends = [(predicted, observed - 2 * error), (predicted, observed + 2 * error)]
        frame.line(ends, "#0072B2", width=1.5)
        frame.dot(predicted, observed, "#0072B2", title=f"{predicted:.3f}: {observed:.3f}")
    return frame.svg(
        "Share of positive labels against estimated eta in groups of records; points on the"
        " diagonal are calibrated."
    )


def histogram_chart(counts: Sequence[int]) -> str:
    """How many records have which eta."""
    frame = Frame((0, 1), (0, max(counts) * 1.05), width=380, height=340)
    frame.axes("estimated eta", "records")
    for place, count in enumerate(counts):
        frame.bar((place / len(counts), (place + 1) / len(counts)), count, "#0072B2")
    return frame.svg("Number of records by estimated eta, in twenty equal parts from 0 to 1.")


def advantage_chart(verdicts: Sequence[Verdict], target: float | None) -> str:
    """A line for each setting: the plug-in hollow, the realised advantage with its interval."""
    exposures = [verdict.exposure for verdict in verdicts]
    highest = max(max(one.realised.high, one.plug_in.high) for one in exposures)
    lowest = min(0.0, *(one.realised.low for one in exposures))
    top = max(highest, target or 0.0) * 1.04 + 1e-6
    rows = len(exposures)
    frame = Frame(
        (lowest, top), (rows, 0), width=620, height=60 + 20 * rows, margin=(8, 16, 46, 236)
    )
    frame.axes("additive advantage", y_ticks=False)
    if target is not None:
        frame.line([(target, 0), (target, rows)], "#a8320a", width=1.6, dashes="6 3")
    for place, exposure in enumerate(exposures):
        y, family = place + 0.5, exposure.setting.family
        colour, marker = family.colour, family.marker
        frame.text(frame.left - 8, frame.up(y) + 4, exposure.title, "end", 11)
        frame.line([(exposure.realised.low, y), (exposure.realised.high, y)], colour, width=2)
        done, promised = exposure.realised, exposure.plug_in
        frame.dot(done.value, y, colour, marker=marker, title=f"realised {done}")
        frame.dot(promised.value, y, colour, marker=marker, hollow=True, title=f"eta {promised}")
    return frame.svg(
        "Additive advantage of every setting: a hollow marker for what the estimate of eta"
        " promises, a full one with its 95% interval for what the attack gained on the true labels."
    )


def trade_off_chart(verdicts: Sequence[Verdict], utilities: Sequence[Utility]) -> str:
    """AUC against realised advantage, with intervals; the dashed line is the clean model."""
    costs = {one.setting: one.auc for one in utilities}
    clean = costs.get(None)
    pairs = [
        (verdict.exposure, area)
        for verdict in verdicts
        if (area := costs.get(verdict.exposure.setting)) is not None
    ]
    if clean is None or not pairs:
        return ""
    low = min(0.5, *(area.low for _, area in pairs))
    high = max(clean.high, *(area.high for _, area in pairs))
    left = min(0.0, *(exposure.realised.low for exposure, _ in pairs))
    right = max(exposure.realised.high for exposure, _ in pairs) * 1.04 + 1e-6
    frame = Frame((left, right), (max(low, 0.3), min(high * 1.01, 1.0)), width=620, height=380)
    frame.axes("realised additive advantage", "AUC")
    frame.line([(left, clean.value), (right, clean.value)], INK, width=1.2, dashes="6 3")
    for exposure, area in pairs:
        x, family = exposure.realised, exposure.setting.family
        colour = family.colour
        frame.line([(x.low, area.value), (x.high, area.value)], colour, width=1)
        frame.line([(x.value, area.low), (x.value, area.high)], colour, width=1)
        said = f"{exposure.title}: AUC {area}"
        frame.dot(x.value, area.value, colour, marker=family.marker, title=said)
    return frame.svg(
        "Area under the ROC curve of a model trained on each release, against the advantage that"
        " the release gives an attacker; the dashed line is the model trained on clean labels."
    )


def legend(verdicts: Sequence[Verdict]) -> str:
    """The markers and what they stand for."""
    families = dict.fromkeys(verdict.exposure.setting.family for verdict in verdicts)
    items = "".join(
        f'<li><svg class="swatch" viewBox="-7 -7 14 14" fill="{one.colour}" aria-hidden="true">'
        f"{shape(one.marker)}</svg>{escape(one.short)}</li>"
        for one in families
    )
    return f'<ul class="legend">{items}</ul>'
