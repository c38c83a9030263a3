"""A plain chart as inline SVG: axes, lines, bars and dots, coloured by the page's style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any

WIDTH, HEIGHT = 520, 330
LEFT, RIGHT, TOP, BOTTOM = 74, 24, 14, 48

Point = tuple[float, float]


def percent(share: float) -> str:
    """A share as an axis shows it."""
    return f"{100 * share:.3g} %"


def plain(value: float) -> str:
    return f"{value:.3g}"


class Drawing:
    """A chart under construction.

    Parameters
    ----------
    x, y : (low, high)
        What the axes span.
    name : str
        Of the chart, for the script (its ``id``).
    title, describes : str
        For those who do not see it: what it is, and what it shows.
    """

    def __init__(
        self,
        name: str,
        title: str,
        describes: str,
        *,
        x: Point,
        y: Point,
        height: int = HEIGHT,
        left: int = LEFT,
    ) -> None:
        self.name, self.title, self.describes = name, title, describes
        self.x, self.y, self.height, self.left = x, y, height, left
        self.parts: list[str] = []

    def at(self, x: float, y: float) -> Point:
        """Where a point of the data is on the paper."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (x - x0) / ((x1 - x0) or 1)
        up = (y - y0) / ((y1 - y0) or 1)
        return (
            self.left + across * (WIDTH - self.left - RIGHT),
            self.height - BOTTOM - up * (self.height - TOP - BOTTOM),
        )

    def axes(
        self,
        x_label: str,
        y_label: str,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_text: Callable[[float], str] = plain,
        y_text: Callable[[float], str] = plain,
    ) -> Drawing:
        """Ticks with a faint grid, and what the axes mean."""
        for tick in x_ticks:
            x, bottom = self.at(tick, self.y[0])
            self._add("line", kind="grid", x1=x, y1=TOP, x2=x, y2=bottom)
            self._text(x, bottom + 17, x_text(tick), "tick", "middle")
        for tick in y_ticks:
            left, y = self.at(self.x[0], tick)
            self._add("line", kind="grid", x1=left, y1=y, x2=WIDTH - RIGHT, y2=y)
            self._text(left - 7, y + 4, y_text(tick), "tick", "end")
        self._text(
            (self.left + WIDTH - RIGHT) / 2, self.height - 8, x_label, "label", "middle"
        )
        place = f"translate(13 {(TOP + self.height - BOTTOM) / 2:.1f}) rotate(-90)"
        self._add("text", y_label, kind="label", text_anchor="middle", transform=place)
        return self

    def line(self, points: Sequence[Point], kind: str) -> Drawing:
        """A line through these points; ``kind`` is its class in the style."""
        text = " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)
        self._add("polyline", kind=f"line {kind}", points=text)
        return self

    def bar(
        self, x0: float, x1: float, y0: float, y1: float, kind: str, says: str = ""
    ) -> Drawing:
        """A rectangle, with what it ``says`` to a pointer that rests on it."""
        (left, bottom), (right, top) = self.at(x0, y0), self.at(x1, y1)
        width, height = max(right - left, 0.0), max(bottom - top, 0.0)
        self._add("rect", kind=kind, x=left, y=top, width=width, height=height, says=says)
        return self

    def dot(
        self, x: float, y: float, kind: str, radius: float = 4.0, name: str = ""
    ) -> Drawing:
        """A dot, which the script may move by its ``name``."""
        across, down = self.at(x, y)
        self._add("circle", kind=kind, id=name, cx=across, cy=down, r=float(radius))
        return self

    def words(
        self, x: float, y: float, text: str, kind: str = "tick", anchor: str = "start"
    ) -> Drawing:
        """A text at a point of the data."""
        self._text(*self.at(x, y), text, kind, anchor)
        return self

    def _text(self, x: float, y: float, text: str, kind: str, anchor: str) -> None:
        self._add("text", text, kind=kind, text_anchor=anchor, x=x, y=y)

    def _add(
        self, tag: str, text: str = "", *, kind: str, says: str = "", **attributes: Any
    ) -> None:
        """An element, with everything in it escaped."""
        written = [f'class="{escape(kind)}"']
        for name, value in attributes.items():
            if value != "":
                shown = f"{value:.1f}" if isinstance(value, float) else escape(str(value))
                written.append(f'{name.replace("_", "-")}="{shown}"')
        inside = f"<title>{escape(says)}</title>" if says else escape(text)
        end = f">{inside}</{tag}>" if inside else "/>"
        self.parts.append(f"<{tag} {' '.join(written)}{end}")

    def svg(self) -> str:
        """All of it, with the plot's frame for the script to place its marks by."""
        (x0, y0), (x1, y1) = self.at(self.x[0], self.y[0]), self.at(self.x[1], self.y[1])
        return (
            f'<svg id="{self.name}" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-labelledby="{self.name}-t {self.name}-d" '
            f'data-frame="{x0:.1f} {y0:.1f} {x1:.1f} {y1:.1f}">'
            f'<title id="{self.name}-t">{escape(self.title)}</title>'
            f'<desc id="{self.name}-d">{escape(self.describes)}</desc>'
            f"{''.join(self.parts)}</svg>"
        )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``, about so many.

    Examples
    --------
    >>> ticks(0, 0.23)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    span = high - low
    if not span > 0:
        return [low]
    rough = span / about
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]
